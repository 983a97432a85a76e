/** Layers of marks over the same two axes, the basis of lines, scatters and rooflines. */
import { element, text } from '../../pictures/picture/svg.ts'
import type { Figure } from '../figure.ts'
import { brief } from '../numbers.ts'
import { type Area, type FrameOptions, framed, widthOf } from './frame.ts'
import { type Datum, type Scale, scaleOf } from './scale.ts'

export interface AxesOptions extends FrameOptions {
  /** Logarithmic axes; default: none. */
  readonly log?: 'x' | 'y' | 'xy' | undefined
  /** Pixels of the area with the marks; 260. */
  readonly height?: number | undefined
}

export interface LayerPoint {
  readonly x: Datum
  readonly y: number
  /** Beside a dot, or along the line from a point. */
  readonly label?: string | undefined
}

export interface Layer {
  /** `steps`: as high as a point until the next one; `level`: all across, as high as each point. */
  readonly shape: 'line' | 'steps' | 'level' | 'dots'
  readonly points: readonly LayerPoint[]
  readonly color: string
  /** In the legend; without, it is not there. */
  readonly name?: string | undefined
  readonly dashed?: boolean | undefined
  /** Radius of dots in pixels, 3.5, and their opacity, 0.75. */
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

/** Later layers are above earlier ones. */
export function layered(
  layers: readonly Layer[],
  { diagonal = false, fromZero = false, ...options }: LayersOptions,
): Figure {
  const log = options.log ?? ''
  const xs = layers.flatMap((l) => (l.shape === 'level' ? [] : l.points.map((p) => p.x)))
  const ys = layers.flatMap((l) => l.points.map((p) => p.y))
  const legend = layers.flatMap(({ name, color }) => (name === undefined ? [] : [{ text: name, color }]))
  const wide = ys.map((v) => brief(v))
  const [alongX, alongY] = diagonal ? [[...xs, ...ys], [...xs, ...ys].filter(isNumber)] : [xs, ys]
  return framed(options, options.height ?? HEIGHT, wide, legend, (area) => {
    const x = scaleOf(alongX, area.left, area.right, { log: log.includes('x'), zero: fromZero })
    const y = scaleOf(alongY, area.bottom, area.top, { log: log.includes('y'), zero: !log.includes('y') })
    const behind = diagonal ? equal(x, y, alongY) : ''
    return { marks: behind + layers.map((l) => marksOf(l, x, y, area)).join(''), x, y }
  })
}

const isNumber = (x: Datum): x is number => typeof x === 'number'

function marksOf(layer: Layer, x: Scale, y: Scale, { left, right }: Area): string {
  const { shape, points, color, dashed, radius = 3.5, opacity = 0.75 } = layer
  const stroke = { stroke: color, 'stroke-width': 2, ...(dashed && { 'stroke-dasharray': DASHES }) }
  if (shape === 'level')
    return points
      .map((p) => element('line', { x1: left, y1: y.at(p.y), x2: right, y2: y.at(p.y), ...stroke }))
      .join('')
  const marks = points.map((p): Mark => ({ x: x.at(p.x), y: y.at(p.y), label: p.label }))
  if (shape === 'dots') return dots(marks, color, radius, opacity) + besideDots(marks, right)
  return element('path', { d: path(marks, shape === 'steps'), fill: 'none', ...stroke }) + alongLine(marks)
}

function path(marks: readonly Mark[], steps: boolean): string {
  const to = ({ x, y }: Mark, k: number): string => {
    const [at, high] = [x.toFixed(1), y.toFixed(1)]
    if (k === 0) return `M${at} ${high}`
    return steps ? `H${at}V${high}` : `L${at} ${high}`
  }
  return marks.map(to).join('')
}

const dots = (marks: readonly Mark[], fill: string, r: number, opacity: number): string =>
  marks.map(({ x, y }) => element('circle', { cx: x, cy: y, r, fill, opacity })).join('')

const APART = 8

/** Labels to the right of their dots if there is space; otherwise to the left. */
const besideDots = (marks: readonly Mark[], right: number): string =>
  marks
    .map(({ x, y, label }) => {
      if (label === undefined) return ''
      const fits = x + APART + widthOf(label) < right
      return text(fits ? x + APART : x - APART, y + 4, label, fits ? {} : { 'text-anchor': 'end' })
    })
    .join('')

/** Labels lie on the line: from their point towards the next, at the last one towards the one before. */
const alongLine = (marks: readonly Mark[]): string =>
  marks
    .map((mark, k) => {
      const next = marks[k + 1]
      const [from, to] = next ? [mark, next] : [marks[k - 1], mark]
      if (mark.label === undefined || !from) return ''
      const angle = (Math.atan2(to.y - from.y, to.x - from.x) * 180) / Math.PI
      const { x, y } = mark
      return text(next ? x + APART : x - APART, y - 6, mark.label, {
        ...(next ? {} : { 'text-anchor': 'end' }),
        transform: `rotate(${angle.toFixed(2)} ${x.toFixed(2)} ${y.toFixed(2)})`,
      })
    })
    .join('')

/** The same values on both axes. */
function equal(x: Scale, y: Scale, values: readonly number[]): string {
  const [low, high] = [Math.min(...values), Math.max(...values)]
  return element('line', {
    x1: x.at(low),
    y1: y.at(low),
    x2: x.at(high),
    y2: y.at(high),
    stroke: '#999999',
    'stroke-dasharray': DASHES,
  })
}
