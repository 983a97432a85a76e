/** Elaboration of choices among schedules: their branches, conditions and arguments. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { printExpr } from '../../ast/print/print.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import { errorCount, report } from '../diagnostics.ts'
import { condition, type Names } from '../expressions/expressions.ts'
import { checkNamed, inOrder } from '../formats/format-uses.ts'
import type { Resolve } from '../schedules/resolve.ts'
import { argumentOver } from '../schedules/schedule-params.ts'
import type { Branch, Choice, Condition, Schedule } from '../schedules/schedule-types.ts'
import { ChoiceNames, decidedParams } from './choice-names.ts'
import { storedDispatch } from './dispatch-tables.ts'
import { knownStatistics } from './live-coverage.ts'
import { MAX_BRANCHES, together, type Way, waysOf } from './nested-choices.ts'

interface Context {
  readonly choice: Ast.Dispatch
  /** The choices through which the elaborated choice is called, followed by the elaborated choice. */
  readonly path: readonly Ast.Dispatch[]
  readonly names: ChoiceNames
  readonly params: readonly string[]
  /** The choice that the elaborated choice extends; null without `extends`. */
  readonly base: Choice | null
  /** Origins of stored branches. */
  readonly origins: readonly Ast.RuleOrigin[]
  readonly r: Resolve
}

/** The elaborated choice. @param path choices that call this one */
export function elaborateChoice(
  c: Ast.Dispatch,
  r: Resolve,
  path: readonly Ast.Dispatch[] = [],
): Choice | null {
  const { kernel } = r
  if (!kernel) return null
  const before = errorCount()
  const inside = [...path, c]
  const extended = r.extended(c)
  const base = extended && r.choice(extended, inside)
  if (extended && !base) return null
  const table = c.table && storedDispatch(c, r)
  if (c.table && !table) return null
  const { branches: given } = table ?? c
  if (given.length === 0)
    report('check/empty-choice', c.name.span, {
      message: `${c.kernel.name}.${c.name.name} has nothing to choose from`,
      expected: '`when (…) schedule`, and `otherwise schedule` at the end',
    })
  const params = base ? base.params : decidedParams(c, kernel)
  const own = params.map((p) => p.name)
  const context: Context = {
    choice: c,
    path: inside,
    names: new ChoiceNames(kernel, own, r.format),
    params: own,
    base: base ?? null,
    origins: table?.origins ?? [],
    r,
  }
  const written = given.map((b) => branchesOf(b, context))
  if (errorCount() > before || written.some((b) => b === null)) return null
  const branches = written.flatMap((b) => b!)
  if (base && branches.every((b) => b.conditions.length > 0))
    branches.push(...(branchesOf(allOthers(c), context) ?? []))
  refuseMany(branches.length, c.name.span, context)
  const schedules = branches.flatMap((b) => b.calls.map((call) => call.schedule))
  const known = knownStatistics(context.names.statistics, schedules, kernel)
  if (errorCount() > before) return null
  return {
    kernel: c.kernel.name,
    name: c.name.name,
    params,
    branches,
    ...known,
    device: context.names.device,
    table,
    span: c.name.span,
  }
}

/** The last branch of an extension, for all other cases: the extended choice. */
const allOthers = ({ name }: Ast.Dispatch): Ast.Branch => ({
  cond: null,
  isFastest: false,
  calls: [{ schedule: name, args: [], span: name.span }],
  origin: null,
  span: name.span,
})

