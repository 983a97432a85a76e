/** Families of plans of a dispatch: its schedules that need no data, compiled together and written as JSON. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { conditionOf, type LoadableFamily, writeFamily } from '../../plan/family-codec.ts'
import type { PlanFamily, PlanStatistic } from '../../plan/schema.ts'
import { planOn, runOn } from '../../run/compile/compiled-program.ts'
import type { DeviceProperties } from '../../run/compile/device-limits.ts'
import { valuesOf } from '../../schedule/steps/function-calls.ts'
import { sumsOf } from '../built/unordered-sums.ts'
import { type ClosedBranch, closedBranches } from './closed-branches.ts'
import type { DeviceFacts } from './device-facts.ts'
import type { DispatchCall } from './dispatch-conditions.ts'
import { applied, type OpenDispatch, type Selectable } from './open-dispatch.ts'

/** A dispatch of the program. */
export type Declared<K> = OpenDispatch<K> & DispatchCall

/**
 * The branches that may run, with the kernel under the schedule of each. A deterministic dispatch skips unordered sums. Throws SptError
 * `schedule/…` for an illegal step.
 */
export function closedKernels<K extends Selectable<K>>(
  open: Declared<K>,
  on: DeviceProperties,
  closed: readonly ClosedBranch[],
): readonly (ClosedBranch & { readonly kernel: K })[] {
  const branches = closed.map((b) => {
    const args = [...valuesOf(b.call.schedule, b.args).values()]
    return {
      ...b,
      kernel: applied(open, { call: b.call, selection: { schedule: b.call.schedule.name, args } }),
    }
  })
  return open.deterministic ? branches.filter(({ kernel }) => sumsOf<K>(kernel, on).length === 0) : branches
}

/** Throws SptError as `closedBranches` and `closedKernels`, and `choose/open` if a condition depends on values or runs. */
export function familyPlan<K extends Selectable<K>>(
  open: Declared<K>,
  on: DeviceProperties,
  given?: DeviceFacts,
): PlanFamily {
  const { base, choice, text } = open
  const { source } = base.compilation
  const branches = closedKernels(open, on, closedBranches(open, on, given))
  const used = new Set(branches.flatMap((b) => b.conditions.flatMap((e) => [...freeVars(e)])))
  const statistics = new Map<string, PlanStatistic>()
  for (const [name, s] of choice.statistics) {
    if (!used.has(name)) continue
    if (s.kind === 'fill_ratio')
      failWith(
        'choose/open',
        `${choice.kernel}.${text} is not a family of plans: conditions depend on ${name}`,
        {
          expected: 'conditions over sizes, nnz, and lengths of segments',
          hint: 'select the schedule in the program that binds the data: build(device)',
        },
      )
    statistics.set(name, s.kind === 'nnz' ? { kind: s.kind, of: s.tensor } : { kind: s.kind, of: s.axis })
  }
  const texts = [...new Set(branches.map((b) => b.text))]
  const family: LoadableFamily = {
    schedule: text,
    kernel: source,
    statistics,
    branches: branches.map((b) => ({
      when: b.conditions.map(conditionOf),
      schedule: b.text,
      plan: texts.indexOf(b.text),
    })),
    plans: texts.map((t) => {
      const { kernel } = branches.find((b) => b.text === t)!
      return planOn(on, runOn<K>(kernel, on.kind).compilation, base)
    }),
  }
  return writeFamily(family)
}
