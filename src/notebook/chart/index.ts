/** Charts: rows of values as lines, points, bars and maps. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, grouped, numbers } from './channels.ts'
import { type FrameOptions, framed, legendOf, widthOf } from './frame.ts'
import { scaleOf, textOf } from './scale.ts'

export interface ChartOptions extends FrameOptions {
  /** Columns along the axes. */
  readonly x: string
  readonly y: string
  /** The column that tells rows apart by colour. */
  readonly color?: string | undefined
  /** Which axes are logarithmic; none. */
  readonly log?: 'x' | 'y' | 'xy' | undefined
  /** Pixels of the area with the marks; 260. */
  readonly height?: number | undefined
}

export interface ScatterOptions extends ChartOptions {
  /** Whether a line shows where both are equal; no. */
  readonly diagonal?: boolean | undefined
}

const HEIGHT = 260
const PLOTTED = ['color', 'log', 'height']

interface Mark {
  readonly x: number
  readonly y: number
}

/** Axes of numbers or categories, and marks by colour. */
function plotted(
  rows: readonly Row[],
  options: ChartOptions,
  marks: (points: readonly Mark[], color: string) => string,
  behind: (at: (x: number, y: number) => Mark, both: readonly number[]) => string = () => '',
): Figure {
  const xs = channel(rows, options.x)
  const ys = numbers(rows, options.y)
  const colors = options.color === undefined ? undefined : channel(rows, options.color)
  const names = colors ? [...new Set(colors)] : []
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? options.y }
  const log = options.log ?? ''
  const legend = legendOf(names.map(textOf))
  const wide = ys.map((v) => brief(v))
  return framed({ ...options, labels }, options.height ?? HEIGHT, wide, legend, (area) => {
    const x = scaleOf(xs, area.left, area.right, { log: log.includes('x'), zero: false })
    const y = scaleOf(ys, area.bottom, area.top, { log: log.includes('y'), zero: !log.includes('y') })
    const points = xs.map((v, k): Mark => ({ x: x.at(v), y: y.at(ys[k]!) }))
    const both = [...xs.filter((v) => typeof v === 'number'), ...ys]
    return {
      marks:
        behind((a, b) => ({ x: x.at(a), y: y.at(b) }), both) +
        grouped(colors, points)
          .map(([, group], k) => marks(group, colorOf(k)))
          .join(''),
      x,
      y,
    }
  })
}

/**
 * Lines from point to point, in the order of the rows; one for each value of `color`.
 * @throws SptError `notebook/no-rows`, `notebook/no-column`, `notebook/value`, `notebook/log-range`
 */
export function lines(rows: readonly Row[], options: ChartOptions): Figure {
  checkChart('lines', rows, options, PLOTTED)
  return plotted(rows, options, (points, color) => {
    const path = points.map((p, k) => `${k === 0 ? 'M' : 'L'}${p.x.toFixed(1)} ${p.y.toFixed(1)}`).join('')
    return (
      element('path', { d: path, fill: 'none', stroke: color, 'stroke-width': 2 }) +
      (points.length <= 40 ? dots(points, color, 3) : '')
    )
  })
}

const dots = (points: readonly Mark[], fill: string, r: number, opacity = 1): string =>
  points.map(({ x, y }) => element('circle', { cx: x, cy: y, r, fill, opacity })).join('')

/** A point for each row. @throws SptError as `lines` */
export function scatter(rows: readonly Row[], options: ScatterOptions): Figure {
  checkChart('scatter', rows, options, [...PLOTTED, 'diagonal'])
  return plotted(
    rows,
    options,
    (points, color) => dots(points, color, 3.5, 0.75),
    (at, both) => {
      if (!options.diagonal) return ''
      const [low, high] = [Math.min(...both), Math.max(...both)]
      const [a, b] = [at(low, low), at(high, high)]
      return element('line', {
        x1: a.x,
        y1: a.y,
        x2: b.x,
        y2: b.y,
        stroke: '#999999',
        'stroke-dasharray': '5 4',
      })
    },
  )
}

export interface BarsOptions extends FrameOptions {
  /** The column of lengths: numbers. */
  readonly x: string
  /** The column of names, from top to bottom as they come. */
  readonly y: string
  /** The column that tells the bars of one name apart. */
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
