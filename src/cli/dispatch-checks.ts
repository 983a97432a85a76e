/**
 * Checks of `spt check` in addition to types: dispatches without data (calls with constant arguments, outdated dispatch
 * tables), and each schedule in the interpreters (`--verify-stages`).
 */
import { constantValue } from '../api/dispatch/dispatch-conditions.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { withPlace } from '../api/programs/error-sources.ts'
import type { SptProgram } from '../api/programs/program.ts'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import type { Compilation } from '../run/compile/compile.ts'
import { showDiagnostics } from './output/failure.ts'
import type { Io } from './output/io.ts'

/** The distinct calls in a kernel's dispatches whose arguments are constants. `apply` throws SptError if a step is illegal. */
export function constantCalls(kernel: Kernel): readonly { readonly apply: () => void }[] {
  const calls = [...kernel.declaredDispatches.values()].flatMap(({ branches }) =>
    branches.flatMap((b) => b.calls),
  )
  const constant = calls.flatMap(({ schedule, args, span }) =>
    args.some((a) => a !== null) && args.every((a) => a === null || freeVars(a).size === 0)
      ? [{ schedule, values: args.map((a) => (a ? constantValue(a, span) : undefined)), span }]
      : [],
  )
  const distinct = new Map(constant.map((c) => [JSON.stringify([c.schedule.name, c.values]), c]))
  return [...distinct.values()].map(({ schedule, values, span }) => ({
    apply: () => {
      try {
        kernel.schedule(schedule.name, ...values)
      } catch (e) {
        throw withPlace(e, span)
      }
    },
  }))
}

/** Shows the warnings of gradients, and one for each outdated dispatch table. Returns the number of warnings. */
export async function showWarnings(program: SptProgram, io: Io): Promise<number> {
  const named = program.kernels.map((name) => program.kernel(name))
  const own = named.flatMap((k) => k.source.warnings ?? [])
  const stored = named.filter((k) => [...k.declaredDispatches.values()].some((c) => c.table))
  const stale =
    stored.length === 0 ? [] : (await import('../search/choice/table-text.ts')).staleChoices(...stored)
  const warnings = [...own, ...stale]
  if (warnings.length === 0) return 0
  const shown = new SptError(warnings)
  shown.sources = program.sources
  showDiagnostics(shown, io)
  return warnings.length
}

// `--verify-stages`: runs each kernel under each schedule in the interpreters of Stages II and III.

/** Runs kernels on small data and collects the results for the report. */
export class StageRuns {
  readonly #agree: string[] = []
  readonly #untested: string[] = []

  /** @throws InternalError if a stage differs from the reference */
  async check(name: string, c: Compilation): Promise<void> {
    const { checkStages } = await import('../api/stages/stage-check.ts')
    const { ran, skipped } = checkStages(c)
    if (ran.length > 0) this.#agree.push(`agrees   ${name}: ${ran.join(', ')}`)
    for (const [reason, stages] of skipped)
      this.#untested.push(`untested ${name}: ${stages.join(', ')}: ${reason}`)
  }

  /** Schedules that agree, then schedules that were not tested. */
  get lines(): readonly string[] {
    return [...this.#agree, ...this.#untested]
  }
}
