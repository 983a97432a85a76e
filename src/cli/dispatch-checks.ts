/** Checks of dispatches without data: calls with constant arguments, and outdated dispatch tables. */
import { constantValue } from '../api/dispatch/dispatch-conditions.ts'
import { withPlace } from '../api/dispatch/schedule-selection.ts'
import type { Kernel } from '../api/kernels/kernel.ts'
import type { SptProgram } from '../api/programs/program.ts'
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
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

/** Shows a warning for each outdated dispatch table. Returns the number of warnings. */
export async function warnStale(program: SptProgram, io: Io): Promise<number> {
  const named = program.kernels.map((name) => program.kernel(name))
  const stored = named.filter((k) => [...k.declaredDispatches.values()].some((c) => c.table))
  if (stored.length === 0) return 0
  const { staleChoices } = await import('../search/choice/stale.ts')
  const warnings = stored.flatMap(staleChoices)
  if (warnings.length === 0) return 0
  const shown = new SptError(warnings)
  shown.sources = program.sources
  showDiagnostics(shown, io)
  return warnings.length
}
