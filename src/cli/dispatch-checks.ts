/**
 * Checks of `spt check` in addition to types: dispatches without data (calls with constant arguments, outdated dispatch
 * tables), and each schedule in the interpreters (`--verify-stages`).
 */
import { constantValue } from '../api/dispatch/dispatch-conditions.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import { withPlace } from '../api/programs/error-sources.ts'
import type { SptProgram } from '../api/programs/program.ts'
import { type Diagnostic, SptError } from '../ast/diagnostics/diagnostic.ts'
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

/** Warnings of a gradient, and of the conditions in a dispatch; default: in all of the kernel. */
function warningsOf(kernel: Kernel, dispatch?: string): readonly Diagnostic[] {
  const dispatches = [...kernel.declaredDispatches].filter(([name]) => name === (dispatch ?? name))
  return [...(kernel.source.warnings ?? []), ...dispatches.flatMap(([, c]) => c.warnings ?? [])]
}

/** Shows warnings. Returns the number of warnings. */
function show(warnings: readonly Diagnostic[], { sources }: Pick<Kernel, 'sources'>, io: Io): number {
  if (warnings.length === 0) return 0
  const shown = new SptError(warnings)
  shown.sources = sources
  showDiagnostics(shown, io)
  return warnings.length
}

/** Shows the warnings for a kernel under a dispatch. */
export const showWarnings = (kernel: Kernel, dispatch: string, io: Io): number =>
  show(warningsOf(kernel, dispatch), kernel, io)

/** Shows the warnings of all kernels, and one for each outdated dispatch table. Returns the number of warnings. */
export async function showAllWarnings(program: SptProgram, io: Io): Promise<number> {
  const named = program.kernels.map((name) => program.kernel(name))
  const own = named.flatMap((k) => warningsOf(k))
  const stored = named.filter((k) => [...k.declaredDispatches.values()].some((c) => c.table))
  const stale =
    stored.length === 0 ? [] : (await import('../search/choice/table-text.ts')).staleChoices(...stored)
  return show([...own, ...stale], program, io)
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
