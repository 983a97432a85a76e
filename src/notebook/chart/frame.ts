/** Frame of a chart around its marks: title, legend, axes with ticks and names. */
import { colorOf, element, escapeXml, text } from '../../pictures/picture/svg.ts'
import { Figure } from '../figure.ts'
import type { Scale, Tick } from './scale.ts'

export interface FrameOptions {
  /** Heading of the chart, and its text alternative. */
  readonly title?: string | undefined
  /** Pixels; 720. */
  readonly width?: number | undefined
  /** Names of the axes, with their units; the names of the columns. */
  readonly labels?: { readonly x?: string | undefined; readonly y?: string | undefined } | undefined
}

/** A swatch with its meaning. */
export interface LegendEntry {
  readonly text: string
  readonly color: string
}

/** Rectangle of the marks: pixels from the upper left corner of the figure. */
export interface Area {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

const WIDTH = 720
const TEXT = '#333333'
const GRID = '#e4e4e4'
const RIGHT = 24

/** Pixels of a text of 12 pixels, about. */
export const widthOf = (s: string): number => 6.7 * s.length

export const legendOf = (names: readonly string[]): LegendEntry[] =>
  names.map((name, k) => ({ text: name, color: colorOf(k) }))

export interface Content {
  readonly marks: string
  readonly x: Scale
  readonly y: Scale
}

/**
 * A chart; `draw` fills the area inside the frame. @param height of the area, in pixels @param rows labels to the left of the
 * area
 */
export function framed(
  options: FrameOptions,
  height: number,
  rows: readonly string[],
  legend: readonly LegendEntry[],
  draw: (area: Area) => Content,
): Figure {
  const { title, width = WIDTH, labels = {} } = options
  const heading = title === undefined ? '' : text(16, 26, title, { 'font-size': 15, 'font-weight': 'bold' })
  const swatches = legendAt(legend, title === undefined ? 14 : 42, width)
  const left = Math.min(width / 2, 24 + Math.max(36, ...rows.map(widthOf)))
  const named = labels.y === undefined || labels.y === '' ? 0 : 20
  const top = swatches.below + named + 8
  const area = { left, right: width - RIGHT, top, bottom: top + height }
  const { marks, x, y } = draw(area)
  const below = area.bottom + (labels.x ? 46 : 28)
  const parts = [
    heading,
    swatches.svg,
    labels.y ? text(16, top - 10, labels.y, { 'font-weight': 'bold' }) : '',
    grid(area, x, y),
    marks,
    x.ticks.map((t) => text(t.at, area.bottom + 18, t.text, { 'text-anchor': 'middle' })).join(''),
    y.ticks.map((t) => text(area.left - 8, t.at + 4, t.text, { 'text-anchor': 'end' })).join(''),
    labels.x
      ? text((area.left + area.right) / 2, area.bottom + 38, labels.x, {
          'text-anchor': 'middle',
          'font-weight': 'bold',
        })
      : '',
  ]
  const name = title ?? [labels.y, labels.x].filter(Boolean).join(' by ')
  const svg = element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${below}`,
      width,
      height: below,
      'font-family': 'system-ui, sans-serif',
      'font-size': 12,
      fill: TEXT,
      role: 'img',
    },
    `<title>${escapeXml(name)}</title>${parts.join('')}`,
  )
  return new Figure(svg, name)
}

/** Lines at the ticks of numbers; between categories there are none. */
function grid(area: Area, x: Scale, y: Scale): string {
  const line = (x1: number, y1: number, x2: number, y2: number, stroke: string): string =>
    element('line', { x1, y1, x2, y2, stroke })
  const of = (scale: Scale, draw: (t: Tick) => string): string =>
    scale.band > 0 ? '' : scale.ticks.map(draw).join('')
  return (
    of(x, (t) => line(t.at, area.top, t.at, area.bottom, GRID)) +
    of(y, (t) => line(area.left, t.at, area.right, t.at, GRID)) +
    line(area.left, area.bottom, area.right, area.bottom, TEXT) +
    line(area.left, area.top, area.left, area.bottom, TEXT)
  )
}

/** One or several lines of swatches; where they end. */
function legendAt(
  legend: readonly LegendEntry[],
  top: number,
  width: number,
): { readonly svg: string; readonly below: number } {
  let [x, y, svg] = [16, top, '']
  for (const entry of legend) {
    const wide = 18 + widthOf(entry.text) + 16
    if (x > 16 && x + wide > width) [x, y] = [16, y + 20]
    svg += element('rect', { x, y: y - 1, width: 12, height: 12, rx: 2, fill: entry.color })
    svg += text(x + 18, y + 9, entry.text)
    x += wide
  }
  return { svg, below: legend.length === 0 ? top - 8 : y + 18 }
}
