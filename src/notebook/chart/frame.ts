/** The frame of a chart around its marks: title, legend, axes with ticks and names. */
import { colorOf, element, escapeXml, text } from '../../pictures/picture/svg.ts'
import { Figure } from '../figure.ts'
import type { Scale, Tick } from './scale.ts'

export interface FrameOptions {
  /** Heading of the chart, and its text alternative. */
  readonly title?: string | undefined
  /** Width in pixels; default: 720. */
  readonly width?: number | undefined
  /** Names of the axes, with their units; default: the names of the columns. */
  readonly labels?: { readonly x?: string | undefined; readonly y?: string | undefined } | undefined
}

/** A colour of the legend with its meaning. */
export interface LegendEntry {
  readonly text: string
  readonly color: string
}

/** The rectangle of the marks, in pixels from the upper left corner of the figure. */
export interface Area {
  readonly left: number
  readonly right: number
  readonly top: number
  readonly bottom: number
}

const WIDTH = 720
const TEXT_COLOR = '#333333'
const GRID_COLOR = '#e4e4e4'
const RIGHT_MARGIN = 24

/** Approximate width of a text with font size 12, in pixels. */
export const textWidth = (s: string): number => 6.7 * s.length

export const legendEntries = (names: readonly string[]): LegendEntry[] =>
  names.map((name, k) => ({ text: name, color: colorOf(k) }))

export interface Content {
  readonly marks: string
  readonly x: Scale
  readonly y: Scale
}

/**
 * Draws a chart; `draw` fills the area inside the frame.
 * @param height of the area, in pixels
 * @param rows labels to the left of the area
 */
export function drawFrame(
  options: FrameOptions,
  height: number,
  rows: readonly string[],
  legend: readonly LegendEntry[],
  draw: (area: Area) => Content,
): Figure {
  const { title, width = WIDTH, labels = {} } = options
  const heading = title === undefined ? '' : text(16, 26, title, { 'font-size': 15, 'font-weight': 'bold' })
  const swatches = drawLegend(legend, title === undefined ? 14 : 42, width)
  const left = Math.min(width / 2, 24 + Math.max(36, ...rows.map(textWidth)))
  const labelHeight = labels.y === undefined || labels.y === '' ? 0 : 20
  const top = swatches.bottom + labelHeight + 8
  const area = { left, right: width - RIGHT_MARGIN, top, bottom: top + height }
  const { marks, x, y } = draw(area)
  const totalHeight = area.bottom + (labels.x ? 46 : 28)
  const parts = [
    heading,
    swatches.svg,
    labels.y ? text(16, top - 10, labels.y, { 'font-weight': 'bold' }) : '',
    drawGrid(area, x, y),
    marks,
    x.ticks.map((t) => text(t.pixel, area.bottom + 18, t.text, { 'text-anchor': 'middle' })).join(''),
    y.ticks.map((t) => text(area.left - 8, t.pixel + 4, t.text, { 'text-anchor': 'end' })).join(''),
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
      viewBox: `0 0 ${width} ${totalHeight}`,
      width,
      height: totalHeight,
      'font-family': 'system-ui, sans-serif',
      'font-size': 12,
      fill: TEXT_COLOR,
      role: 'img',
    },
    `<title>${escapeXml(name)}</title>${parts.join('')}`,
  )
  return new Figure(svg, name)
}

/** Grid lines at the ticks of numeric axes (categories have none), and the axes. */
function drawGrid(area: Area, x: Scale, y: Scale): string {
  const line = (x1: number, y1: number, x2: number, y2: number, stroke: string): string =>
    element('line', { x1, y1, x2, y2, stroke })
  const gridLines = (scale: Scale, draw: (t: Tick) => string): string =>
    scale.band > 0 ? '' : scale.ticks.map(draw).join('')
  return (
    gridLines(x, (t) => line(t.pixel, area.top, t.pixel, area.bottom, GRID_COLOR)) +
    gridLines(y, (t) => line(area.left, t.pixel, area.right, t.pixel, GRID_COLOR)) +
    line(area.left, area.bottom, area.right, area.bottom, TEXT_COLOR) +
    line(area.left, area.top, area.left, area.bottom, TEXT_COLOR)
  )
}

/** Draws the legend in one or several lines; returns it with the y coordinate of its lower edge. */
function drawLegend(
  legend: readonly LegendEntry[],
  top: number,
  width: number,
): { readonly svg: string; readonly bottom: number } {
  let [x, y, svg] = [16, top, '']
  for (const entry of legend) {
    const entryWidth = 18 + textWidth(entry.text) + 16
    if (x > 16 && x + entryWidth > width) [x, y] = [16, y + 20]
    svg += element('rect', { x, y: y - 1, width: 12, height: 12, rx: 2, fill: entry.color })
    svg += text(x + 18, y + 9, entry.text)
    x += entryWidth
  }
  return { svg, bottom: legend.length === 0 ? top - 8 : y + 18 }
}
