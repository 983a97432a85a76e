/** An evaluator of points of a space: its candidates are the kernels of the points, as in sessions of `tune`. */
import type { Kernel } from '../../src/node.ts'
import {
  applySteps,
  type Candidate,
  Evaluator,
  type EvaluatorOptions,
} from '../../src/search/evaluate/evaluator.ts'
import type { TrialFacts } from '../../src/search/records/types.ts'
import { pointKey } from '../../src/search/spaces/points.ts'
import type { EvaluationContext, EvaluationRequest, KernelSpace, Outcome, Point } from '../../src/search.ts'

export interface PointEvaluatorOptions extends EvaluatorOptions {
  readonly space: KernelSpace<Kernel>
}

export class PointEvaluator extends Evaluator {
  readonly #space: KernelSpace<Kernel>
  readonly #facts = new Map<string, TrialFacts>()

  constructor({ space, ...options }: PointEvaluatorOptions) {
    super(options)
    this.#space = space
  }

  factsOf(point: Point): TrialFacts | undefined {
    return this.#facts.get(pointKey(point))
  }

  /** Outcomes in the order of the requests. */
  async points(
    requests: readonly EvaluationRequest[],
    { signal, report }: Partial<EvaluationContext> = {},
  ): Promise<readonly Outcome[]> {
    const outcomes: Outcome[] = []
    const candidates = requests.flatMap((request, index): Candidate[] => {
      const applied = applySteps(() => this.#space.kernel(request.point))
      const settle: Candidate['settle'] = (outcome, facts) => {
        outcomes[index] = outcome
        if (facts) this.#facts.set(pointKey(request.point), facts)
        report?.(index, outcome)
      }
      if ('kernel' in applied) return [{ ...request, kernel: applied.kernel, settle }]
      settle(applied.rejection)
      return []
    })
    await this.evaluate(candidates, signal)
    return outcomes
  }
}
