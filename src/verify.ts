/**
 * Comparing what a device computed with the reference. Outputs are poisoned before the run, so that an element
 * nobody writes is found; a NaN only passes where the reference has one.
 */

import { factorsNotFinite } from './bind/factors.ts'
import type { Bound } from './bind/index.ts'
import { referenceInputs } from './bind/reference.ts'
import type { Executable } from './execute.ts'
import type { Tensor } from './formats/tensor.ts'
import { decoder } from './formats/values.ts'
import { type Dtype, isFloat } from './ir/dtype.ts'
import {
  type RefOptions,
  type RefOutputs,
  type RefResult,
  type RefSample,
  reference,
} from './ir/reference/index.ts'
import type { Kernel1 } from './ir/stage1.ts'

export interface Verification {
  readonly ok: boolean
  /** Largest |x - r| / max(|r|, scale of r), over all outputs; the scale is the root mean square. */
  readonly maxRelativeError: number
  readonly maxAbsoluteError: number
  /** What is wrong, for people: one line an output that disagrees. */
  readonly problems: readonly string[]
  /** Where only some coordinates were compared: which. */
  readonly sampled: RefSample | null
  /** Milliseconds of the run that was compared, on the host's clock: a first run. */
  readonly runTime: number
}

/** Rounding of one operation, and slack for sums of many: relative error up to TOLERANCE passes. */
const TOLERANCE: Readonly<Record<Dtype, number>> = {
  f64: 1e-9,
  f32: 2e-4,
  f16: 2e-2,
  bf16: 1e-1,
  i32: 0,
  u32: 0,
  i8: 0,
  u8: 0,
  bool: 0,
}

/** What the reference computes from the data of an executable; a sample of it where that is asked for and sound. */
export const expectedOf = (source: Kernel1, bound: Bound, options: RefOptions = {}): RefOutputs =>
  reference(source, referenceInputs(source, bound), options)

/** Runs on poisoned memory and compares every output with the reference. */
export const verify = (
  source: Kernel1,
  executable: Executable,
  options: RefOptions = {},
): Promise<Verification> => verifyAgainst(executable, expectedOf(source, executable.bound, options))

/** The same with results of the reference at hand. */
export async function verifyAgainst(executable: Executable, expected: RefOutputs): Promise<Verification> {
  await executable.reset()
  await executable.poison()
  const start = performance.now()
  await executable.run()
  const runTime = performance.now() - start
  const { sampled } = expected
  let relative = 0
  let absolute = 0
  const problems: string[] = []
  for (const [name, want] of Object.entries(expected.buffers)) {
    const got = await executable.read(name)
    const c = compare(name, got, want, chosen(name, want, sampled))
    relative = Math.max(relative, c.relative)
    absolute = Math.max(absolute, c.absolute)
    if (c.problem) problems.push(c.strange ? withCause(c.problem, executable.bound) : c.problem)
  }
  return {
    ok: problems.length === 0,
    maxRelativeError: relative,
    maxAbsoluteError: absolute,
    problems,
    sampled,
    runTime,
  }
}

function withCause(problem: string, bound: Bound): string {
  const cause = factorsNotFinite(bound)
  return cause ? `${problem}; ${cause}` : problem
}

/** Whether an element of an output is one that the reference computed. */
function chosen(name: string, want: RefResult, sampled: RefSample | null): (element: number) => boolean {
  const dim = sampled?.dims[name]
  if (!sampled || dim === undefined) return () => true
  const computed = new Set(sampled.coordinates)
  if (want.kind === 'sparse') return (e) => computed.has(want.coords[dim]![e]!)
  const stride = want.shape.slice(dim + 1).reduce((a, b) => a * b, 1)
  return (e) => computed.has(Math.floor(e / stride) % want.shape[dim]!)
}

interface Comparison {
  readonly relative: number
  readonly absolute: number
  readonly problem: string | null
  /** One of the two is finite where they differ most, and the other not. */
  readonly strange?: boolean
}

function compare(
  name: string,
  got: Tensor,
  want: RefResult,
  computed: (element: number) => boolean,
): Comparison {
  const wrong = (problem: string): Comparison => ({
    relative: Number.POSITIVE_INFINITY,
    absolute: Number.POSITIVE_INFINITY,
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
  for (const [e, r] of want.values.entries())
    if (Number.isFinite(r) && computed(e)) {
      square += r * r
      finite++
    }
  const scale = finite > 0 ? Math.sqrt(square / finite) : 0
  let relative = 0
  let absolute = 0
  let worst = -1
  for (let e = 0; e < values.length; e++) {
    const x = read ? read(values[e]!) : values[e]!
    const r = want.values[e]!
    if (x === r || (Number.isNaN(x) && Number.isNaN(r)) || !computed(e)) continue
    const error = Math.abs(x - r)
    const part = Number.isFinite(error)
      ? error / Math.max(Math.abs(r), scale, Number.MIN_VALUE)
      : Number.POSITIVE_INFINITY
    if (!Number.isNaN(error)) absolute = Math.max(absolute, error)
    if (part > relative) {
      relative = part
      worst = e
    }
  }
  const tolerance = isFloat(got.dtype) ? TOLERANCE[got.dtype] : 0
  if (relative <= tolerance) return { relative, absolute, problem: null }
  const at =
    want.kind === 'sparse'
      ? want.coords.map((c) => c[worst]).join(', ')
      : unflatten(worst, want.shape).join(', ')
  return {
    relative,
    absolute,
    strange: !Number.isFinite(relative),
    problem: `${name}[${at}] is ${read ? read(values[worst]!) : values[worst]}, the reference has ${want.values[worst]} (relative error ${relative.toExponential(2)}, allowed ${tolerance})`,
  }
}

function unflatten(at: number, shape: readonly number[]): number[] {
  const out: number[] = []
  let rest = at
  for (let d = shape.length - 1; d >= 0; d--) {
    out.unshift(rest % shape[d]!)
    rest = Math.floor(rest / shape[d]!)
  }
  return out
}