/** The branches for one branch of the text, several if that branch calls choices. */
function branchesOf(b: Ast.Branch, context: Context): readonly Branch[] | null {
  const { names } = context
  const parts = b.cond ? conjuncts(b.cond) : []
  const conditions = parts.map((e): Condition | null => {
    const expr = condition(e, names)
    return expr && { expr, text: printExpr(e), span: e.span }
  })
  if (b.calls.length === 0)
    report('check/empty-choice', b.span, {
      message: '`fastest` needs a schedule',
      expected: 'fastest { schedule; schedule }',
    })
  // Errors of the only call are reported for the whole branch.
  const called = b.isFastest ? b.calls : b.calls.map((call) => ({ ...call, span: b.span }))
  const origin = context.origins.find((o) => o.name === b.origin?.value)
  const items = called.map((call) => calledWays(call, context, origin))
  if ([...conditions, ...items].some((x) => x === null)) return null
  const ways = items as readonly (readonly Way[])[]
  if (
    refuseMany(
      ways.reduce((n, w) => n * Math.max(1, w.length), 1),
      b.span,
      context,
    )
  )
    return null
  return together(ways).map((way) => ({
    conditions: [...(conditions as Condition[]), ...way.conditions],
    calls: way.calls,
    span: b.span,
  }))
}

function refuseMany(branches: number, span: Span, { choice: { kernel, name } }: Context): boolean {
  if (branches <= MAX_BRANCHES) return false
  report('check/choice-size', span, {
    message: `${kernel.name}.${name.name} has ${branches} branches, including called dispatches`,
    expected: `at most ${MAX_BRANCHES}`,
    hint: 'call a single dispatch in each `fastest { … }`',
  })
  return true
}

function calledWays(
  call: Ast.ScheduleCall,
  context: Context,
  origin: Ast.RuleOrigin | undefined,
): readonly Way[] | null {
  const { names, params, base } = context
  const target = calledBy(call, context)
  const args = target && argumentsOf(call, target, names, base === target ? params : [])
  if (!args) return null
  if ('branches' in target) return waysOf(target, args, call, names, params)
  return [{ conditions: [], calls: [{ schedule: target, args, span: call.span, origin }] }]
}

const conjuncts = (e: Ast.Expr): readonly Ast.Expr[] =>
  e.kind === 'binary' && e.op === 'and' ? [...conjuncts(e.a), ...conjuncts(e.b)] : [e]

/** The called schedule or choice. In an extension, its own name means the extended choice. */
function calledBy(b: Ast.ScheduleCall, { choice: c, path, base, r }: Context): Schedule | Choice | null {
  const { name, span } = b.schedule
  if (base && name === c.name.name) return base
  const known = r.schedules
  const decl = known?.get(name)
  if (decl?.kind === 'schedule') return r.schedule(decl, [])
  if (decl?.kind === 'choice' && decl.by === 'rules') {
    if (!path.includes(decl)) return r.choice(decl, path)
    return report('check/choice-cycle', span, {
      message: `${name} refers to itself`,
      labels: [{ span: decl.name.span, text: 'the choice' }],
      expected: 'schedules, or dispatches without a cycle',
      hint: `to extend an imported dispatch, write schedule ${c.kernel.name}.${name} extends { … }`,
    })
  }
  if (decl)
    return report('check/space-used', span, {
      message: `${name} is a space, whose steps are not decided`,
      expected: 'a schedule with steps, or a dispatch',
      hint: `search the space, and read what is found with \`choose from\`: spt tune FILE --space ${name} … --generalise ${c.kernel.name}.spt`,
    })
  return report('check/unknown-schedule', span, {
    message: `kernel ${c.kernel.name} has no schedule ${name}`,
    lookup: {
      name,
      candidates: [...(known ?? [])].flatMap(([n, d]) =>
        d.kind === 'choice' && d.by === 'search' ? [] : [n],
      ),
    },
  })
}

/** The values in the order of the parameters. @param passed parameters that have the caller's value by default */
function argumentsOf(
  b: Ast.ScheduleCall,
  schedule: Pick<Schedule, 'name' | 'params'>,
  names: Names,
  passed: readonly string[],
): readonly (Expr | null)[] | null {
  const { params } = schedule
  if (!checkNamed(`schedule ${schedule.name}`, b, params, passed)) return null
  const before = errorCount()
  const values = inOrder(b.args, params).map((a, k): Expr | null => {
    const own = passed.includes(params[k]!.name) ? variable(params[k]!.name, 'index', b.span) : null
    return a ? argumentOver(names, a.value, 'integer') : own
  })
  return errorCount() > before ? null : values
}
