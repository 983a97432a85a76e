/** `--verify-stages`: runs each kernel under each schedule in the interpreters of Stages II and III. */
import type { StageCheck } from '../api/stages/stage-check.ts'
import type { Compilation } from '../run/compile/compile.ts'

/** Runs kernels on small data and collects the results for the report. */
export class StageRuns {
  readonly #check: (c: Compilation) => StageCheck
  readonly #agree: string[] = []
  readonly #untested: string[] = []

  private constructor(check: (c: Compilation) => StageCheck) {
    this.#check = check
  }

  static async load(): Promise<StageRuns> {
    return new StageRuns((await import('../api/stages/stage-check.ts')).checkStages)
  }

  /** @throws InternalError if a stage differs from the reference */
  check(name: string, c: Compilation): void {
    const { ran, skipped } = this.#check(c)
    if (ran.length > 0) this.#agree.push(`${name}: ${ran.join(', ')}`)
    for (const [reason, stages] of skipped) this.#untested.push(`${name}: ${stages.join(', ')}: ${reason}`)
  }

  /** Report lines: schedules that agree, then those that were not tested. */
  get lines(): readonly string[] {
    return [
      ...this.#agree.map((name) => `${'agrees'.padEnd(9)}${name}`),
      ...this.#untested.map((label) => `${'untested'.padEnd(9)}${label}`),
    ]
  }
}
