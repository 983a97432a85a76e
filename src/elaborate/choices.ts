/** Choices among schedules: what they choose from, by which conditions, with which arguments. */

import type { Span } from '../ast/diagnostic.ts'
import type * as Ast from '../ast/nodes.ts'
import { printExpr } from '../ast/print.ts'
import type { Expr } from '../ir/expr.ts'
import { ChoiceNames, type DeviceQuestion, decidedParams, type Statistic } from './choice-names.ts'
import type { Report } from './diagnostics.ts'
import { elaborateExpr, type Names, settled, truth } from './expressions.ts'
import { checkArguments } from './format-uses.ts'
import { knownStatistics } from './live-coverage.ts'
import type { Resolve } from './resolve.ts'
import { type ScheduleParam, wrongArgument } from './schedule-params.ts'
import type { Schedule } from './schedule-types.ts'

/** A schedule that is decided when data are bound: the first branch whose conditions all hold. */
export interface Choice {
  readonly kernel: string
  readonly name: string
  readonly params: readonly ScheduleParam[]
  readonly branches: readonly Branch[]
  /** What the expressions of the branches ask of the data, by the names of the variables that stand for it. */
  readonly statistics: ReadonlyMap<string, Statistic>
  /** The same of the device. */
  readonly device: ReadonlyMap<string, DeviceQuestion>
  readonly span: Span
}

export interface Branch {
  /** What stands between its `and`s; none for `otherwise`. */
  readonly conditions: readonly Condition[]
  /** One, or those of which the fastest is taken; not empty. */
  readonly calls: readonly ScheduleCall[]
  readonly span: Span
}

export interface ScheduleCall {
  readonly schedule: Schedule
  /** An integer for each parameter; `null`: its default. */
  readonly args: readonly (Expr | null)[]
  readonly span: Span
}

export interface Condition {
  /** Over parameters, sizes, statistics and what is asked of the device. */
  readonly expr: Expr
  /** As written. */
  readonly text: string
  readonly span: Span
}

export function elaborateChoice(c: Ast.Choice, r: Resolve): Choice | null {
  const { report, kernel } = r
  if (!kernel) return null
  const before = report.count
  if (c.branches.length === 0)
    report.error({
      code: 'check/empty-choice',
      message: `${c.kernel.name}.${c.name.name} has nothing to choose from`,
      span: c.name.span,
      expected: '`when (…) schedule`, and `otherwise schedule` at the end',
    })
  const params = decidedParams(c, kernel, report)
  const names = new ChoiceNames(
    kernel,
    params.map((p) => p.name),
    r,
  )
  const branches = c.branches.map((b) => branchOf(c, b, names, r))
  if (report.count > before || branches.some((b) => b === null)) return null
  const schedules = branches.flatMap((b) => b!.calls.map((call) => call.schedule))
  const statistics = knownStatistics(names.statistics, schedules, kernel, report)
  if (report.count > before) return null
  return {
    kernel: c.kernel.name,
    name: c.name.name,
    params,
    branches: branches as Branch[],
    statistics,
    device: names.device,
    span: c.name.span,
  }
}

function branchOf(c: Ast.Choice, b: Ast.Branch, names: ChoiceNames, r: Resolve): Branch | null {
  const parts = b.cond ? conjuncts(b.cond) : []
  const conditions = parts.map((e): Condition | null => {
    const t = elaborateExpr(e, names, r.report)
    const expr = t && truth(t, e.span, r.report)
    return expr && { expr, text: printExpr(e), span: e.span }
  })
  if (b.calls.length === 0)
    r.report.error({
      code: 'check/empty-choice',
      message: 'there is nothing of which to take the fastest',
      span: b.span,
      expected: 'fastest { schedule; schedule }',
    })
  // What goes wrong with the only one is said of all of the branch.
  const called = b.isFastest ? b.calls : b.calls.map((call) => ({ ...call, span: b.span }))
  const calls = called.map((call) => callOf(c, call, names, r))
  if ([...conditions, ...calls].some((x) => x === null)) return null
  return { conditions: conditions as Condition[], calls: calls as ScheduleCall[], span: b.span }
}

function callOf(c: Ast.Choice, call: Ast.ScheduleCall, names: ChoiceNames, r: Resolve): ScheduleCall | null {
  const schedule = chosenSchedule(c, call, r)
  const args = schedule && argumentsOf(call, schedule, names, r.report)
  return schedule && args && { schedule, args, span: call.span }
}

const conjuncts = (e: Ast.Expr): readonly Ast.Expr[] =>
  e.kind === 'binary' && e.op === 'and' ? [...conjuncts(e.a), ...conjuncts(e.b)] : [e]

function chosenSchedule(c: Ast.Choice, b: Ast.ScheduleCall, r: Resolve): Schedule | null {
  const { name, span } = b.schedule
  const known = r.scope.schedules.get(c.kernel.name)
  const decl = known?.get(name)
  if (decl?.kind === 'schedule') return r.schedule(decl, [])
  if (decl)
    return r.report.error({
      code: 'check/choice-of-choice',
      message: `${name} is a ${decl.kind}${decl.kind === 'choice' ? ' itself' : ''}`,
      span,
      expected: 'a schedule with steps',
      hint: `list what ${name} ${decl.kind === 'choice' ? 'chooses from' : 'is made of'} here`,
    })
  return r.report.error({
    code: 'check/unknown-schedule',
    message: `kernel ${c.kernel.name} has no schedule ${name}`,
    span,
    lookup: {
      name,
      candidates: [...(known ?? [])].flatMap(([n, d]) => (d.kind === 'schedule' ? [n] : [])),
    },
  })
}

/** Values in the order of the parameters. */
function argumentsOf(
  b: Ast.ScheduleCall,
  schedule: Schedule,
  names: Names,
  report: Report,
): readonly (Expr | null)[] | null {
  const { params } = schedule
  const what = `schedule ${schedule.name}`
  const byPlace = b.args.filter((a) => a.name === null)
  if (byPlace.length > params.length) {
    checkArguments(what, b.args.length, params, b.span, report)
    return null
  }
  const before = report.count
  const given = params.map((_, k): Ast.NamedArg | undefined => byPlace[k])
  for (const a of b.args) {
    if (!a.name) continue
    const { name, span } = a.name
    const k = params.findIndex((p) => p.name === name)
    if (k < 0)
      report.error({
        code: 'check/unknown-parameter',
        message: `${what} has no parameter ${name}`,
        span,
        lookup: { name, candidates: params.map((p) => p.name) },
      })
    else if (given[k])
      report.error({
        code: 'check/duplicate',
        message: `${name} is given twice`,
        span,
        labels: [{ span: given[k].value.span, text: 'the first value' }],
        hint: 'leave one of them out',
      })
    else given[k] = a
  }
  const isComplete = report.count === before
  params.forEach((p, k) => {
    if (isComplete && !given[k] && p.default === null)
      report.error({
        code: 'check/arguments',
        message: `${what} needs a value for ${p.name}`,
        span: b.span,
        expected: `(${params.map((q) => q.name).join(', ')})`,
      })
  })
  const values = given.map((a): Expr | null => {
    const x = a ? settled(a.value, names, report) : null
    if (a && x && x.dtype !== 'i32') report.error(wrongArgument('an integer', x.dtype, a.value.span))
    return x
  })
  return report.count > before ? null : values
}
