/**
 * The reference: the semantics of a kernel, computed over coordinates. It interprets Stage I and shares no code with
 * the modules that it validates: structure is built by its own sorting, coordinates are searched for, loops are
 * closures.
 */
import { repeat, type Section, sectionsOf } from '../ir/coordinates/rounds.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../ir/coordinates/stage1.ts'
import { writersIn } from '../ir/coordinates/stage1-tree.ts'
import { constant, type Expr, type Load } from '../ir/expressions/expr.ts'
import { isFloat } from '../ir/values/dtype.ts'
import { type Bounds, UNDECIDED } from './error.ts'
import { compileBody, type Restriction } from './evaluation/compile-statements.ts'
import type { OnReduce } from './tensors/cells.ts'
import type { RefInputs, RefOptions, RefOutputs, RefResult, RefSample } from './tensors/inputs-and-results.ts'
import { bindInputs, type ReferenceState } from './tensors/place-tensors.ts'
import { resultOf } from './tensors/reference-buffers.ts'
import { setElement } from './updates.ts'

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
    buffers: Object.fromEntries(outputs.map((b) => [b.name, readBuffer(b, bound)])),
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
  { visits, precision, maxRounds }: Pick<RefOptions, 'visits' | 'precision' | 'maxRounds'>,
): RefSample | null {
  initialise(kernel, bound)
  const { restriction, sampled } = restrict(bound)
  const ctx = { ...bound.ctx, precision, ...(visits !== undefined && { visits: { v: visits } }) }
  const compiled = (body: Kernel1['body']): (() => void) => compileBody(body, bound.scope, ctx, restriction)
  for (const s of sectionsOf(kernel.body))
    if (s.kind === 'section') runRounds(kernel, s, bound, compiled(s.body), maxRounds)
    else compiled([s])()
  return sampled
}

/** Runs rounds. The number of rounds is exact only if the condition is exact. */
function runRounds(
  { buffers }: Kernel1,
  { rounds, body }: Section<Stmt1>,
  { ctx, evaluate }: ReferenceState,
  round: () => void,
  most: number | undefined,
): void {
  const { count, flag, carried } = rounds
  const writers = writersIn(body)
  const written = buffers.filter((b) => writers.some((s) => s.targets.some((t) => t.buffer === b.name)))
  const temporaries = written.filter((b) => b.role === 'local' && !carried.includes(b.name))
  const test = flag === undefined ? undefined : ctx.tensors.get(flag)!
  let isExact = true
  const isLast = (): boolean => {
    isExact &&= !test || test.bounds!.error[0] === 0
    return test?.data[0] === 0
  }
  repeat(
    rounds,
    count && evaluate(count),
    isLast,
    () => {
      for (const b of temporaries) {
        const t = ctx.tensors.get(b.name)!
        t.data.fill(evaluate(initialValueOf(writers, b)))
        t.bounds!.error.fill(0)
        for (const sums of Object.values(t.bounds!.sums ?? {})) sums.fill(0)
      }
      round()
    },
    most,
  )
  if (!isExact) for (const b of written) ctx.tensors.get(b.name)!.bounds!.error.fill(UNDECIDED)
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
    bound.ctx.tensors.get(b.name)!.data.fill(bound.evaluate(initialValue))
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
    const bounds: Bounds = { error: t.bounds?.error ?? new Float64Array(n), sums }
    t.bounds = bounds
    // Initial values are operands of the sums, too.
    if (sums)
      t.data.forEach((v, a) => {
        if (v !== 0) setElement(bounds, a, v, bounds.error[a]!)
      })
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

function readBuffer({ name, axes }: Buffer1, { ctx, extentOf }: ReferenceState): RefResult {
  return resultOf(
    ctx.tensors.get(name)!,
    axes.map((a) => extentOf(ctx.axes.get(a)!)),
  )
}
