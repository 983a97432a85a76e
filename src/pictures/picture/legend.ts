/** The legend of a picture: colour, format, nonzeros and padding of each part. */
import { count, element, escapeXml, fitText, percent, text } from './svg.ts'

/** Pixels of a line. */
export const LINE = 18

export interface LegendEntry {
  readonly label: string
  readonly format: string
  readonly stored: number
  readonly slots: number
}

const partName = ({ label, format }: LegendEntry): string =>
  label === '' || label === format ? format : `${label}: ${format}`

/** The label of a part with its numbers of nonzeros and padding. */
export function legendLine(e: LegendEntry): string {
  const padding = e.slots > e.stored ? `, ${percent((e.slots - e.stored) / e.slots)} padding` : ''
  return `${partName(e)}, ${count(e.stored)} nonzeros${padding}`
}

/** Draws a legend with a line for each part. */
export function drawLegend(
  entries: readonly LegendEntry[],
  colors: readonly string[],
  x: number,
  y: number,
  width: number,
  columns: number,
): string {
  const lines = Math.ceil(entries.length / columns)
  const availableWidth = width / columns
  return entries
    .map((e, k) => {
      const left = x + Math.floor(k / lines) * availableWidth
      const base = y + (k % lines) * LINE + 11
      const line = legendLine(e)
      const square = element('rect', { x: left, y: base - 10, width: 11, height: 11, fill: colors[k]! })
      const label = columns === 1 ? line : `${partName(e)}, ${count(e.stored)}`
      const words = text(left + 18, base, fitText(label, availableWidth - 26, 12))
      return element('g', {}, element('title', {}, escapeXml(line)) + square + words)
    })
    .join('\n')
}
