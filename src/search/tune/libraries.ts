/** Routines of libraries are tried before a search, and the fastest are compared with what it finds. */
import type { Kernel } from '../../api/kernel.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { fastestOf } from '../fastest.ts'
import { type AbsentLibrary, type LibraryRoutine, libraryRoutines } from '../libraries/index.ts'
import type { Records } from '../records/index.ts'
import type { Outcome } from '../types.ts'
import { timed } from './finals.ts'
import { denseOf } from './others.ts'

/** A library routine and its outcome. */
export interface LibraryTrial {
  /** The routine's, with the tensor that is stored dense for it. */
  readonly name: string
  readonly routine: LibraryRoutine
  readonly outcome: Outcome
}

export interface LibraryTrials {
  readonly trials: readonly LibraryTrial[]
  /** Those that could not be opened. */
  readonly absent: readonly AbsentLibrary[]
}

/** Decision name of points that stand for routines; distinct from all other decision names. */
const LIBRARY = 'library routine'

/** All routines that compute the kernel, its sparse tensors stored as they are declared, or dense. */
export async function libraryTrials(
  evaluator: Evaluator,
  kernel: Kernel,
  signal: AbortSignal | undefined,
): Promise<LibraryTrials> {
  const { device, data } = evaluator.bench
  const stored = [
    { name: '', kernel: () => kernel },
    ...(device.library ? denseOf(kernel, data.inputs.tensors ?? {}) : []),
  ]
  const found = stored.map(({ name, kernel: make }) => ({ name, ...libraryRoutines(make(), device) }))
  const trials: LibraryTrial[] = []
  for (const { name, routines } of found)
    for (const routine of routines) {
      if (signal?.aborted) break
      const outcome = await timed(evaluator, { kernel: routine.kernel, routine }, signal).catch((e) => {
        if (signal?.aborted) return null
        throw e
      })
      if (!outcome) break
      trials.push({ name: name === '' ? routine.name : `${routine.name}, ${name}`, routine, outcome })
    }
  const absent = new Map(found.flatMap((f) => f.absent.map((a) => [a.library, a])))
  return { trials, absent: [...absent.values()] }
}

/** The fastest routine of each library, fastest first. */
export function fastestRoutines({ trials }: LibraryTrials): readonly LibraryTrial[] {
  const names = [...new Set(trials.map((t) => t.routine.library))]
  return fastestOf(names.flatMap((n) => fastestOf(trials.filter((t) => t.routine.library === n)).slice(0, 1)))
}

/** Kept under the names and versions of the routines. */
export function record({ trials }: LibraryTrials, records: Records, study: string): void {
  records.add(
    ...trials.map(({ name, outcome }) => ({ study, point: { [LIBRARY]: name }, outcome, share: 0.25 })),
  )
}
