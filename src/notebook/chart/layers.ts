/** Layers of marks over the same two axes, the basis of lines, scatters and rooflines. */
import { element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import { type Area, drawFrame, type FrameOptions, textWidth } from './frame.ts'
import { type Datum, type Scale, scaleOf } from './scale.ts'

export interface AxesOptions extends FrameOptions {
  /** Logarithmic axes; default: none. */
  readonly log?: 'x' | 'y' | 'xy' | undefined
  /** Height in pixels of the area with the marks; default: 260. */
  readonly height?: number | undefined
}

interface LayerPoint {
  readonly x: Datum
  readonly y: number
  /** Text beside a dot, or along the line from a point. */
  readonly label?: string | undefined
}

export interface Layer {
  /** `steps`: a step function with the y value of a point up to the next point; `level`: a horizontal line at each point. */
  readonly shape: 'line' | 'steps' | 'level' | 'dots'
  readonly points: readonly LayerPoint[]
  readonly color: string
  /** Name in the legend; default: no entry. */
  readonly name?: string | undefined
  readonly dashed?: boolean | undefined
  /** Radius of dots in pixels (default: 3.5) and their opacity (default: 0.75). */
  readonly radius?: number | undefined
  readonly opacity?: number | undefined
}

interface Mark {
  readonly x: number
  readonly y: number
  readonly label?: string | undefined
}

const HEIGHT = 260
const DASHES = '5 4'

interface LayersOptions extends AxesOptions {
  /** Gives both axes the same range and draws the line on which they are equal; default: no. */
  readonly diagonal?: boolean | undefined
  /** Starts the right axis at 0; default: no. */
  readonly fromZero?: boolean | undefined
}

/** Draws layers over common axes; later layers cover earlier ones. */
export function drawLayers(
  layers: readonly Layer[],
  { diagonal = false, fromZero = false, ...options }: LayersOptions,
): Figure {
  const log = options.log ?? ''
  const xs = layers.flatMap((l) => (l.shape === 'level' ? [] : l.points.map((p) => p.x)))
  const ys = layers.flatMap((l) => l.points.map((p) => p.y))
  const legend = layers.flatMap(({ name, color }) => (name === undefined ? [] : [{ text: name, color }]))
  const yLabels = ys.map((v) => brief(v))
  const [xValues, yValues] = diagonal ? [[...xs, ...ys], [...xs, ...ys].filter(isNumber)] : [xs, ys]
  return drawFrame(options, options.height ?? HEIGHT, yLabels, legend, (area) => {
    const x = scaleOf(xValues, area.left, area.right, { log: log.includes('x'), zero: fromZero })
    const y = scaleOf(yValues, area.bottom, area.top, { log: log.includes('y'), zero: !log.includes('y') })
    const diagonalLine = diagonal ? drawDiagonal(x, y, yValues) : ''
    return { marks: diagonalLine + layers.map((l) => drawLayer(l, x, y, area)).join(''), x, y }
  })
}

const isNumber = (x: Datum): x is number => typeof x === 'number'

function drawLayer(layer: Layer, x: Scale, y: Scale, { left, right }: Area): string {
  const { shape, points, color, dashed, radius = 3.5, opacity = 0.75 } = layer
  const stroke = { stroke: color, 'stroke-width': 2, ...(dashed && { 'stroke-dasharray': DASHES }) }
  if (shape === 'level')
    return points
      .map((p) => element('line', { x1: left, y1: y.pixelOf(p.y), x2: right, y2: y.pixelOf(p.y), ...stroke }))
      .join('')
  const marks = points.map((p): Mark => ({ x: x.pixelOf(p.x), y: y.pixelOf(p.y), label: p.label }))
  if (shape === 'dots') return drawDots(marks, color, radius, opacity) + drawDotLabels(marks, right)
  return (
    element('path', { d: pathData(marks, shape === 'steps'), fill: 'none', ...stroke }) +
    drawLineLabels(marks)
  )
}

function pathData(marks: readonly Mark[], steps: boolean): string {
  const segment = ({ x, y }: Mark, k: number): string => {
    const [left, top] = [x.toFixed(1), y.toFixed(1)]
    if (k === 0) return `M${left} ${top}`
    return steps ? `H${left}V${top}` : `L${left} ${top}`
  }
  return marks.map(segment).join('')
}

const drawDots = (marks: readonly Mark[], fill: string, r: number, opacity: number): string =>
  marks.map(({ x, y }) => element('circle', { cx: x, cy: y, r, fill, opacity })).join('')

const LABEL_GAP = 8

/** Labels to the right of their dots if they fit, otherwise to the left. */
const drawDotLabels = (marks: readonly Mark[], right: number): string =>
  marks
    .map(({ x, y, label }) => {
      if (label === undefined) return ''
      const fits = x + LABEL_GAP + textWidth(label) < right
      return text(fits ? x + LABEL_GAP : x - LABEL_GAP, y + 4, label, fits ? {} : { 'text-anchor': 'end' })
    })
    .join('')

/** Labels along the line: from their point towards the next one, at the last point towards the previous one. */
const drawLineLabels = (marks: readonly Mark[]): string =>
  marks
    .map((mark, k) => {
      const next = marks[k + 1]
      const [from, to] = next ? [mark, next] : [marks[k - 1], mark]
      if (mark.label === undefined || !from) return ''
      const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI
      const { x, y } = mark
      return text(next ? x + LABEL_GAP : x - LABEL_GAP, y - 6, mark.label, {
        ...(next ? {} : { 'text-anchor': 'end' }),
        transform: `rotate(${angle.toFixed(2)} ${x.toFixed(2)} ${y.toFixed(2)})`,
      })
    })
    .join('')

function drawDiagonal(x: Scale, y: Scale, values: readonly number[]): string {
  const [min, max] = [Math.min(...values), Math.max(...values)]
  return element('line', {
    x1: x.pixelOf(min),
    y1: y.pixelOf(min),
    x2: x.pixelOf(max),
    y2: y.pixelOf(max),
    stroke: '#999999',
    'stroke-dasharray': DASHES,
  })
}
