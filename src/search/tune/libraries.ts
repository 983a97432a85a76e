/** Evaluates library routines before a search, so that the fastest are part of the final comparison. */
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { type AbsentLibrary, type LibraryRoutine, libraryRoutines } from '../evaluate/library-routines.ts'
import { fastestOf } from '../loop/tally.ts'
import type { Records } from '../records/index.ts'
import type { Outcome } from '../types.ts'
import { denseAlternatives } from './alternatives.ts'
import { measureContender } from './finals/finals.ts'

/** A library routine and its outcome. */
export interface LibraryTrial {
  /** The routine's name, and the tensor that is stored dense for it. */
  readonly name: string
  readonly routine: LibraryRoutine
  readonly outcome: Outcome
}

export interface LibraryTrials {
  readonly trials: readonly LibraryTrial[]
  /** Libraries that could not be opened. */
  readonly absent: readonly AbsentLibrary[]
}

/** Decision name of points that stand for routines; distinct from all other decision names. */
const ROUTINE_DECISION = 'library routine'

/** Evaluates all routines that compute the kernel, with sparse tensors stored as declared, or dense. */
export async function libraryTrials(
  evaluator: Evaluator,
  kernel: Kernel,
  signal: AbortSignal | undefined,
): Promise<LibraryTrials> {
  const { device, data } = evaluator.bench
  const variants = [
    { name: '', kernel: () => kernel },
    ...(device.library ? denseAlternatives(kernel, data.inputs.tensors ?? {}) : []),
  ]
  const matches = variants.map(({ name, kernel: makeKernel }) => ({
    name,
    ...libraryRoutines(makeKernel(), device),
  }))
  const trials: LibraryTrial[] = []
  for (const { name, routines } of matches)
    for (const routine of routines) {
      if (signal?.aborted) break
      const outcome = await measureContender(evaluator, { kernel: routine.kernel, routine }, signal).catch(
        (e) => {
          if (signal?.aborted) return null
          throw e
        },
      )
      if (!outcome) break
      trials.push({ name: name === '' ? routine.name : `${routine.name}, ${name}`, routine, outcome })
    }
  const absent = new Map(matches.flatMap((f) => f.absent.map((a) => [a.library, a])))
  return { trials, absent: [...absent.values()] }
}

/** The fastest routine of each library, fastest first. */
export function fastestRoutines({ trials }: LibraryTrials): readonly LibraryTrial[] {
  const names = [...new Set(trials.map((t) => t.routine.library))]
  return fastestOf(names.flatMap((n) => fastestOf(trials.filter((t) => t.routine.library === n)).slice(0, 1)))
}

/** Records the trials under the names and versions of the routines. */
export function recordTrials({ trials }: LibraryTrials, records: Records, study: string): void {
  records.add(
    ...trials.map(({ name, outcome }) => ({
      study,
      point: { [ROUTINE_DECISION]: name },
      outcome,
      share: 0.25,
    })),
  )
}
