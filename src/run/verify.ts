/**
 * Comparing device results with the reference. Outputs are poisoned before the run, so that an element without a writer is
 * found; a NaN only passes where the reference has one.
 */

import { countText } from '../ast/count-text.ts'
import type { Kernel1 } from '../ir/stage1.ts'
import type { RefOptions, RefOutputs, RefSample } from '../reference/index.ts'
import type { Bound } from './bind/index.ts'
import { factorsNotFinite } from './bind/padding-factors.ts'
import { expectedOf } from './bind/reference-inputs.ts'
import { type Coverage, compareOutput } from './compare-outputs.ts'
import type { Executable } from './execute.ts'
import { precisionOf } from './instruction-precision.ts'
import { type Place, reducerFault } from './reducer-faults.ts'

export interface Verification extends Coverage {
  /** `agrees` or `empty`. */
  readonly ok: boolean
  /** `undecided`: elements, of which none was compared. `empty`: the outputs have no elements. */
  readonly verdict: 'agrees' | 'differs' | 'undecided' | 'empty'
  /** Largest |x - r| / max(|r|, scale of r), over all outputs; the scale is the root mean square. */
  readonly maxRelativeError: number
  readonly maxAbsoluteError: number
  /** What is wrong, for people: one line an output that disagrees, and what may have led to it where that is known. */
  readonly problems: readonly string[]
  /** Why the comparison says little, for people: one line each. */
  readonly warnings: readonly string[]
  /**
   * Where it disagrees, and a reducer that the program declares violates its laws for the values here: which, and how. What
   * schedules compute then depends on their order; none of them is wrong.
   */
  readonly reducerFault: string | null
  /** Where only some coordinates were compared: which. */
  readonly sample: RefSample | null
  /** Milliseconds of the run that was compared, on the host's clock: a first run. */
  readonly runTime: number
}

/** The share of the elements from which on a verification warns that they were not compared, or that 0 would have passed. */
const MUCH = 0.1

/** Runs on poisoned memory and compares every output with the reference. */
export async function verify(
  source: Kernel1,
  executable: Executable,
  options: RefOptions = {},
): Promise<Verification> {
  const bound = await executable.boundFromDevice()
  const precise = { ...options, ...precisionOf(executable.program.plan) }
  return verifyAgainst(source, executable, expectedOf(source, bound, precise), bound)
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
  const total = { elements: 0, compared: 0, undecided: 0, weak: 0, notANumber: 0 }
  let isStrange = false
  const problems: string[] = []
  const places: Place[] = []
  for (const [name, want] of Object.entries(expected.buffers)) {
    const got = await executable.read(name, bound)
    const c = compareOutput(name, got, want, sampled)
    relative = Math.max(relative, c.relative)
    absolute = Math.max(absolute, c.absolute)
    for (const key of COUNTS) total[key] += c[key]
    if (c.problem) problems.push(c.problem)
    isStrange ||= c.strange === true
    if (c.element !== undefined) places.push({ buffer: name, element: c.element })
  }
  const cause = isStrange ? factorsNotFinite(bound) : undefined
  if (cause) problems.push(cause)
  const fault = problems.length > 0 ? reducerFault(source, bound, sampled, places) : null
  if (fault) problems.push(fault)
  const verdict = problems.length > 0 ? 'differs' : verdictOf(total)
  if (verdict === 'undecided') problems.push(nothingCompared(total))
  return {
    ...total,
    ok: problems.length === 0,
    verdict,
    maxRelativeError: relative,
    maxAbsoluteError: absolute,
    problems,
    warnings: warningsOf(total),
    reducerFault: fault,
    sample: sampled,
    runTime,
  }
}

const COUNTS = ['elements', 'compared', 'undecided', 'weak', 'notANumber'] as const

const verdictOf = ({ elements, compared }: Coverage): 'agrees' | 'undecided' | 'empty' =>
  compared > 0 ? 'agrees' : elements > 0 ? 'undecided' : 'empty'

const nothingCompared = ({ undecided }: Coverage): string =>
  undecided > 0
    ? `no element was compared: ${undecided === 1 ? 'it is' : `all ${countText(undecided)} are`} decided by rounding`
    : 'no element was compared: the sample holds none'

function warningsOf({ compared, undecided, weak }: Coverage): string[] {
  const percent = (part: number, of: number): string => `${Math.round((100 * part) / of)} %`
  return [
    ...(compared > 0 && undecided > MUCH * (compared + undecided)
      ? [
          `${percent(undecided, compared + undecided)} of the elements are decided by rounding, and not compared`,
        ]
      : []),
    ...(weak > MUCH * compared
      ? [
          `of ${percent(weak, compared)} of the elements the allowed error is as large as the value: 0 would pass`,
        ]
      : []),
  ]
}
