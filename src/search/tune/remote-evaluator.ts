/** Evaluates points of a space on workers: their steps are sent through the queue, their outcomes are returned. */

import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { failWith, resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { type ModelData, termsOfCompilation } from '../../cost-model/prediction.ts'
import type { Terms } from '../../cost-model/terms.ts'
import { runOn } from '../../run/compile/compiled-program.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import { applyPoint, type PointEvaluator, type PointFacts } from '../evaluate/evaluator.ts'
import { modelInputs } from '../ranking/cost-model.ts'
import { pointKey } from '../spaces/points.ts'
import type { Collected } from '../studies/queue.ts'
import type { SharedInput, SharedProgram, SharedStudy, SharedTrial } from '../studies/rebuild.ts'
import { type RemoteOptions, RemoteTrials } from '../studies/remote-trials.ts'
import type { EvaluationContext, EvaluationRequest, KernelSpace, Outcome, Point } from '../types.ts'

/** Throws if workers failed on every trial, because later ones would fail as well. @throws SptError `studies/worker` */
function checkDone(results: readonly Collected[]): void {
  const [first] = results
  if (first?.record.outcome.status !== 'failed' || results.some((d) => d.report !== null)) return
  failWith(
    'studies/worker',
    `no worker could do any of ${results.length} trials: ${first.record.outcome.message}`,
    {
      expected: 'workers that have the files of the study, by the same paths',
      hint: 'correct this and run the search again; failed trials are repeated',
    },
  )
}

/** Evaluates trials on workers, through a Redis server. */
export interface QueueOptions extends Pick<RemoteOptions, 'idleSeconds' | 'onNote'> {
  /** `redis://HOST:PORT`. */
  readonly url: string
  /** The program of the kernel: `shareProgram(program)`. */
  readonly program: SharedProgram
  /** Sources of the bound tensors for workers. */
  readonly tensors: Readonly<Record<string, SharedInput>>
}

/** Minimum batch size, because workers may join later. */
const MIN_BATCH = 16

export class RemoteEvaluator implements PointEvaluator {
  readonly #facts = new Map<string, PointFacts>()

  constructor(
    private readonly space: KernelSpace<Kernel>,
    private readonly trials: RemoteTrials,
  ) {}

  /** @param bound - Tensors for which workers need a source @throws SptError `api/argument`, `studies/…` */
  static async open(
    space: KernelSpace<Kernel>,
    { url, program, tensors, ...options }: QueueOptions,
    shared: Omit<SharedStudy, 'program' | 'tensors'>,
    bound: readonly string[],
  ): Promise<RemoteEvaluator> {
    for (const name of bound)
      expectArgument(
        Object.hasOwn(tensors, name),
        `where workers get ${name}`,
        tensors[name],
        '{ file: PATH }',
      )
    return new RemoteEvaluator(space, await RemoteTrials.open(url, { ...shared, program, tensors }, options))
  }

  factsOf(point: Point): PointFacts | undefined {
    return this.#facts.get(pointKey(point))
  }

  readonly evaluate = async (
    requests: readonly EvaluationRequest[],
    { signal, report: settle }: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> => {
    const outcomes: Outcome[] = []
    const sent: { readonly index: number; readonly trial: SharedTrial; readonly facts: PointFacts }[] = []
    for (const [index, { point, share }] of requests.entries()) {
      const application = applyPoint(this.space, point)
      if ('rejection' in application) {
        outcomes[index] = application.rejection
        settle?.(index, application.rejection)
      } else {
        const { facts } = application
        this.#facts.set(pointKey(point), facts)
        sent.push({ index, facts, trial: { point, trace: facts.trace, ...(share === 1 ? {} : { share }) } })
      }
    }
    const results = await this.trials.run(
      sent.map((s) => s.trial),
      signal,
      (k, { record, report }) => {
        const { index, trial, facts } = sent[k]!
        outcomes[index] = record.outcome
        const { worker, duration } = record
        this.#facts.set(pointKey(trial.point), { ...facts, ...report?.compared, worker, duration })
        // A failure on one worker may be retried on another one.
        if (report) settle?.(index, record.outcome)
      },
    )
    checkDone(results)
    return outcomes
  }

  /** Number of points that keep the workers busy. */
  async batch(): Promise<number> {
    return Math.max(MIN_BATCH, 2 * (await this.trials.workers()))
  }

  close(): Promise<void> {
    return this.trials.close()
  }
}

// Evaluates the first point of a search alone, so that a search that is interrupted early has a result.

/** @returns The same evaluation, except that batches wait for their first point until a point was measured */
export function evaluateFirstAlone(evaluate: PointEvaluator['evaluate']): PointEvaluator['evaluate'] {
  let isMeasured = false
  return async (points, context = {}) => {
    if (isMeasured || points.length < 2) return evaluate(points, context)
    const first = await evaluate(points.slice(0, 1), context)
    isMeasured = first.some((o) => o.status === 'measured')
    const settle = (n: number, outcome: (typeof first)[number]): void => context.report?.(1 + n, outcome)
    return [...first, ...(await evaluate(points.slice(1), { ...context, report: settle }))]
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
