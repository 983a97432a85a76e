/**
 * Comparing what a device computed with the reference. Outputs are poisoned before the run, so that an element
 * nobody writes is found; a NaN only passes where the reference has one.
 */

import { coordinatesAt } from '../ir/arrays.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import { UNIT } from '../reference/error.ts'
import type { RefOptions, RefOutputs, RefResult, RefSample } from '../reference/index.ts'
import type { Tensor } from '../storage/tensor.ts'
import { decoder } from '../storage/values.ts'
import type { Bound } from './bind/index.ts'
import { factorsNotFinite } from './bind/padding-factors.ts'
import { expectedOf } from './bind/reference-inputs.ts'
import type { Executable } from './execute.ts'
import { type Place, reducerFault } from './reducer-faults.ts'

export interface Verification {
  readonly ok: boolean
  /** Largest |x - r| / max(|r|, scale of r), over all outputs; the scale is the root mean square. */
  readonly maxRelativeError: number
  readonly maxAbsoluteError: number
  /** What is wrong, for people: one line an output that disagrees, and what may have led to it where that is known. */
  readonly problems: readonly string[]
  /**
   * Elements that were not compared: a comparison, `floor` or cast on the way had operands within their rounding errors of
   * the jump, so that correct programs differ.
   */
  readonly undecided: number
  /**
   * Where it disagrees, and a reducer that the program declares violates its laws for the values here: which, and how. What
   * schedules compute then depends on their order; none of them is wrong.
   */
  readonly reducerFault: string | null
  /** Where only some coordinates were compared: which. */
  readonly sampled: RefSample | null
  /** Milliseconds of the run that was compared, on the host's clock: a first run. */
  readonly runTime: number
}

/**
 * Relative error that passes wherever anything is rounded, in the type that values are computed in, as slack for devices'
 * own functions; where the reference knows of larger errors (`reference/error.ts`), those pass.
 */
const SLACK: Readonly<Partial<Record<Dtype, number>>> = { f64: 1e-9, f32: 2e-4, f16: 2e-4, bf16: 2e-4 }

/** Runs on poisoned memory and compares every output with the reference. */
export async function verify(
  source: Kernel1,
  executable: Executable,
  options: RefOptions = {},
): Promise<Verification> {
  const bound = await executable.whole()
  return verifyAgainst(source, executable, expectedOf(source, bound, options), bound)
}

/** The same with results of the reference at hand, and what they were computed from. */
export async function verifyAgainst(
  source: Kernel1,
  executable: Executable,
  expected: RefOutputs,
  from?: Bound,
): Promise<Verification> {
  const bound =
    from ?? (await executable.downloaded(await executable.boundFor(Object.keys(expected.buffers))))
  await executable.reset()
  await executable.poison()
  const start = performance.now()
  await executable.run()
  const runTime = performance.now() - start
  const { sampled } = expected
  let relative = 0
  let absolute = 0
  let undecided = 0
  let isStrange = false
  const problems: string[] = []
  const places: Place[] = []
  for (const [name, want] of Object.entries(expected.buffers)) {
    const got = await executable.read(name, bound)
    const c = compare(name, got, want, chosen(name, want, sampled))
    relative = Math.max(relative, c.relative)
    absolute = Math.max(absolute, c.absolute)
    undecided += c.undecided
    if (c.problem) problems.push(c.problem)
    isStrange ||= c.strange === true
    if (c.element !== undefined) places.push({ buffer: name, element: c.element })
  }
  const cause = isStrange ? factorsNotFinite(bound) : undefined
  if (cause) problems.push(cause)
  const fault = problems.length > 0 ? reducerFault(source, bound, sampled, places) : null
  if (fault) problems.push(fault)
  return {
    ok: problems.length === 0,
    maxRelativeError: relative,
    maxAbsoluteError: absolute,
    problems,
    undecided,
    reducerFault: fault,
    sampled,
    runTime,
  }
}

