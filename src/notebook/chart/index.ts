/** Charts of rows: lines, scatter plots and bars. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, groupBy, numbers } from './channels.ts'
import { drawFrame, type FrameOptions, legendEntries, textWidth } from './frame.ts'
import { type AxesOptions, drawLayers, type Layer } from './layers.ts'
import { datumText, scaleOf } from './scale.ts'

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

const COMMON_OPTIONS = ['color', 'log', 'height']

/** Points grouped by the value of the colour column, with their names in the legend. */
function pointGroups(
  rows: readonly Row[],
  options: ChartOptions,
): readonly Pick<Layer, 'points' | 'color' | 'name'>[] {
  const xs = channel(rows, options.x)
  const ys = numbers(rows, options.y)
  const colors = options.color === undefined ? undefined : channel(rows, options.color)
  const points = xs.map((x, k) => ({ x, y: ys[k]! }))
  return groupBy(colors, points).map(([name, group], k) => ({
    points: group,
    color: colorOf(k),
    ...(colors && { name: datumText(name) }),
  }))
}

const withAxisLabels = <T extends ChartOptions>(options: T): T => ({
  ...options,
  labels: { x: options.labels?.x ?? options.x, y: options.labels?.y ?? options.y },
})

/** Maximum number of points that are marked on a line. */
const MAX_MARKED_POINTS = 40

/**
 * Lines that connect the points in row order, one line for each value of `color`.
 * @throws SptError `notebook/no-rows`, `notebook/no-column`, `notebook/value`, `notebook/log-range`
 */
export function lines(rows: readonly Row[], options: ChartOptions): Figure {
  checkChart('lines', rows, options, COMMON_OPTIONS)
  const layers = pointGroups(rows, options).flatMap((group): Layer[] => [
    { ...group, shape: 'line' },
    ...(group.points.length <= MAX_MARKED_POINTS
      ? [{ ...group, name: undefined, shape: 'dots', radius: 3, opacity: 1 } as const]
      : []),
  ])
  return drawLayers(layers, withAxisLabels(options))
}

/** A point for each row. @throws SptError as `lines` */
export function scatter(rows: readonly Row[], options: ScatterOptions): Figure {
  checkChart('scatter', rows, options, [...COMMON_OPTIONS, 'diagonal'])
  return drawLayers(
    pointGroups(rows, options).map((group) => ({ ...group, shape: 'dots' })),
    withAxisLabels(options),
  )
}

export interface BarsOptions extends FrameOptions {
  /** Column of the lengths: numbers. */
  readonly x: string
  /** Column of the names, drawn from top to bottom in row order. */
  readonly y: string
  /** Column that distinguishes bars of the same name. */
  readonly color?: string | undefined
}

/** Horizontal bars from 0, one for each row, labelled with their values. @throws SptError as `lines` */
export function bars(rows: readonly Row[], options: BarsOptions): Figure {
  checkChart('bars', rows, options, ['color'])
  const values = numbers(rows, options.x)
  const names = channel(rows, options.y).map(datumText)
  const colors = options.color === undefined ? undefined : channel(rows, options.color)
  const categories = colors ? [...new Set(colors)] : []
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  const groups = groupBy(
    names,
    values.map((value, k) => ({ value, color: colorOf(colors ? categories.indexOf(colors[k]!) : 0) })),
  )
  const maxGroupSize = Math.max(...groups.map(([, group]) => group.length))
  const height = groups.length * (maxGroupSize * 18 + 8)
  const labelWidth = Math.max(...values.map((v) => textWidth(brief(v)))) + 6
  return drawFrame(
    { ...options, labels },
    height,
    names,
    legendEntries(categories.map(datumText)),
    (area) => {
      const x = scaleOf(values, area.left, area.right - labelWidth, { log: false, zero: true })
      const y = scaleOf(names, area.top, area.bottom, { log: false, zero: false })
      const zero = x.pixelOf(0)
      const marks = groups.map(([name, group]) =>
        group
          .map(({ value, color }, k) => {
            const top = y.pixelOf(name) + (k - group.length / 2) * 18 + 2
            const end = x.pixelOf(value)
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
    },
  )
}
