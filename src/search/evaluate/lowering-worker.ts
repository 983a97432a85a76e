/** A thread that lowers: loops come in, a plan or a refusal goes out. */
import { parentPort } from 'node:worker_threads'
import { InternalError, SptError } from '../../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import { type LowerOptions, lowerToMemory } from '../../lower/pipeline.ts'

export interface LoweringTask {
  readonly id: number
  readonly loops: Kernel2
  readonly options: LowerOptions
}

export type LoweringAnswer =
  | { readonly id: number; readonly plan: Plan }
  | { readonly id: number; readonly refused: SptError['diagnostics'] }
  | { readonly id: number; readonly broken: string }

function answer({ id, loops, options }: LoweringTask): LoweringAnswer {
  try {
    return { id, plan: lowerToMemory(loops, undefined, options) }
  } catch (e) {
    if (e instanceof SptError) return { id, refused: e.diagnostics }
    return { id, broken: e instanceof InternalError || e instanceof Error ? e.message : String(e) }
  }
}

parentPort?.on('message', (task: LoweringTask) => parentPort!.postMessage(answer(task)))