/** Which elements of an output the reference computed, in order; `null`: all of them. */
function chosen(name: string, want: RefResult, sampled: RefSample | null): Float64Array | null {
  const dim = sampled && Object.hasOwn(sampled.dims, name) ? sampled.dims[name] : undefined
  if (!sampled || dim === undefined) return null
  const extent = want.shape[dim]!
  const computed = new Uint8Array(extent)
  for (const c of sampled.coordinates) computed[c] = 1
  const out: number[] = []
  if (want.kind === 'sparse') {
    const column = want.coords[dim]!
    for (let e = 0; e < column.length; e++) if (computed[column[e]!]) out.push(e)
    return Float64Array.from(out)
  }
  const stride = want.shape.slice(dim + 1).reduce((a, b) => a * b, 1)
  for (let first = 0, line = 0; first < want.values.length; first += stride, line++)
    if (computed[line % extent]) for (let e = first; e < first + stride; e++) out.push(e)
  return Float64Array.from(out)
}

/** How an output differs from the reference by more than rounding, for people, or `null`. */
export const problemOf = (name: string, got: Tensor, want: RefResult): string | null =>
  compare(name, got, want, null).problem

interface Comparison {
  readonly relative: number
  readonly absolute: number
  readonly undecided: number
  readonly problem: string | null
  /** Which differs most. */
  readonly element?: number
  /** One of the two is finite where they differ most, and the other not. */
  readonly strange?: boolean
}

function compare(
  name: string,
  got: Tensor,
  want: RefResult,
  /** Those to compare; `null`: all. */
  elements: Float64Array | null,
): Comparison {
  const wrong = (problem: string): Comparison => ({
    relative: Number.POSITIVE_INFINITY,
    absolute: Number.POSITIVE_INFINITY,
    undecided: 0,
    problem: `${name}: ${problem}`,
  })
  const values = got.values!
  if (values.length !== want.values.length)
    return wrong(`${values.length} values, the reference has ${want.values.length}`)
  if (want.kind === 'sparse' && got.kind === 'coords')
    for (const [d, column] of want.coords.entries()) {
      const at = column.findIndex((c, e) => c !== got.coords[d]![e])
      if (at >= 0)
        return wrong(
          `entry ${at} is at ${got.coords.map((c) => c[at]).join(', ')}, the reference has ${want.coords.map((c) => c[at]).join(', ')}`,
        )
    }
  const read = decoder(got.dtype)
  let square = 0
  let finite = 0
  const count = elements?.length ?? values.length
  for (let k = 0; k < count; k++) {
    const r = want.values[elements ? elements[k]! : k]!
    if (!Number.isFinite(r)) continue
    square += r * r
    finite++
  }
  const scale = finite > 0 ? Math.sqrt(square / finite) : 0
  let relative = 0
  let absolute = 0
  let undecided = 0
  let worst = { at: -1, beyond: 0, allowed: 0 }
  for (let k = 0; k < count; k++) {
    const e = elements ? elements[k]! : k
    const bound = want.errors[e]!
    if (bound === Number.POSITIVE_INFINITY) {
      undecided++
      continue
    }
    const x = read ? read(values[e]!) : values[e]!
    const r = want.values[e]!
    if (x === r || (Number.isNaN(x) && Number.isNaN(r))) continue
    const error = Math.abs(x - r)
    const size = Math.max(Math.abs(r), scale, Number.MIN_VALUE)
    const slack =
      bound > 0 && Number.isFinite(r) ? (SLACK[got.dtype] ?? 0) * size + 2 * UNIT[got.dtype] * Math.abs(r) : 0
    const allowed = Math.max(bound, slack)
    if (Number.isFinite(error)) {
      absolute = Math.max(absolute, error)
      relative = Math.max(relative, error / size)
    }
    if (error <= allowed) continue
    if (!Number.isFinite(error)) relative = Number.POSITIVE_INFINITY
    const beyond = Number.isFinite(error)
      ? error / Math.max(allowed, Number.MIN_VALUE)
      : Number.POSITIVE_INFINITY
    if (worst.at < 0 || beyond > worst.beyond) worst = { at: e, beyond, allowed }
  }
  if (worst.at < 0) return { relative, absolute, undecided, problem: null }
  const at =
    want.kind === 'sparse'
      ? want.coords.map((c) => c[worst.at]).join(', ')
      : coordinatesAt(worst.at, want.shape).join(', ')
  const value = read ? read(values[worst.at]!) : values[worst.at]
  return {
    relative,
    absolute,
    strange: !Number.isFinite(relative),
    undecided,
    element: worst.at,
    problem: `${name}[${at}] is ${value}, the reference has ${want.values[worst.at]} (allowed error ${worst.allowed.toExponential(2)})`,
  }
}
