/** Final comparison of a search: its fastest points, and alternatives outside the space. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Kernel } from '../../api/kernel.ts'
import type { Device } from '../../runtime/device.ts'
import { decided } from '../decided.ts'
import type { Evaluator } from '../evaluate/evaluator.ts'
import { outcomeOf } from '../evaluate/outcomes.ts'
import { fastestOf, finalists } from '../fastest.ts'
import type { LibraryRoutine } from '../libraries/index.ts'
import type { SearchResult } from '../search.ts'
import type { KernelSpace, Outcome, Point } from '../types.ts'
import { type Explained, explained } from './explained.ts'
import { compared } from './finals.ts'
import type { LibraryTrial } from './libraries.ts'
import { others } from './others.ts'

/** A kernel that was measured at the end, against the others of `finalists`; with `explain`, what it does. */
export interface Finalist extends Explained {
  /** `found`, `found 2`, … of the space, the fastest first; besides it `standard`, `as written`, `A dense`. */
  readonly name: string
  /** Of the standard choice: its schedule as it is called. */
  readonly schedule?: string | null | undefined
  /** Declaration of a format that its steps name and the program lacks. */
  readonly declaration?: string | undefined
  /** `null` outside of the space. */
  readonly point: Point | null
  /** `compile` runs it as it was measured. */
  readonly kernel: Kernel
  /** A library's, which takes the arrays of the kernel: the kernel's steps are not run. */
  readonly routine?: LibraryRoutine | undefined
  readonly outcome: Outcome
}

interface FinalsOptions {
  readonly inputs: RunInputs
  readonly device: Device
  readonly seed?: number | undefined
  /** Of the search. */
  readonly seconds?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Counts bytes and operations. */
  readonly explain?: boolean | undefined
  /** Told whose turn it is. */
  readonly comparing: (name: string) => void
}

/** Outcome of candidates not yet compared when the comparison ended. */
const ENDED: Outcome = {
  status: 'failed',
  code: 'search/ended',
  message: 'the search ended before this candidate was measured',
}

/** Measures the fastest points and the alternatives against each other, as long as the device works. */
export async function compareFinalists(
  kernel: Kernel,
  options: FinalsOptions,
  evaluator: Evaluator,
  space: KernelSpace<Kernel>,
  found: SearchResult,
  routines: readonly LibraryTrial[],
): Promise<readonly Finalist[]> {
  const fastest = finalists(found)
  const list = [
    ...fastest.map(({ point, outcome }, k) => ({
      name: foundName(k),
      point,
      before: outcome,
      kernel: () => space.kernel(point),
    })),
    ...(await others(kernel, options.device, evaluator.bench.data.inputs, options.inputs)),
    ...routines.map(({ name, routine, outcome }) => ({
      name,
      routine,
      before: outcome,
      kernel: () => routine.kernel,
    })),
  ]
  const made = list.map((c) => {
    try {
      return { ...c, kernel: 'routine' in c ? c.kernel() : decided(c.kernel()), refused: null }
    } catch (e) {
      return { ...c, kernel, refused: outcomeOf(e) }
    }
  })
  const legal = made.filter((c) => c.refused === null)
  const outcomes = await compared(evaluator, legal, {
    seed: options.seed ?? 1,
    signal: options.signal,
    seconds: options.seconds && Math.max(LEAST_COMPARISON, options.seconds / 2),
    onTurn: (k) => options.comparing(legal[k]!.name),
  })
  const finals: Finalist[] = []
  for (const { refused, ...all } of made) {
    const { before, filled: _, ...c } = { before: ENDED, filled: 1, ...all }
    const outcome = refused ?? outcomes[legal.findIndex((l) => l.name === c.name)] ?? before
    const isCounted =
      options.explain && !options.signal?.aborted && outcome.status === 'measured' && !('routine' in c)
    const more = isCounted ? await explained(evaluator, c.kernel) : {}
    finals.push({ point: null, ...c, outcome, ...more })
  }
  return byPlace(finals)
}

/** Seconds. */
const LEAST_COMPARISON = 2

const foundName = (k: number): string => (k === 0 ? 'found' : `found ${k + 1}`)

/** Names points by their rank in the final comparison. */
function byPlace(finals: readonly Finalist[]): readonly Finalist[] {
  const points = finals.filter((f) => f.point !== null)
  const fastest = fastestOf(points)
  const inOrder = [...fastest, ...points.filter((f) => !fastest.includes(f))]
  const named = inOrder.map((f, k) => ({ ...f, name: foundName(k) }))
  return [...named, ...finals.filter((f) => f.point === null)]
}
