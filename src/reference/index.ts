/**
 * The reference: the semantics of a kernel, computed over coordinates. It interprets Stage I and shares no code with
 * the modules that it validates: structure is built by its own sorting, coordinates are searched for, loops are
 * closures.
 */
import { chainTo, isDenseChain } from '../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../ir/coordinates/stage1.ts'
import { allAxesOf, writersIn } from '../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../ir/expressions/expr.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { compileBody, type Restriction } from './evaluation/compile-statements.ts'
import type { OnReduce } from './tensors/cells.ts'
import type { RefInputs, RefOptions, RefOutputs, RefResult, RefSample } from './tensors/inputs-and-results.ts'
import { bindInputs, callerAxes, type ReferenceState } from './tensors/place-tensors.ts'
import { coordinatesOf, resultOf, roundElements, type Tensor } from './tensors/reference-buffers.ts'
import { isTranslated, membership, toCallerAxes } from './tensors/reformatted-tensors.ts'

export type { OnReduce } from './tensors/cells.ts'
export type {
  RefDenseResult,
  RefInputs,
  RefOptions,
  RefOutputs,
  RefResult,
  RefSample,
  RefStructure,
  RefTensor,
} from './tensors/inputs-and-results.ts'

/**
 * Runs a kernel on the caller's tensors. Values are float64, or exact integers that wrap to their buffer's type.
 * @throws SptError `reference/…` for invalid inputs and for writes to absent coordinates
 */
export function reference(kernel: Kernel1, inputs: RefInputs, options: RefOptions = {}): RefOutputs {
  const bound = bindInputs(kernel, inputs, options.sample ?? null)
  const sampled = run(kernel, bound, options)
  const outputs = kernel.buffers.filter((b) => b.role === 'out' || b.role === 'inout')
  return {
    buffers: Object.fromEntries(outputs.map((b) => [b.name, readBuffer(kernel, b, bound)])),
    sampled,
  }
}

/**
 * The operands of the declared reducers, in the order in which the reference combines them. @param sampled the
 * coordinates to compute, as returned with a result @throws as `reference`
 */
export function reductions(
  kernel: Kernel1,
  inputs: RefInputs,
  { sampled, visits }: { readonly sampled: RefSample | null; readonly visits: number },
  onReduce: OnReduce,
): void {
  const bound = bindInputs(kernel, inputs, sampled?.coordinates ?? null)
  const observed = { ...bound, ctx: { ...bound.ctx, onReduce } }
  run(kernel, observed, { visits })
}

/** Runs the kernel; returns the sample that the kernel was restricted to. */
function run(
  kernel: Kernel1,
  bound: ReferenceState,
  { visits, precision }: Pick<RefOptions, 'visits' | 'precision'>,
): RefSample | null {
  initialise(kernel, bound)
  const { restriction, sampled } = restrict(bound)
  const ctx = { ...bound.ctx, precision, ...(visits === undefined ? {} : { visits: { v: visits } }) }
  compileBody(kernel.body, bound.scope, ctx, restriction)()
  return sampled
}

/**
 * The initial value of a buffer's elements: the identity if a reduction writes them first, otherwise the fill value.
 */
function initialValueOf(writers: ReturnType<typeof writersIn>, { name, fill, dtype }: Buffer1): Expr {
  const writesBuffer = (t: Load): boolean => t.buffer === name
  const first = writers.find((s) => s.targets.some(writesBuffer))
  return first?.kind === 'reduce'
    ? first.reducer.identity[first.targets.findIndex(writesBuffer)]!
    : constant(fill, dtype)
}

function initialise(kernel: Kernel1, bound: ReferenceState): void {
  const writers = writersIn(kernel.body)
  for (const b of kernel.buffers) {
    if (b.role !== 'out' && b.role !== 'local') continue
    const initialValue = initialValueOf(writers, b)
    bound.ctx.tensors.get(b.name)!.data.fill(bound.evaluate(initialValue, new Map()))
  }
  const summed = new Set(
    writers.flatMap((s) => (s.kind === 'reduce' && s.reducer.name === '+' ? s.targets[0]!.buffer : [])),
  )
  for (const b of kernel.buffers) {
    if (b.role === 'in') continue
    const t = bound.ctx.tensors.get(b.name)!
    const n = t.data.length
    const sums =
      isFloat(b.dtype) && summed.has(b.name)
        ? { magnitude: new Float64Array(n), terms: new Float64Array(n), fractional: new Uint8Array(n) }
        : null
    t.bounds = { error: t.bounds?.error ?? new Float64Array(n), sums }
  }
}

function restrict({ sample }: ReferenceState): {
  restriction: Restriction | null
  sampled: RefSample | null
} {
  if (!sample) return { restriction: null, sampled: null }
  const { sampling, coordinates, mask } = sample
  const { axis, iters, dims } = sampling
  return {
    restriction: { iters, mask, coordinates },
    sampled: { axis, coordinates, dims: Object.fromEntries(dims) },
  }
}

/** A buffer in the caller's coordinates. */
function readBuffer(kernel: Kernel1, b: Buffer1, bound: ReferenceState): RefResult {
  const t = bound.ctx.tensors.get(b.name)!
  const names = callerAxes(kernel, b)
  const axes = allAxesOf(kernel)
  const shape = names.map((n) => bound.extentOf(axes.get(n)!))
  if (names.join() === b.axes.join()) return resultOf(t, shape)
  return readThroughInverse(kernel, t, names, shape, bound)
}

/** Reads a buffer through the inverse maps, at the coordinates of the caller's structure only. */
function readThroughInverse(
  kernel: Kernel1,
  t: Tensor,
  names: readonly string[],
  shape: readonly number[],
  bound: ReferenceState,
): RefResult {
  const axes = allAxesOf(kernel)
  const { values, errors } = roundElements(t)
  const columns = { axes: t.buffer.axes, columns: coordinatesOf(t), length: t.data.length }
  const { columns: original, keep } = toCallerAxes(
    columns,
    kernel.reformats.filter(isTranslated),
    bound.evaluate,
    bound.extentOf,
  )
  const orderedColumns = names.map((n) => original.columns[original.axes.indexOf(n)]!)
  const sparse = names.filter((n) => !isDenseChain(axes, n))
  if (sparse.length === 0) {
    const size = shape.reduce((n, x) => n * x, 1)
    const scatterDense = (from: Float64Array, fill: number): Float64Array => {
      const out = new Float64Array(size).fill(fill)
      for (let e = 0; e < original.length; e++)
        if (keep[e]) out[orderedColumns.reduce((a, c, k) => a * shape[k]! + c[e]!, 0)] = from[e]!
      return out
    }
    return {
      kind: 'dense',
      shape,
      values: scatterDense(values, t.buffer.fill),
      errors: scatterDense(errors, 0),
    }
  }
  const treeAxes = names.filter((n) => sparse.some((s) => chainTo(axes, s).includes(n)))
  const tree = treeAxes.map((n) => orderedColumns[names.indexOf(n)]!)
  const isStored = membership(treeAxes, bound.sources)
  const entries: number[] = []
  for (let e = 0; e < original.length; e++) if (keep[e] && isStored(tree.map((c) => c[e]!))) entries.push(e)
  entries.sort((x, y) => {
    for (const c of orderedColumns) if (c[x] !== c[y]) return c[x]! - c[y]!
    return 0
  })
  return {
    kind: 'sparse',
    shape,
    coords: orderedColumns.map((c) => Int32Array.from(entries, (e) => c[e]!)),
    values: Float64Array.from(entries, (e) => values[e]!),
    errors: Float64Array.from(entries, (e) => errors[e]!),
  }
}
