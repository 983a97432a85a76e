/**
 * The reference: the semantics of a kernel, computed over coordinates. It interprets Stage I and shares no code with
 * the modules that it validates: structure is built by its own sorting, coordinates are searched for, loops are
 * closures.
 */
import { chainTo, isDenseChain } from '../ir/axis.ts'
import { isFloat } from '../ir/dtype.ts'
import { constant, type Expr, type Load } from '../ir/expr.ts'
import type { Buffer1, Kernel1 } from '../ir/stage1.ts'
import { allAxesOf, writersIn } from '../ir/stage1-tree.ts'
import type { OnReduce } from './cells.ts'
import { compileBody, type Restriction } from './compile-statements.ts'
import type { RefInputs, RefOptions, RefOutputs, RefResult, RefSample } from './inputs-and-results.ts'
import { type Bound, bind, callerAxes } from './place-tensors.ts'
import { coordinatesOf, finished, resultOf, type Tensor } from './reference-buffers.ts'
import { backward, isTranslated, membership } from './reformatted-tensors.ts'

export type { OnReduce } from './cells.ts'
export type {
  RefCoords,
  RefDense,
  RefDenseResult,
  RefInputs,
  RefOptions,
  RefOutputs,
  RefResult,
  RefSample,
  RefSparseResult,
  RefStructure,
  RefTensor,
} from './inputs-and-results.ts'

/**
 * Runs a kernel on the caller's tensors. Values are float64, or exact integers that wrap to their buffer's type.
 * @throws SptError `reference/…` for invalid inputs and for writes to absent coordinates
 */
export function reference(kernel: Kernel1, inputs: RefInputs, options: RefOptions = {}): RefOutputs {
  const bound = bind(kernel, inputs, options.sample ?? null)
  const sampled = run(kernel, bound, options)
  const outputs = kernel.buffers.filter((b) => b.role === 'out' || b.role === 'inout')
  return {
    buffers: Object.fromEntries(outputs.map((b) => [b.name, read(kernel, b, bound)])),
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
  const bound = bind(kernel, inputs, sampled?.coordinates ?? null)
  const told = { ...bound, ctx: { ...bound.ctx, onReduce } }
  run(kernel, told, { visits })
}

/** Runs the kernel; returns the sample that it was restricted to. */
function run(
  kernel: Kernel1,
  bound: Bound,
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
function initialOf(writers: ReturnType<typeof writersIn>, { name, fill, dtype }: Buffer1): Expr {
  const isOf = (t: Load): boolean => t.buffer === name
  const first = writers.find((s) => s.targets.some(isOf))
  return first?.kind === 'reduce'
    ? first.reducer.identity[first.targets.findIndex(isOf)]!
    : constant(fill, dtype)
}

function initialise(kernel: Kernel1, bound: Bound): void {
  const writers = writersIn(kernel.body)
  for (const b of kernel.buffers) {
    if (b.role !== 'out' && b.role !== 'local') continue
    const start = initialOf(writers, b)
    bound.ctx.tensors.get(b.name)!.data.fill(bound.evaluate(start, new Map()))
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

function restrict({ sample }: Bound): { restriction: Restriction | null; sampled: RefSample | null } {
  if (!sample) return { restriction: null, sampled: null }
  const { sampling, coordinates, mask } = sample
  const { axis, iters, dims } = sampling
  return {
    restriction: { iters, mask, coordinates },
    sampled: { axis, coordinates, dims: Object.fromEntries(dims) },
  }
}

/** Reads a buffer in the caller's coordinates. */
function read(kernel: Kernel1, b: Buffer1, bound: Bound): RefResult {
  const t = bound.ctx.tensors.get(b.name)!
  const names = callerAxes(kernel, b)
  const axes = allAxesOf(kernel)
  const shape = names.map((n) => bound.extentOf(axes.get(n)!))
  if (names.join() === b.axes.join()) return resultOf(t, shape)
  return readBack(kernel, t, names, shape, bound)
}

/** Reads a buffer through the inverse maps, at the coordinates of the caller's structure only. */
function readBack(
  kernel: Kernel1,
  t: Tensor,
  names: readonly string[],
  shape: readonly number[],
  bound: Bound,
): RefResult {
  const axes = allAxesOf(kernel)
  const { values, errors } = finished(t)
  const columns = { axes: t.buffer.axes, columns: coordinatesOf(t), length: t.data.length }
  const { columns: old, keep } = backward(
    columns,
    kernel.reformats.filter(isTranslated),
    bound.evaluate,
    bound.extentOf,
  )
  const ordered = names.map((n) => old.columns[old.axes.indexOf(n)]!)
  const sparse = names.filter((n) => !isDenseChain(axes, n))
  if (sparse.length === 0) {
    const size = shape.reduce((n, x) => n * x, 1)
    const placed = (from: Float64Array, fill: number): Float64Array => {
      const to = new Float64Array(size).fill(fill)
      for (let e = 0; e < old.length; e++)
        if (keep[e]) to[ordered.reduce((a, c, k) => a * shape[k]! + c[e]!, 0)] = from[e]!
      return to
    }
    return { kind: 'dense', shape, values: placed(values, t.buffer.fill), errors: placed(errors, 0) }
  }
  const inTree = names.filter((n) => sparse.some((s) => chainTo(axes, s).includes(n)))
  const tree = inTree.map((n) => ordered[names.indexOf(n)]!)
  const holds = membership(inTree, bound.sources)
  const kept: number[] = []
  for (let e = 0; e < old.length; e++) if (keep[e] && holds(tree.map((c) => c[e]!))) kept.push(e)
  kept.sort((x, y) => {
    for (const c of ordered) if (c[x] !== c[y]) return c[x]! - c[y]!
    return 0
  })
  return {
    kind: 'sparse',
    shape,
    coords: ordered.map((c) => Int32Array.from(kept, (e) => c[e]!)),
    values: Float64Array.from(kept, (e) => values[e]!),
    errors: Float64Array.from(kept, (e) => errors[e]!),
  }
}
