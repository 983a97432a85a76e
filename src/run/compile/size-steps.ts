/** Size requirements (`require`): steps on loops that steps on coordinates may follow, with their order among these. */
import type { LoopStep } from '../../schedule/steps/step-data.ts'

interface EarlyStep {
  readonly step: LoopStep
  /** Number of steps on coordinates before this step. */
  readonly after: number
}

/** The first steps on loops. They are applied again after each later step on coordinates. */
export class EarlySteps {
  static readonly NONE = new EarlySteps([])
  readonly #all: readonly EarlyStep[]

  private constructor(all: readonly EarlyStep[]) {
    this.#all = all
  }

  get count(): number {
    return this.#all.length
  }

  get steps(): readonly LoopStep[] {
    return this.#all.map((e) => e.step)
  }

  and(step: LoopStep, after: number): EarlySteps {
    return new EarlySteps([...this.#all, { step, after }])
  }

  endsWith(coords: number): boolean {
    return this.#all.at(-1)?.after === coords
  }

  withoutLast(): EarlySteps {
    return new EarlySteps(this.#all.slice(0, -1))
  }

  /** Merges one item per step on coordinates and one per step on loops, in the order of the steps. */
  inOrder<T>(coords: readonly T[], loops: readonly T[]): T[] {
    const out: T[] = []
    let done = 0
    for (const [k, { after }] of this.#all.entries()) {
      out.push(...coords.slice(done, after), loops[k]!)
      done = after
    }
    return [...out, ...coords.slice(done), ...loops.slice(this.count)]
  }
}
