/** The last comparison: few kernels of any formats, one at a time on the device, in several passes. */
import type { Kernel } from '../../api/kernel.ts'
import { Random } from '../../run/bind/random-tensors.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { outcomeOf } from '../evaluate/outcomes.ts'
import type { LibraryRoutine } from '../libraries/index.ts'
import { timingOf } from '../measuring/median-interval.ts'
import { shuffled } from '../shuffled.ts'
import type { Outcome } from '../types.ts'

/** What else happens to a device falls on all kernels, if each has a turn in each pass. */
const PASSES = 4
/** Of the usual effort, in each pass. */
const SHARE = 0.25
/** What is slower than the fastest by that much in a pass has had its turn. */
const FAR = 1.5

/** A kernel under its steps, or a library's routine that takes its arrays. */
export interface Contender {
  readonly kernel: Kernel
  readonly routine?: LibraryRoutine | undefined
}

/** Outcomes of kernels, in their order; what is refused or faults is out. */
export async function compared(
  evaluator: Evaluator,
  kernels: readonly Contender[],
  seed: number,
  signal?: AbortSignal,
): Promise<readonly Outcome[]> {
  const random = new Random(seed)
  const samples = kernels.map((): number[] => [])
  const out: Outcome[] = []
  for (let pass = 0; pass < PASSES; pass++) {
    const left = [...kernels.keys()].filter((k) => !out[k])
    for (const k of shuffled(left, () => random.next())) {
      if (signal?.aborted && pass > 0) break
      const outcome = await timed(evaluator, kernels[k]!)
      if (outcome.status === 'measured') samples[k]!.push(...outcome.timing.samples)
      else out[k] = outcome
    }
    const medians = samples.map((s) => (s.length > 0 ? timingOf(s).median : Number.POSITIVE_INFINITY))
    for (const [k, median] of medians.entries())
      if (median > FAR * Math.min(...medians))
        out[k] ??= { status: 'measured', timing: timingOf(samples[k]!) }
  }
  return kernels.map((_, k) => out[k] ?? { status: 'measured', timing: timingOf(samples[k]!) })
}

/** Compared with the reference, and measured with a share of the usual effort. */
export async function timed(evaluator: Evaluator, { kernel, routine }: Contender): Promise<Outcome> {
  try {
    const compiled = await (routine ? routine.compile() : evaluator.compiled(kernel))
    const steps = JSON.stringify(kernel.toJSON())
    try {
      const checked = await evaluator.bench.checked(compiled, routine ? `${routine.name} ${steps}` : steps)
      if ('wrong' in checked) return checked.wrong
      try {
        const { prepared } = checked
        return (
          (await evaluator.bench.hopeless(prepared)) ??
          (await evaluator.bench.measured([prepared], SHARE))[0]!
        )
      } finally {
        checked.prepared.free()
      }
    } finally {
      compiled.release()
    }
  } catch (e) {
    return outcomeOf(e)
  }
}
