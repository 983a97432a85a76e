/** Maps: a cell for each of two categories, coloured by a number or a category. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import type { Row } from '../table.ts'
import { channel, checkChart } from './channels.ts'
import { type FrameOptions, framed, legendOf } from './frame.ts'
import { type Datum, scaleOf, textOf } from './scale.ts'

export interface HeatmapOptions extends FrameOptions {
  /** Columns of the categories along the axes, in the order in which they come. */
  readonly x: string
  readonly y: string
  /** The column that colours a cell: numbers from light to dark, or categories with a legend. */
  readonly value: string
  /** Column with the text of cells; `value`. */
  readonly text?: string | undefined
  /** Numbers around this one are pale; below it they go to blue, above it to orange. Without: from light to dark. */
  readonly midpoint?: number | undefined
}

const CELL = 30

/** A cell for each row: which of several, or how much, at each of two categories. @throws SptError as `lines` */
export function heatmap(rows: readonly Row[], options: HeatmapOptions): Figure {
  checkChart('heatmap', rows, options, ['value', 'text', 'middle'])
  const xs = channel(rows, options.x).map(textOf)
  const ys = channel(rows, options.y).map(textOf)
  const values = channel(rows, options.value)
  const texts = (options.text === undefined ? values : channel(rows, options.text)).map(textOf)
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  const numeric = values.every((v) => typeof v === 'number')
  const kinds = numeric ? [] : [...new Set(values)]
  const paint = numeric ? ramp(values.map(Number), options.midpoint) : (v: Datum) => colorOf(kinds.indexOf(v))
  const height = new Set(ys).size * CELL
  return framed({ ...options, labels }, height, ys, legendOf(kinds.map(textOf)), (area) => {
    const x = scaleOf(xs, area.left, area.right, { log: false, zero: false })
    const y = scaleOf(ys, area.top, area.bottom, { log: false, zero: false })
    const marks = values.map((value, k) => {
      const fill = paint(value)
      const [cx, cy] = [x.at(xs[k]!), y.at(ys[k]!)]
      return (
        element('rect', {
          x: cx - x.band / 2 + 1,
          y: cy - y.band / 2 + 1,
          width: x.band - 2,
          height: y.band - 2,
          fill,
        }) +
        text(cx, cy + 4, texts[k]!, { 'text-anchor': 'middle', fill: isDark(fill) ? '#ffffff' : '#222222' })
      )
    })
    return { marks: marks.join(''), x, y }
  })
}

type Rgb = readonly [number, number, number]

const PALE: Rgb = [0xf2, 0xf4, 0xf7]
const BLUE: Rgb = [0x1b, 0x4f, 0x8f]
const ORANGE: Rgb = [0xb8, 0x4a, 0x12]

/** Colours of numbers, as `#rrggbb`. */
function ramp(values: readonly number[], middle?: number): (v: Datum) => string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  const from = middle ?? low
  const most = middle === undefined ? high - low : Math.max(high - middle, middle - low)
  return (v) => {
    const t = most === 0 ? 0 : (Number(v) - from) / most
    return hex(PALE, middle !== undefined && t > 0 ? ORANGE : BLUE, Math.abs(t))
  }
}

const hex = (from: Rgb, to: Rgb, t: number): string =>
  `#${from
    .map((c, k) =>
      Math.round(c + t * (to[k]! - c))
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`

/** True if white text is more readable than black on a colour, including colours that are not given as red, green and blue. */
function isDark(color: string): boolean {
  const [r, g, b] = [1, 3, 5].map((k) => Number.parseInt(color.slice(k, k + 2), 16))
  return !color.startsWith('#') || 0.299 * r! + 0.587 * g! + 0.114 * b! < 150
}
