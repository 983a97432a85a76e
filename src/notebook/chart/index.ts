/** Charts of rows: lines, scatter plots, bars, intervals and heatmaps. */
import { groupBy } from '../../ir/memoize.ts'
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, numbers } from './channels.ts'
import { drawFrame, type FrameOptions, legendEntries, textWidth } from './frame.ts'
import { type AxesOptions, drawLayers, type Layer } from './layers.ts'
import { type Datum, datumText, scaleOf } from './scale.ts'

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
  return [...groupBy(xs.keys(), (k) => colors?.[k])].map(([name, group], k) => ({
    points: group.map((p) => ({ x: xs[p]!, y: ys[p]! })),
    color: colorOf(k),
    ...(name !== undefined && { name: datumText(name) }),
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
  const groups = [...groupBy(names.keys(), (k) => names[k]!)]
  const maxGroupSize = Math.max(...groups.map(([, bars]) => bars.length))
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
      const marks = groups.map(([name, bars]) =>
        bars
          .map((bar, k) => {
            const top = y.pixelOf(name) + (k - bars.length / 2) * 18 + 2
            const value = values[bar]!
            const end = x.pixelOf(value)
            return (
              element('rect', {
                x: Math.min(zero, end),
                y: top,
                width: Math.abs(end - zero),
                height: 14,
                fill: colorOf(colors ? categories.indexOf(colors[bar]!) : 0),
              }) + text(Math.max(zero, end) + 6, top + 11, brief(value))
            )
          })
          .join(''),
      )
      return { marks: marks.join(''), x, y }
    },
  )
}

export interface IntervalsOptions extends FrameOptions {
  /** Columns of the values and of the bounds of their intervals: numbers. */
  readonly x: string
  readonly from: string
  readonly to: string
  /** Column of the names, drawn from top to bottom in row order. */
  readonly y: string
  /** Column with labels of the intervals; default: no labels. */
  readonly text?: string | undefined
  /** Logarithmic axis; default: no. */
  readonly log?: boolean | undefined
}

const ROW_HEIGHT = 26
const CAP_HALF_HEIGHT = 5

/** A dot with its interval for each row. @throws SptError as `lines` */
export function intervals(rows: readonly Row[], options: IntervalsOptions): Figure {
  checkChart('intervals', rows, options, ['from', 'to', 'text', 'log'])
  const [values, from, to] = [options.x, options.from, options.to].map((c) => numbers(rows, c))
  const names = channel(rows, options.y).map(datumText)
  const texts = options.text === undefined ? names.map(() => '') : channel(rows, options.text).map(datumText)
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  // Names may occur twice, so rows are identified by their index.
  const rowKeys = names.map((_, k) => `${k}`)
  const labelWidth = Math.max(...texts.map(textWidth)) + 6
  return drawFrame({ ...options, labels }, rows.length * ROW_HEIGHT, names, [], (area) => {
    const extents = [...values!, ...from!, ...to!]
    const x = scaleOf(extents, area.left, area.right - labelWidth, {
      log: options.log ?? false,
      zero: !options.log,
    })
    const y = scaleOf(rowKeys, area.top, area.bottom, { log: false, zero: false })
    const marks = rowKeys.map((rowKey, k) => {
      const [center, low, high, middle] = [
        x.pixelOf(values![k]!),
        x.pixelOf(from![k]!),
        x.pixelOf(to![k]!),
        y.pixelOf(rowKey),
      ]
      const d = `M${low} ${middle - CAP_HALF_HEIGHT}v${2 * CAP_HALF_HEIGHT}M${low} ${middle}H${high}M${high} ${middle - CAP_HALF_HEIGHT}v${2 * CAP_HALF_HEIGHT}`
      return (
        element('path', { d, stroke: colorOf(0), 'stroke-width': 1.5, fill: 'none' }) +
        element('circle', { cx: center, cy: middle, r: 4, fill: colorOf(0) }) +
        text(area.right - labelWidth + 6, middle + 4, texts[k]!)
      )
    })
    const labelled = { ...y, ticks: y.ticks.map((t, k) => ({ ...t, text: names[k]! })) }
    return { marks: marks.join(''), x, y: labelled }
  })
}

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
