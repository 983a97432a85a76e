/**
 * Comparison of device results with the reference. Outputs are poisoned before the run, to detect unwritten elements. NaN passes only if
 * the reference is NaN too.
 */

import { countText } from '../../ast/print/message-text.ts'
import { Work } from '../../ast/work.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { LaunchPlan } from '../../plan/launch-plan.ts'
import type { RefOptions, RefOutputs, RefSample } from '../../reference/index.ts'
import { factorsNotFinite } from '../bind/checks/required-inputs.ts'
import type { Bound } from '../bind/index.ts'
import { expectedOf } from '../bind/results/reference-inputs.ts'
import type { Executable } from '../execution/execute.ts'
import { type Coverage, compareOutput, type Place, reducerFault } from './compare-outputs.ts'

export interface Verification extends Coverage {
  /** True if the verdict is `agrees` or `empty`. */
  readonly ok: boolean
  /** `undecided`: there are elements, but none could be compared. `empty`: the outputs have no elements. */
  readonly verdict: 'agrees' | 'differs' | 'undecided' | 'empty'
  /** Largest |x - r| / max(|r|, scale of r) over all outputs; the scale is the root mean square. */
  readonly maxRelativeError: number
  readonly maxAbsoluteError: number
  /** Problems as text: one line per output that disagrees, and likely causes. */
  readonly problems: readonly string[]
  /** Reasons why the comparison has little significance, as text, one line each. */
  readonly warnings: readonly string[]
  /**
   * The violated law of a declared reducer for the values of a disagreeing output, as text. Results then depend on the order of
   * combination, and no schedule is wrong. `null` if no law is violated.
   */
  readonly reducerFault: string | null
  /** The compared coordinates if only a sample was compared; otherwise null. */
  readonly sample: RefSample | null
  /** Milliseconds of the compared run (a first run), by the host's clock. */
  readonly runTime: number
}

/** Minimum fraction of undecided or weak elements for a warning. */
const MUCH = 0.1

/** Runs on poisoned memory, and compares every output with the reference. */
export async function verify(
  source: Kernel1,
  executable: Executable,
  options: RefOptions = {},
  work: Work = new Work(),
): Promise<Verification> {
  await work.checkpoint()
  const bound = await executable.boundFromDevice()
  const precise = { ...options, ...precisionOf(executable.program.plan) }
  work.begin('reference')
  const expected = expectedOf(source, bound, precise)
  await work.checkpoint()
  work.begin('compare')
  return verifyAgainst(source, executable, expected, bound)
}

/** Verifies against existing results of the reference; `from`: the data they were computed from. */
export async function verifyAgainst(
  source: Kernel1,
  executable: Executable,
  expected: RefOutputs,
  from?: Bound,
): Promise<Verification> {
  const bound = from ?? (await executable.boundFromDevice(Object.keys(expected.buffers)))
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

/** The precision of a plan's products as an option of the reference: instructions may keep fewer mantissa bits (tf32). */
export const precisionOf = ({ precision }: Pick<LaunchPlan, 'precision'>): Pick<RefOptions, 'precision'> =>
  precision === undefined ? {} : { precision }
