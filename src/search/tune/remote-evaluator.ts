/** Points of a space that workers try: their steps go to the queue, their outcomes come back. */
import type { Kernel } from '../../api/kernel.ts'
import { fail } from '../../ast/diagnostic.ts'
import { appliedAt, type Tried, type Trier } from '../evaluate/evaluator.ts'
import { pointKey } from '../points.ts'
import type { EvaluationContext, EvaluationRequest } from '../search-options.ts'
import type { Collected } from '../studies/queue.ts'
import type { RemoteTrials } from '../studies/remote-trials.ts'
import type { SharedTrial } from '../studies/types.ts'
import type { KernelSpace, Outcome, Point } from '../types.ts'

/** Throws if workers failed on every trial, because later ones would fail as well. @throws SptError `studies/worker` */
function checkDone(done: readonly Collected[]): void {
  const [first] = done
  if (first?.record.outcome.status !== 'failed' || done.some((d) => d.report !== null)) return
  fail({
    code: 'studies/worker',
    message: `no worker could do any of ${done.length} trials: ${first.record.outcome.message}`,
    expected: 'workers that have the files of the study, by the same paths',
    hint: 'correct this and run the search again; failed trials are repeated',
  })
}

/** Workers may come later. */
const LEAST_BATCH = 16

export class RemoteEvaluator implements Trier {
  readonly #space: KernelSpace<Kernel>
  readonly #trials: RemoteTrials
  readonly #tried = new Map<string, Tried>()

  constructor(space: KernelSpace<Kernel>, trials: RemoteTrials) {
    this.#space = space
    this.#trials = trials
  }

  tried(point: Point): Tried | undefined {
    return this.#tried.get(pointKey(point))
  }

  readonly evaluate = async (
    asked: readonly EvaluationRequest[],
    { signal, report: settle }: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> => {
    const outcomes: Outcome[] = []
    const sent: { readonly at: number; readonly trial: SharedTrial; readonly tried: Tried }[] = []
    for (const [at, { point, share }] of asked.entries()) {
      const applied = appliedAt(this.#space, point)
      if ('refused' in applied) {
        outcomes[at] = applied.refused
        settle?.(at, applied.refused)
      } else {
        const { tried } = applied
        this.#tried.set(pointKey(point), tried)
        sent.push({ at, tried, trial: { point, trace: tried.trace, ...(share === 1 ? {} : { share }) } })
      }
    }
    const done = await this.#trials.done(
      sent.map((s) => s.trial),
      signal,
      (k, { record, report }) => {
        const { at, trial, tried } = sent[k]!
        outcomes[at] = record.outcome
        const { worker, duration } = record
        this.#tried.set(pointKey(trial.point), { ...tried, ...report?.compared, worker, duration })
        // What no worker could do may be refused for all of them.
        if (report) settle?.(at, record.outcome)
      },
    )
    checkDone(done)
    return outcomes
  }

  /** Points that workers are kept busy with. */
  async batch(): Promise<number> {
    return Math.max(LEAST_BATCH, 2 * (await this.#trials.workers()))
  }

  close(): Promise<void> {
    return this.#trials.close()
  }
}
