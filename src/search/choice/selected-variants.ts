/** Schedules that a dispatch selects on data. */
import type { SelectionContext, SelectionInputs } from '../../api/dispatch/device-facts.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel, Variant } from '../../api/kernels/kernel.ts'
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import type { Work } from '../../ast/work.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { getOrAdd } from '../../ir/memoize.ts'

/** Maximum number of schedules that are compared on these data: the most frequently selected ones, and more without requirements. */
const CANDIDATES = 24
const FREE_CANDIDATES = 2

/**
 * Returns the schedules that are selected, the most frequent ones first, and the index of the schedule of each data set. Schedules whose
 * arguments depend on the data are left out, because they fit no other data. Throws SptError as `choose` if no data fit.
 */
export async function selectedVariants(
  kernel: Kernel,
  on: SelectionContext,
  sample: readonly SelectionInputs[],
  work: Work,
): Promise<{ readonly variants: readonly Variant[]; readonly selections: readonly (number | undefined)[] }> {
  const { choice } = kernel.open!
  const isData = (args: readonly (Expr | null)[]): boolean =>
    args.some((a) => a && [...freeVars(a)].some((v) => choice.statistics.has(v)))
  const fixed = new Set(
    choice.branches.flatMap((b) => b.calls.flatMap((c) => (isData(c.args) ? [] : [c.schedule.name]))),
  )
  const found = new Map<string, { readonly variant: Variant; cases: number[] }>()
  let failure: SptError | undefined
  for (const [k, given] of sample.entries()) {
    work.begin('select', `schedules of ${kernel.name} for ${k + 1} of ${sample.length} data sets`)
    await work.checkpoint()
    const variant = await valueOrError(() => kernel.choose(on, ...flatInputs(given)))
    if (variant instanceof SptError) {
      failure = variant
      continue
    }
    const { schedule, args } = variant.selection
    const isFixed = schedule !== null && fixed.has(schedule)
    if (isFixed)
      getOrAdd(found, JSON.stringify([schedule, args]), () => ({ variant, cases: [] })).cases.push(k)
  }
  if (found.size === 0) throw failure!
  const frequent = [...found.values()].sort((a, b) => b.cases.length - a.cases.length)
  const isFree = ({ variant }: (typeof frequent)[number]): boolean =>
    (variant.kernel.compilation.loops.facts ?? []).length === 0
  // Schedules without requirements suit the remaining data.
  const kept = [
    ...new Set([...frequent.slice(0, CANDIDATES), ...frequent.filter(isFree).slice(0, FREE_CANDIDATES)]),
  ]
  const selections = new Array<number | undefined>(sample.length).fill(undefined)
  for (const [c, { cases }] of kept.entries()) for (const k of cases) selections[k] = c
  return { variants: kept.map((f) => f.variant), selections }
}
