/** Evaluates candidates on workers: their steps are sent through the queue, their outcomes are returned. */

import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { type ModelData, termsOfCompilation } from '../../cost-model/prediction.ts'
import type { Terms } from '../../cost-model/terms.ts'
import { runOn } from '../../run/compile/program.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { EvaluateCandidates } from '../evaluate/evaluator.ts'
import { modelInputs } from '../ranking/cost-model.ts'
import { type Collected, TrialQueue } from '../studies/queue.ts'
import type { SharedInput, SharedProgram, SharedStudy } from '../studies/rebuild.ts'
import { type RemoteOptions, RemoteTrials } from '../studies/remote-trials.ts'

/** Throws if workers failed on every trial, because later ones would fail as well. @throws SptError `studies/worker` */
function checkDone(results: readonly Collected[]): void {
  const [first] = results
  if (first?.record.outcome.status !== 'failed' || results.some((d) => !d.hasFailed)) return
  failWith(
    'studies/worker',
    `no worker could do any of ${results.length} trials: ${first.record.outcome.message}`,
    {
      expected: 'workers that have the files of the study, by the same paths',
      hint: 'correct this and run the search again; failed trials are repeated',
    },
  )
}

/** Evaluates trials on workers, through a file that they share. */
export interface QueueOptions extends RemoteOptions {
  /** A file of records, which is created if it is missing. */
  readonly file: string
  /** The program of the kernel: `shareProgram(program)`. */
  readonly program: SharedProgram
  /** Sources of the bound tensors for workers. */
  readonly tensors: Readonly<Record<string, SharedInput>>
}

/** @param bound - Tensors for which workers need a source @throws SptError `api/argument`, `studies/…` */
export async function openQueue(
  { file, program, tensors, ...options }: QueueOptions,
  shared: Omit<SharedStudy, 'program' | 'tensors'>,
  bound: readonly string[],
): Promise<RemoteTrials> {
  for (const name of bound)
    expectArgument(Object.hasOwn(tensors, name), `where workers get ${name}`, tensors[name], '{ file: PATH }')
  return new RemoteTrials(await TrialQueue.open(file), { ...shared, program, tensors }, options)
}

export const evaluateOnWorkers =
  (trials: Pick<RemoteTrials, 'run'>): EvaluateCandidates =>
  async (candidates, signal) => {
    const settle = (k: number, { record }: Collected): void => {
      const { outcome, bytes, relativeError, sampled, duration, worker } = record
      candidates[k]!.settle(outcome, { bytes, relativeError, sampled, duration, worker })
    }
    const sent = candidates.map(({ point, kernel, share }) => ({
      point,
      trace: kernel.toJSON(),
      ...(share === 1 ? {} : { share }),
    }))
    // A failure on one worker may be retried on another one.
    const results = await trials.run(sent, signal, (k, done) => {
      if (!done.hasFailed) settle(k, done)
    })
    checkDone(results)
    for (const [k, done] of results.entries()) if (done.hasFailed) settle(k, done)
  }

/** Evaluates the first candidate of a batch alone until one was measured, so that an interrupted search has a result. */
export function evaluateFirstAlone(evaluate: EvaluateCandidates): EvaluateCandidates {
  let isMeasured = false
  return async (candidates, signal) => {
    const watched = candidates.map((c): typeof c => ({
      ...c,
      settle(outcome, facts) {
        isMeasured ||= outcome.status === 'measured'
        c.settle(outcome, facts)
      },
    }))
    const alone = isMeasured ? 0 : 1
    for (const part of [watched.slice(0, alone), watched.slice(alone)])
      if (part.length > 0) await evaluate(part, signal)
  }
}

// Cost-model terms of trials, recorded so that a model can be trained on them (`calibrate/train.ts`).

/** Computes cost-model terms of scheduled kernels, analysing the inputs once; undefined if the model has no prediction. */
export function trialTerms(
  kernel: Kernel,
  kind: DeviceKind,
): (makeKernel: () => Kernel, inputs: RunInputs) => Terms | undefined {
  let data: ModelData | undefined
  return (makeKernel, inputs) => {
    const terms = resultOrError(() => {
      data ??= modelInputs(kernel, inputs)
      return termsOfCompilation(runOn(makeKernel(), kind).compilation, data)
    })
    return terms instanceof SptError ? undefined : terms
  }
}
