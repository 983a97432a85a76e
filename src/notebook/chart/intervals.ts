/** Values with their intervals, one below the other. */
import { colorOf, element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import type { Row } from '../table.ts'
import { channel, checkChart, numbers } from './channels.ts'
import { drawFrame, type FrameOptions, textWidth } from './frame.ts'
import { datumText, scaleOf } from './scale.ts'

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
