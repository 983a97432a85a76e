/** Values with their intervals, one below the other. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, numbers } from './channels.ts'
import { type FrameOptions, framed, widthOf } from './frame.ts'
import { scaleOf, textOf } from './scale.ts'

export interface IntervalsOptions extends FrameOptions {
  /** The columns of the values and of the ends of their intervals: numbers. */
  readonly x: string
  readonly from: string
  readonly to: string
  /** The column of names, from top to bottom as they come. */
  readonly y: string
  /** Column with labels of the intervals; none. */
  readonly text?: string | undefined
  /** Logarithmic axis; default: no. */
  readonly log?: boolean | undefined
}

const ROW = 26
const CAP = 5

/** A dot with its interval for each row. @throws SptError as `lines` */
export function intervals(rows: readonly Row[], options: IntervalsOptions): Figure {
  checkChart('intervals', rows, options, ['from', 'to', 'text', 'log'])
  const [values, from, to] = [options.x, options.from, options.to].map((c) => numbers(rows, c))
  const names = channel(rows, options.y).map(textOf)
  const texts = options.text === undefined ? names.map(() => '') : channel(rows, options.text).map(textOf)
  const labels = { x: options.labels?.x ?? options.x, y: options.labels?.y ?? '' }
  // Names may recur: rows are told apart by their place.
  const places = names.map((_, k) => `${k}`)
  const room = Math.max(...texts.map(widthOf)) + 6
  return framed({ ...options, labels }, rows.length * ROW, names, [], (area) => {
    const all = [...values!, ...from!, ...to!]
    const x = scaleOf(all, area.left, area.right - room, { log: options.log ?? false, zero: !options.log })
    const y = scaleOf(places, area.top, area.bottom, { log: false, zero: false })
    const marks = places.map((place, k) => {
      const [at, low, high, middle] = [x.at(values![k]!), x.at(from![k]!), x.at(to![k]!), y.at(place)]
      const d = `M${low} ${middle - CAP}v${2 * CAP}M${low} ${middle}H${high}M${high} ${middle - CAP}v${2 * CAP}`
      return (
        element('path', { d, stroke: colorOf(0), 'stroke-width': 1.5, fill: 'none' }) +
        element('circle', { cx: at, cy: middle, r: 4, fill: colorOf(0) }) +
        text(area.right - room + 6, middle + 4, texts[k]!)
      )
    })
    const named = { ...y, ticks: y.ticks.map((t, k) => ({ ...t, text: names[k]! })) }
    return { marks: marks.join(''), x, y: named }
  })
}
