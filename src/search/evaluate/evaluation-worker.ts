/** Thread beside the measuring one: receives data, returns results or diagnostics; other errors end it. */
import { parentPort } from 'node:worker_threads'
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import { lowerToMemory } from '../../lower/pipeline.ts'
import { expectedWithin } from '../../run/bind/reference-inputs.ts'

const WORK = {
  lower: ({ loops, options }: { readonly loops: Kernel2; readonly options: LowerOptions }): Plan =>
    lowerToMemory(loops, undefined, options),
  reference: expectedWithin,
}

export type WorkName = keyof typeof WORK
export type Given<K extends WorkName> = Parameters<(typeof WORK)[K]>[0]
export type Made<K extends WorkName> = ReturnType<(typeof WORK)[K]>

export interface Task<K extends WorkName = WorkName> {
  readonly name: K
  readonly given: Given<K>
}

export type Answer = { readonly made: Made<WorkName> } | { readonly refused: SptError['diagnostics'] }

/** Executes a task, in the thread or here if there are no threads. */
export const done = <K extends WorkName>({ name, given }: Task<K>): Made<K> =>
  (WORK[name] as (given: Given<K>) => Made<K>)(given)

function answer(task: Task): Answer {
  const made = orRefused(() => done(task))
  return made instanceof SptError ? { refused: made.diagnostics } : { made }
}

parentPort?.on('message', (task: Task) => parentPort!.postMessage(answer(task)))
