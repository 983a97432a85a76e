/**
 * Inlining of choices that choices call: the branches of the inner choice replace the call, with its parameters
 * substituted.
 */
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { freeVars, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { report } from '../diagnostics.ts'
import type { Choice, Condition, ScheduleCall } from '../schedules/schedule-types.ts'
import type { ChoiceNames, Statistic } from './choice-names.ts'
import { type Coverage, coverageText } from './fill-ratios.ts'
import { isAlike } from './live-coverage.ts'

/** The maximum number of branches of a choice, including those of the choices that it calls. */
export const MAX_BRANCHES = 1000

/** A path to a schedule; without conditions, the path for all other cases. */
export interface Way {
  readonly conditions: readonly Condition[]
  /**
   * The schedule calls. An empty list if no branch of an inner choice holds: the next branch of the outer choice is
   * evaluated.
   */
  readonly calls: readonly ScheduleCall[]
}

/**
 * The combinations of one path of each item (`fastest { a; inner }`). Their conditions are joined, in an order in which
 * the first combination that holds has, of each item, the first path that holds.
 */
export function together(items: readonly (readonly Way[])[]): readonly Way[] {
  const isOne = items.length === 1
  return items
    .map((ways) => (isOne || ways.some((w) => w.conditions.length === 0) ? ways : [...ways, NOTHING]))
    .reduce<readonly Way[]>(
      (before, ways) =>
        before.flatMap((a) =>
          ways.map((b) => ({
            conditions: [...a.conditions, ...b.conditions],
            calls: [...a.calls, ...b.calls],
          })),
        ),
      [NOTHING],
    )
    .filter((w) => w.calls.length > 0)
}

const NOTHING: Way = { conditions: [], calls: [] }

/**
 * The branches of `inner`, called with `args` in the order of its parameters (null: the default), over the names of the
 * caller. @param names the names of the caller, to which the queries of `inner` are added @param own names of the
 * caller's parameters, the only ones in arguments of `fill_ratio`
 */
export function waysOf(
  inner: Choice,
  args: readonly (Expr | null)[],
  call: Ast.ScheduleCall,
  names: ChoiceNames,
  own: readonly string[],
): readonly Way[] | null {
  const values = new Map<string, Expr>()
  for (const [k, p] of inner.params.entries()) values.set(p.name, args[k] ?? substituted(p.default!, values))
  const renamed = new Map<string, string>()
  for (const [name, s] of inner.statistics) {
    const of = s.kind === 'fill_ratio' ? coverageOver(s, values) : s
    const now = of.kind === 'fill_ratio' ? coverageText(of) : name
    if (of.kind === 'fill_ratio' && !isKnown(of, inner, call, names.statistics.get(now), own)) return null
    renamed.set(name, now)
    names.statistics.set(now, of)
  }
  for (const [name, question] of inner.device) names.device.set(name, question)
  const over = (e: Expr): Expr =>
    rewriteExpr(e, (x) => (x.kind === 'var' ? (values.get(x.name) ?? withName(x, renamed)) : undefined))
  const from = `${inner.kernel}.${inner.name}`
  return inner.branches.map((b) => ({
    conditions: b.conditions.map((c): Condition => {
      const expr = over(c.expr)
      const isSame = [...freeVars(c.expr)].every((v) => !values.has(v) && (renamed.get(v) ?? v) === v)
      return isSame ? c : { ...c, expr, text: printExpr1(expr) }
    }),
    calls: b.calls.map((c) => ({ ...c, args: c.args.map((a) => a && over(a)), from: c.from ?? from })),
  }))
}

const withName = (x: Var, renamed: ReadonlyMap<string, string>): Expr | undefined => {
  const now = renamed.get(x.name)
  return now === undefined || now === x.name ? undefined : variable(now, x.dtype, x.span)
}

const substituted = (e: Expr, values: ReadonlyMap<string, Expr>): Expr =>
  rewriteExpr(e, (x) => (x.kind === 'var' ? values.get(x.name) : undefined))

const coverageOver = (c: Coverage, values: ReadonlyMap<string, Expr>): Coverage => ({
  ...c,
  args: c.args.map((a) => (typeof a === 'string' ? a : substituted(a, values))),
})

/** True if the arguments of a format are known before data are bound, and its text has one meaning. */
function isKnown(
  of: Coverage,
  inner: Choice,
  call: Ast.ScheduleCall,
  before: Statistic | undefined,
  own: readonly string[],
): boolean {
  const text = coverageText(of)
  const unknown = of.args
    .flatMap((a) => (typeof a === 'string' ? [] : [...freeVars(a)]))
    .find((v) => !own.includes(v))
  if (unknown !== undefined)
    report('check/choice-argument', call.span, {
      message: `${inner.name} evaluates ${text}, and ${unknown} is not known before data are bound`,
      labels: [{ span: of.span, text: 'evaluated here' }],
      expected: `numbers and parameters of the choice${own.length > 0 ? ` (${own.join(', ')})` : ''} as arguments of ${inner.name}`,
    })
  else if (before?.kind === 'fill_ratio' && !isAlike(before.format, of.format))
    report('check/ambiguous-format', call.span, {
      message: `${of.called} is a different format in ${inner.kernel}.${inner.name}`,
      labels: [{ span: of.span, text: 'evaluated here' }],
      hint: `rename the format of your file`,
    })
  else return true
  return false
}
