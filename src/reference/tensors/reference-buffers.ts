/** Buffers of the reference: one float64 per element, addressed by one leaf node per tree. */
import { failWith, invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../ast/print/message-text.ts'
import type { Buffer1 } from '../../ir/coordinates/stage1.ts'
import { type Dtype, isFloat } from '../../ir/values/dtype.ts'
import { rounding } from '../../ir/values/half.ts'
import { wrap } from '../../ir/values/numeric.ts'
import { type Bounds, errorAt, monotoneError, roundedError, UNIT } from '../error.ts'
import { chainOf, coordinateOf, isDense, type Level, type Source } from './axis-trees.ts'
import type { RefResult } from './inputs-and-results.ts'

const MAX_ELEMENTS = 2 ** 31

export interface Tensor {
  readonly buffer: Buffer1
  /** The leaf level of each tree, in order of the roots' first appearance. */
  readonly leaves: readonly Level[]
  /** For each tree, the buffer's dimensions on its chain, root first. */
  readonly dims: readonly (readonly number[])[]
  readonly data: Float64Array
  /** Error bounds of a computed buffer; `null` if all elements are exact. */
  bounds: Bounds | null
}

/** The trees of a buffer, each a chain from a root. */
function treesOf(b: Buffer1, levels: ReadonlyMap<string, Level>): { leaves: Level[]; dims: number[][] } {
  const leaves: Level[] = []
  const dims: number[][] = []
  b.axes.forEach((name, k) => {
    const level = levels.get(name)
    invariant(level, `buffer ${b.name} is over ${name}, which has no storage`)
    const tree = level.parent ? leaves.indexOf(level.parent) : -1
    invariant(tree >= 0 || !level.parent, `buffer ${b.name}: axis ${name} does not follow its parent`)
    if (tree < 0) {
      leaves.push(level)
      dims.push([k])
    } else {
      leaves[tree] = level
      dims[tree]!.push(k)
    }
  })
  return { leaves, dims }
}

export function allocate(b: Buffer1, levels: ReadonlyMap<string, Level>): Tensor {
  const { leaves, dims } = treesOf(b, levels)
  const size = leaves.reduce((n, l) => n * l.count, 1)
  if (size > MAX_ELEMENTS)
    failWith(
      'reference/too-large',
      `buffer ${b.name} would hold ${countText(size)} elements; the reference stops at ${MAX_ELEMENTS}`,
      { ...spanOf(b.span), hint: 'verify on smaller sizes' },
    )
  return { buffer: b, leaves, dims, data: new Float64Array(size).fill(b.fill), bounds: null }
}

export const spanOf = (span: Span | undefined): { span?: Span } => (span ? { span } : {})

/** A function that converts a value to the type: floats round to nearest, integers wrap. */
export const toStored = (t: Dtype): ((x: number) => number) => (isFloat(t) ? rounding(t) : wrap(t))

/**
 * Stores the values of a placed source; values at equal coordinates are added before the sum is rounded to the buffer's
 * type.
 */
export function scatterSource(
  t: Tensor,
  s: Source,
  values: ArrayLike<number> | null,
  nodesOf: (axis: string) => Float64Array,
): void {
  const columns = t.leaves.map((l) => nodesOf(l.axis.name))
  const toType = toStored(t.buffer.dtype)
  const size = t.data.length
  const written = new Uint8Array(size)
  for (let e = 0; e < s.length; e++) {
    let a = 0
    for (let k = 0; k < columns.length; k++) a = a * t.leaves[k]!.count + columns[k]![e]!
    const v = values ? values[e]! : 1
    t.data[a] = written[a] ? t.data[a]! + v : v
    if (written[a] && isFloat(t.buffer.dtype)) {
      // Duplicates are added in the type of the values, in any order.
      t.bounds ??= { error: new Float64Array(size), sums: null }
      t.bounds.error[a]! += roundedError(t.data[a]!, UNIT[t.buffer.dtype] * Math.abs(v), t.buffer.dtype)
    }
    written[a] = 1
  }
  for (let a = 0; a < size; a++) if (written[a]) t.data[a] = toType(t.data[a]!)
}

/** Coordinates of every leaf; column k is dimension k of its chain. */
function leafCoordinates(leaf: Level): Int32Array[] {
  const chain = chainOf(leaf)
  const columns = chain.map(() => new Int32Array(leaf.count))
  const path = new Int32Array(chain.length)
  const visit = (k: number, parent: number): void => {
    const l = chain[k]!
    const lo = l.start ? l.start[parent]! : 0
    const hi = l.start ? l.start[parent + 1]! : l.count
    for (let q = lo; q < hi; q++) {
      path[k] = coordinateOf(l, parent, q)
      if (k + 1 < chain.length) visit(k + 1, q)
      else for (let c = 0; c < chain.length; c++) columns[c]![q] = path[c]!
    }
  }
  visit(0, 0)
  return columns
}

/** Every stored coordinate of a buffer, in storage order. */
function coordinatesOf(t: Tensor): Int32Array[] {
  const size = t.data.length
  const out = t.buffer.axes.map(() => new Int32Array(size))
  let stride = size
  t.leaves.forEach((leaf, k) => {
    stride = leaf.count === 0 ? 0 : stride / leaf.count
    const columns = leafCoordinates(leaf)
    for (let e = 0; e < size; e++) {
      const node = Math.floor(e / stride) % leaf.count
      columns.forEach((c, d) => {
        out[t.dims[k]![d]!]![e] = c[node]!
      })
    }
  })
  return out
}

/** Elements rounded to their type, and their error bounds. */
function roundElements(t: Tensor): { values: Float64Array; errors: Float64Array } {
  const { data, bounds, buffer } = t
  const errors = new Float64Array(data.length)
  if (!bounds) return { values: data, errors }
  const round = toStored(buffer.dtype)
  const values = new Float64Array(data.length)
  for (let a = 0; a < data.length; a++) {
    values[a] = round(data[a]!)
    errors[a] = monotoneError(
      round,
      data[a]!,
      errorAt(bounds, a, buffer.dtype, buffer.accumulate),
      values[a]!,
    )
  }
  return { values, errors }
}

export function resultOf(t: Tensor, shape: readonly number[]): RefResult {
  const { values, errors } = roundElements(t)
  if (!t.leaves.every(isDense)) return { kind: 'sparse', shape, coords: coordinatesOf(t), values, errors }
  if (t.dims.flat().every((d, k) => d === k)) return { kind: 'dense', shape, values, errors }
  // For interleaved trees, elements are ordered tree by tree.
  const coords = coordinatesOf(t)
  const reorder = (from: Float64Array): Float64Array => {
    const out = new Float64Array(from.length)
    for (let e = 0; e < from.length; e++) out[coords.reduce((a, c, k) => a * shape[k]! + c[e]!, 0)] = from[e]!
    return out
  }
  return { kind: 'dense', shape, values: reorder(values), errors: reorder(errors) }
}
