/** Steps on loops that steps on coordinates may follow (`require`), and their place among these. */
import type { LoopStep } from '../schedule/steps.ts'

interface EarlyStep {
  readonly step: LoopStep
  /** How many steps on coordinates come before it. */
  readonly after: number
}

/** They are the first steps on loops, and taken again once the steps on coordinates after them have been. */
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

  /** With a step after so many on coordinates. */
  and(step: LoopStep, after: number): EarlySteps {
    return new EarlySteps([...this.#all, { step, after }])
  }

  /** Whether the latest is the last of all steps, where so many on coordinates have been made. */
  endsWith(coords: number): boolean {
    return this.#all.at(-1)?.after === coords
  }

  withoutLast(): EarlySteps {
    return new EarlySteps(this.#all.slice(0, -1))
  }

  /** What belongs to each step on coordinates and on loops, in the order in which the steps were made. */
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
