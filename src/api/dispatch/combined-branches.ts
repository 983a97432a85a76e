/** The branches of a dispatch that runs on the bound inputs may select, combined into a single plan. */
import type { Var } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Device } from '../../runtime/device.ts'
import { CompiledCode } from '../built/code.ts'
import { deviceChoice, type RunBranch } from './device-choice.ts'
import { conjunction, type Lookup, openConditions, type Selection } from './dispatch-conditions.ts'
import { liveRatios } from './prepared-schedule.ts'
import { type AnyKernel, type Dispatch, decidedByRuns } from './schedules.ts'

interface Known {
  /** Values of sizes, device properties and statistics. */
  readonly look: Lookup
  /** True for fill ratios that runs measure. */
  isOpen(name: string): boolean
  /** The selected schedule of a dispatch with a single branch. */
  selected(dispatch: Dispatch): { readonly schedule: AnyKernel | CompiledCode; readonly selection: Selection }
}

/** Returns null if fewer than two branches can be selected; the reason if they cannot be combined. Throws SptError as a selection. */
export function combinedBranches(
  dispatch: Dispatch,
  device: Device,
  { look, isOpen, selected }: Known,
): { readonly kernel: AnyKernel; readonly selection: Selection } | string | null {
  const { choice, values, schedules: base, source, text } = dispatch
  if (!('compilation' in base)) return null
  const known = (v: Var): number | undefined => (isOpen(v.name) ? undefined : (values.get(v.name) ?? look(v)))
  const branches: RunBranch[] = []
  const alternatives: Selection[] = []
  for (const branch of choice.branches) {
    const conditions = openConditions(branch.conditions, known)
    if (conditions === null) continue
    if (branch.calls.some((c) => c.args.some((a) => a && [...freeVars(a)].some(isOpen))))
      return `arguments of ${branch.calls[0]!.schedule.name} depend on a fill ratio`
    const one = { ...choice, branches: [{ ...branch, conditions: [] }] }
    const { schedule, selection } = selected({ ...dispatch, choice: one })
    if (schedule instanceof CompiledCode) return null
    const reason = branch.conditions.length > 0 ? conjunction(branch.conditions) : 'otherwise'
    branches.push({ text: selection.text, conditions, compilation: schedule.compilation })
    alternatives.push({ ...selection, reason })
    if (conditions.length === 0) break
  }
  if (branches.length < 2) return null
  const kernel = deviceChoice(base, text, branches, liveRatios(choice), device)
  if (typeof kernel === 'string') return kernel
  return { kernel, selection: { ...decidedByRuns(alternatives, source), dispatch: text, span: choice.span } }
}
