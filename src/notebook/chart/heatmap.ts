/** Heatmaps: one cell for each pair of categories, coloured by a number or a category. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import type { Row } from '../table.ts'
import { channel, checkChart } from './channels.ts'
import { drawFrame, type FrameOptions, legendEntries } from './frame.ts'
import { type Datum, datumText, scaleOf } from './scale.ts'

export interface HeatmapOptions extends FrameOptions {
  /** Columns of the categories along the axes, in order of first occurrence. */
  readonly x: string
  readonly y: string
  /** Column that determines the colours: numbers from light to dark, or categories with a legend. */
  readonly value: string
  /** Column with the text of cells; default: `value`. */
  readonly text?: string | undefined
  /** Centre of a diverging colour scale: blue below, orange above. Default: a sequential scale from light to dark. */
  readonly midpoint?: number | undefined
}

const CELL = 30

/** A heatmap with one cell for each row. @throws SptError as `lines` */
export function heatmap(rows: readonly Row[], options: HeatmapOptions): Figure {
  checkChart('heatmap', rows, options, ['value', 'text', 'midpoint'])
  const xs = channel(rows, options.x).map(datumText)
  const ys = channel(rows, options.y).map(datumText)
  const values = channel(rows, options.value)
  const texts = (options.text === undefined ? values : channel(rows, options.text)).map(datumText)
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  const numeric = values.every((v) => typeof v === 'number')
  const categories = numeric ? [] : [...new Set(values)]
  const fillOf = numeric
    ? colorScale(values.map(Number), options.midpoint)
    : (v: Datum) => colorOf(categories.indexOf(v))
  const height = new Set(ys).size * CELL
  return drawFrame({ ...options, labels }, height, ys, legendEntries(categories.map(datumText)), (area) => {
    const x = scaleOf(xs, area.left, area.right, { log: false, zero: false })
    const y = scaleOf(ys, area.top, area.bottom, { log: false, zero: false })
    const marks = values.map((value, k) => {
      const fill = fillOf(value)
      const [cx, cy] = [x.pixelOf(xs[k]!), y.pixelOf(ys[k]!)]
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

/** Maps numbers to colours `#rrggbb`. */
function colorScale(values: readonly number[], middle?: number): (v: Datum) => string {
  const [min, max] = [Math.min(...values), Math.max(...values)]
  const origin = middle ?? min
  const range = middle === undefined ? max - min : Math.max(max - middle, middle - min)
  return (v) => {
    const t = range === 0 ? 0 : (Number(v) - origin) / range
    return mixColors(PALE, middle !== undefined && t > 0 ? ORANGE : BLUE, Math.abs(t))
  }
}

const mixColors = (from: Rgb, to: Rgb, t: number): string =>
  `#${from
    .map((c, k) =>
      Math.round(c + t * (to[k]! - c))
        .toString(16)
        .padStart(2, '0'),
    )
    .join('')}`

/** True if white text is more readable than black on a colour, and for colours that are not in the form `#rrggbb`. */
function isDark(color: string): boolean {
  const [r, g, b] = [1, 3, 5].map((k) => Number.parseInt(color.slice(k, k + 2), 16))
  return !color.startsWith('#') || 0.299 * r! + 0.587 * g! + 0.114 * b! < 150
}
