/** A thread that lowers: loops come in, a plan or a refusal goes out; what breaks ends it. */
import { parentPort } from 'node:worker_threads'
import { orRefused, SptError } from '../../ast/diagnostic.ts'
import type { Kernel2, Plan } from '../../ir/loops.ts'
import { type LowerOptions, lowerToMemory } from '../../lower/pipeline.ts'

export interface LoweringTask {
  readonly loops: Kernel2
  readonly options: LowerOptions
}

export type LoweringAnswer = { readonly plan: Plan } | { readonly refused: SptError['diagnostics'] }

function answer({ loops, options }: LoweringTask): LoweringAnswer {
  const plan = orRefused(() => lowerToMemory(loops, undefined, options))
  return plan instanceof SptError ? { refused: plan.diagnostics } : { plan }
}

parentPort?.on('message', (task: LoweringTask) => parentPort!.postMessage(answer(task)))
