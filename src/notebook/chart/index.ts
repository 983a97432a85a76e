/** Charts: rows of values as lines, points, bars and maps. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, grouped, numbers } from './channels.ts'
import { type FrameOptions, framed, legendOf, widthOf } from './frame.ts'
import { type AxesOptions, type Layer, layered } from './layers.ts'
import { scaleOf, textOf } from './scale.ts'

export interface ChartOptions extends AxesOptions {
  /** Columns along the axes. */
  readonly x: string
  readonly y: string
  /** Column that determines the colour of rows. */
  readonly color?: string | undefined
}

export interface ScatterOptions extends ChartOptions {
  /** Draws the line on which both axes are equal; default: no. */
  readonly diagonal?: boolean | undefined
}

const PLOTTED = ['color', 'log', 'height']

/** Points grouped by colour, with their names in the legend. */
function groupsOf(
  rows: readonly Row[],
  options: ChartOptions,
): readonly Pick<Layer, 'points' | 'color' | 'name'>[] {
  const xs = channel(rows, options.x)
  const ys = numbers(rows, options.y)
  const colors = options.color === undefined ? undefined : channel(rows, options.color)
  const points = xs.map((x, k) => ({ x, y: ys[k]! }))
  return grouped(colors, points).map(([name, group], k) => ({
    points: group,
    color: colorOf(k),
    ...(colors && { name: textOf(name) }),
  }))
}

const named = <T extends ChartOptions>(options: T): T => ({
  ...options,
  labels: { x: options.labels?.x ?? options.x, y: options.labels?.y ?? options.y },
})

/** Maximum number of points that are marked on a line. */
const MARKED = 40

/**
 * Lines from point to point, in the order of the rows; one for each value of `color`.
 * @throws SptError `notebook/no-rows`, `notebook/no-column`, `notebook/value`, `notebook/log-range`
 */
export function lines(rows: readonly Row[], options: ChartOptions): Figure {
  checkChart('lines', rows, options, PLOTTED)
  const layers = groupsOf(rows, options).flatMap((group): Layer[] => [
    { ...group, shape: 'line' },
    ...(group.points.length <= MARKED
      ? [{ ...group, name: undefined, shape: 'dots', radius: 3, opacity: 1 } as const]
      : []),
  ])
  return layered(layers, named(options))
}

/** A point for each row. @throws SptError as `lines` */
export function scatter(rows: readonly Row[], options: ScatterOptions): Figure {
  checkChart('scatter', rows, options, [...PLOTTED, 'diagonal'])
  return layered(
    groupsOf(rows, options).map((group) => ({ ...group, shape: 'dots' })),
    named(options),
  )
}

export interface BarsOptions extends FrameOptions {
  /** The column of lengths: numbers. */
  readonly x: string
  /** The column of names, from top to bottom as they come. */
  readonly y: string
  /** Column that distinguishes bars of the same name. */
  readonly color?: string | undefined
}

/** Bars from 0, one for each row, with their numbers. @throws SptError as `lines` */
export function bars(rows: readonly Row[], options: BarsOptions): Figure {
  checkChart('bars', rows, options, ['color'])
  const values = numbers(rows, options.x)
  const names = channel(rows, options.y).map(textOf)
  const colors = options.color === undefined ? undefined : channel(rows, options.color)
  const kinds = colors ? [...new Set(colors)] : []
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  const each = grouped(
    names,
    values.map((value, k) => ({ value, color: colorOf(colors ? kinds.indexOf(colors[k]!) : 0) })),
  )
  const most = Math.max(...each.map(([, group]) => group.length))
  const height = each.length * (most * 18 + 8)
  const room = Math.max(...values.map((v) => widthOf(brief(v)))) + 6
  return framed({ ...options, labels }, height, names, legendOf(kinds.map(textOf)), (area) => {
    const x = scaleOf(values, area.left, area.right - room, { log: false, zero: true })
    const y = scaleOf(names, area.top, area.bottom, { log: false, zero: false })
    const zero = x.at(0)
    const marks = each.map(([name, group]) =>
      group
        .map(({ value, color }, k) => {
          const top = y.at(name) + (k - group.length / 2) * 18 + 2
          const end = x.at(value)
          return (
            element('rect', {
              x: Math.min(zero, end),
              y: top,
              width: Math.abs(end - zero),
              height: 14,
              fill: color,
            }) + text(Math.max(zero, end) + 6, top + 11, brief(value))
          )
        })
        .join(''),
    )
    return { marks: marks.join(''), x, y }
  })
}
