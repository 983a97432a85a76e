/**
 * Work for threads: lowering, the reference, and costs of points. As the script of a thread, it answers each task with its
 * result or diagnostics; other errors end the thread.
 */
import { parentPort } from 'node:worker_threads'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Kernel2, Kernel3 } from '../ir/statements/loops.ts'
import type { LowerOptions } from '../lower/passes.ts'
import { lowerToMemory } from '../lower/pipeline.ts'
import { expectedWithin } from '../run/bind/results/reference-inputs.ts'
import type { RankingOrigin } from './ranking/origin.ts'
import type { Point } from './types.ts'

let costs: Promise<((point: Point) => number | null) | null> = Promise.resolve(null)

const TASKS = {
  lower: ({ loops, options }: { readonly loops: Kernel2; readonly options: LowerOptions }): Kernel3 =>
    lowerToMemory(loops, undefined, options),
  reference: expectedWithin,
  /** `null` if the space cannot be rebuilt here. @param input - `origin` is absent if it is that of the previous task */
  async rank(input: { readonly origin: RankingOrigin | undefined; readonly points: readonly Point[] }) {
    const { origin, points } = input
    if (origin) costs = import('./ranking/origin.ts').then((m) => m.costsFrom(origin)).catch(() => null)
    const cost = await costs
    return cost && points.map(cost)
  },
}

export type TaskName = keyof typeof TASKS
export type TaskInput<K extends TaskName> = Parameters<(typeof TASKS)[K]>[0]
export type TaskResult<K extends TaskName> = Awaited<ReturnType<(typeof TASKS)[K]>>

export interface Task<K extends TaskName = TaskName> {
  readonly name: K
  readonly input: TaskInput<K>
}

export type Answer<K extends TaskName = TaskName> =
  | { readonly result: TaskResult<K> }
  | { readonly diagnostics: SptError['diagnostics'] }

/** Executes a task, in the thread or here if there are no threads. */
export const execute = async <K extends TaskName>({ name, input }: Task<K>): Promise<TaskResult<K>> =>
  (TASKS[name] as (given: TaskInput<K>) => TaskResult<K> | Promise<TaskResult<K>>)(input)

async function answer(task: Task): Promise<Answer> {
  try {
    return { result: await execute(task) }
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return { diagnostics: e.diagnostics }
  }
}

parentPort?.on('message', async (task: Task) => parentPort!.postMessage(await answer(task)))
