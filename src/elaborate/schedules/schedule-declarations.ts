/** Elaboration of schedules and schedule functions. */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { writtenOut } from '../../ast/parse/step-groups.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { iterationsOf } from '../../ir/coordinates/stage1-tree.ts'
import { errorCount, report } from '../diagnostics.ts'
import type { OfSteps, Resolve } from './resolve.ts'
import { scheduleParams } from './schedule-params.ts'
import type { Schedule } from './schedule-types.ts'
import { StepWalk } from './schedules.ts'

export function elaborateSchedule(
  s: Ast.Schedule | Ast.ScheduleFunction,
  r: Resolve,
  path: readonly OfSteps[],
): Schedule | null {
  const before = errorCount()
  const params = scheduleParams(s)
  const walk = new StepWalk(s, r, path, params)
  const steps = writtenOut(s.steps)
  walk.steps(steps, [])
  if (s.kind === 'function') checkFunction(s, walk.made)
  if (errorCount() > before) return null
  const { formats, uses, calls, memories, instrs } = walk
  const isFunction = s.kind === 'function'
  return {
    kernel: isFunction ? null : s.kernel.name,
    name: s.name.name,
    params,
    results: isFunction ? s.results.map((n) => n.name) : [],
    made: isFunction ? walk.made : namesAround(walk.made, r.kernel, uses),
    steps,
    formats,
    uses,
    calls,
    memories,
    instrs,
    span: s.span,
  }
}

/** The names that steps or the kernel make: names of functions must differ. */
export function namesAround(
  made: Iterable<string>,
  kernel: Kernel1 | null,
  uses: ReadonlyMap<string, Schedule>,
): ReadonlySet<string> {
  const iterators = iterationsOf(kernel?.body ?? []).flatMap((it) => it.iters.map((x) => x.name))
  const used = [...uses.values()].flatMap((u) => (u.kernel === null ? [] : [...u.made]))
  return new Set([...made, ...iterators, ...used])
}

function checkFunction(s: Ast.ScheduleFunction, made: ReadonlySet<string>): void {
  for (const [k, { name, span }] of s.results.entries())
    if (s.results.findIndex((r) => r.name === name) < k)
      report('check/duplicate', span, {
        message: `function ${s.name.name} has two results ${name}`,
        hint: `remove one \`${name}\``,
      })
    else if (!made.has(name))
      report('check/unknown-name', span, {
        message: `no step of function ${s.name.name} makes ${name}`,
        lookup: { name, candidates: [...made] },
        expected: 'a new name of a step, after `->`',
      })
  for (const { name } of s.params)
    if (made.has(name.name))
      report('check/duplicate', name.span, {
        message: `${name.name} is a parameter of function ${s.name.name} and a new name of a step`,
        hint: 'choose another new name',
      })
}
