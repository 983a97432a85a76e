/** Worker thread for lowering and the reference: returns results or diagnostics; other errors end the thread. */
import { parentPort } from 'node:worker_threads'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel2, Kernel3 } from '../../ir/statements/loops.ts'
import type { LowerOptions } from '../../lower/passes.ts'
import { lowerToMemory } from '../../lower/pipeline.ts'
import { expectedWithin } from '../../run/bind/results/reference-inputs.ts'

const WORK = {
  lower: ({ loops, options }: { readonly loops: Kernel2; readonly options: LowerOptions }): Kernel3 =>
    lowerToMemory(loops, undefined, options),
  reference: expectedWithin,
}

export type WorkName = keyof typeof WORK
export type TaskInput<K extends WorkName> = Parameters<(typeof WORK)[K]>[0]
export type TaskResult<K extends WorkName> = ReturnType<(typeof WORK)[K]>

export interface Task<K extends WorkName = WorkName> {
  readonly name: K
  readonly input: TaskInput<K>
}

export type Answer =
  | { readonly result: TaskResult<WorkName> }
  | { readonly diagnostics: SptError['diagnostics'] }

/** Executes a task, in the thread or here if there are no threads. */
export const execute = <K extends WorkName>({ name, input }: Task<K>): TaskResult<K> =>
  (WORK[name] as (given: TaskInput<K>) => TaskResult<K>)(input)

function answer(task: Task): Answer {
  const result = resultOrError(() => execute(task))
  return result instanceof SptError ? { diagnostics: result.diagnostics } : { result }
}

parentPort?.on('message', (task: Task) => parentPort!.postMessage(answer(task)))
