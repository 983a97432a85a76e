/** Schedules of called kernels: the calls that `use layer.gpu at encoder[3]` names, and the schedule of each. */
import type { Scope } from '../../ast/imports/linked-program.ts'
import { callsNamed, type ExpandedCall } from '../../ast/nodes/expanded-calls.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { report } from '../diagnostics.ts'
import type { OfSteps, Resolve } from './resolve.ts'
import type { CalleeSchedule } from './schedule-types.ts'
import { findSchedule } from './uses.ts'

/** The schedules of a called kernel by its name in a file; undefined for another kernel of this name. */
export const schedulesIn =
  ({ kernels, schedules }: Scope) =>
  ({ name }: Ast.Ident, { callee }: ExpandedCall): ReadonlyMap<string, Ast.KernelSchedule> | undefined => {
    const isCallee = ({ name: own, span }: Ast.Kernel): boolean =>
      own.name === callee.name && span.source === callee.span.source && span.start === callee.span.start
    // A kernel with types has an instance for each list of types.
    const local = [...kernels].find(([own, k]) => own.split('<')[0] === name && isCallee(k))?.[0]
    return local === undefined ? undefined : (schedules.get(local) ?? new Map())
  }

const withInner = (calls: readonly ExpandedCall[]): readonly ExpandedCall[] =>
  calls.flatMap((c) => [c, ...withInner(c.calls)])

/** The calls of a kernel that a step names, each with the schedule. Null after reported errors. */
export function findCallees(
  s: OfSteps,
  step: Ast.UseStep & { readonly kernel: Ast.Ident },
  r: Resolve,
  path: readonly OfSteps[],
): readonly CalleeSchedule[] | null {
  const { kernel, at } = step
  if (s.kind === 'function' || !r.kernel) return null
  const all = r.kernel.calls ?? []
  const named = at ? callsNamed(at.name, all) : withInner(all)
  if (!('length' in named)) return report('schedule/unknown-call', at!.span, named)
  const own = named.filter((c) => r.schedulesOf(kernel, c))
  if (own.length === 0 || (at && own.length < named.length)) {
    const other = named.find((c) => !own.includes(c))
    return report('schedule/callee', (at ?? kernel).span, {
      message: at
        ? `${at.name} is a call of kernel ${other!.callee.name}, and not of ${kernel.name}`
        : `kernel ${s.kernel.name} has no call of kernel ${kernel.name}`,
      ...(at
        ? {
            labels: [{ span: other!.span, text: 'called here' }],
            hint: `write \`use ${other!.callee.name}.${step.schedule.name}\``,
          }
        : { lookup: { name: kernel.name, candidates: [...new Set(named.map((c) => c.callee.name))] } }),
      expected: 'a schedule of the kernel that is called',
    })
  }
  const callees = own.flatMap((call): readonly CalleeSchedule[] => {
    const schedules = r.schedulesOf(kernel, call)!
    const schedule = findSchedule(s, step, { ...r, schedules, functions: new Map() }, path)
    return schedule ? [{ call, schedule }] : []
  })
  return callees.length === own.length ? callees : null
}

/** A schedule with the given steps, over the names of the entry file. */
export function scheduleOfSteps(kernel: string, steps: readonly Ast.Step[]): Ast.Schedule {
  const { span } = steps[0]!
  const ident = (name: string): Ast.Ident => ({ name, span })
  return { kind: 'schedule', kernel: ident(kernel), types: [], name: ident('steps'), params: [], steps, span }
}
