/** Evaluation of a dispatch's conditions, with the reason for the selection. */

import {
  type Diagnostic,
  failAs,
  failWith,
  resultOrError,
  type Span,
  SptError,
} from '../../ast/diagnostics/diagnostic.ts'
import type { RuleOrigin } from '../../ast/nodes/nodes.ts'
import { appliedName } from '../../ast/print/message-text.ts'
import { type Coverage, coverageText, withNumbers } from '../../elaborate/choices/fill-ratios.ts'
import { withoutDivisionByZero } from '../../elaborate/expressions/division-by-zero.ts'
import type { Choice, Condition, Schedule, ScheduleCall, Statistic } from '../../elaborate/index.ts'
import { constant, type Expr, type Var, variable } from '../../ir/expressions/expr.ts'
import { children, freeVars, rewriteExpr, withChildren } from '../../ir/expressions/expr-tree.ts'
import type { Instance } from '../../ir/formats/format.ts'
import { evaluateNode } from '../../ir/values/evaluate.ts'
import { valuesOf } from '../../schedule/steps/parameter-values.ts'

/** A fill ratio in a family of plans. */
export interface StoredFillRatio extends Pick<Coverage, 'kind' | 'tensor' | 'live'> {
  /** The format with its arguments. */
  readonly instance: Instance
}

/** A fill ratio in conditions. */
export type FillRatioStatistic = Coverage | StoredFillRatio

/** A schedule with its name and parameters: of the program, or of a plan. */
type Called = Pick<Schedule, 'name' | 'params'>

export interface BranchCall extends Omit<ScheduleCall, 'schedule'> {
  readonly schedule: Called
}

interface Branch {
  readonly conditions: readonly Condition[]
  readonly calls: readonly BranchCall[]
  readonly span: Span
}

/** Ordered branches, with the statistics and device properties in their conditions: a dispatch of the program, or a family of plans. */
export interface Branching extends Pick<Choice, 'kernel' | 'name' | 'params' | 'device' | 'span'> {
  readonly branches: readonly Branch[]
  readonly statistics: ReadonlyMap<string, Statistic | FillRatioStatistic>
}

export interface DispatchCall<C extends Branching = Branching> {
  readonly choice: C
  /** Value of each parameter, including defaults. */
  readonly values: ReadonlyMap<string, number>
  /** Name of the dispatch with the given arguments. */
  readonly text: string
}

/** Selected schedule of a dispatch, and the reason. */
export interface Selection {
  /** Name of the dispatch with its arguments: `auto(64)`. */
  readonly dispatch: string
  /** Name of the schedule. `null`: the kernel runs as `parallel()`, by a rule for software adapters. */
  readonly schedule: string | null
  /** Value of each parameter of the schedule, including defaults. */
  readonly args: readonly number[]
  /** The call of the schedule in the dispatch: `by_length(512, lanes = 8)`. */
  readonly text: string
  /** Condition of the branch as written, or `otherwise`. Without a schedule, the rule. */
  readonly reason: string
  /** Dispatch that declares the branch, if the selected dispatch calls or extends it: `kernel.auto`; otherwise `null`. */
  readonly declaredBy: string | null
  /** Search or commit from which a stored branch comes; `null` for branches in the text. */
  readonly origin: RuleOrigin | null
  /** Predicted times of the legal candidates of `fastest { … }`, the fastest first; empty without a prediction. */
  readonly predictions: readonly PredictedTime[]
  /** Chip of the cost model behind `predictions`. On another chip, the times are comparable only with each other. `null`: no prediction. */
  readonly costModel: string | null
  /** Values of the names in the conditions up to the branch and in the arguments. */
  readonly values: Readonly<Record<string, number | boolean>>
  /** Place of the branch in the source. */
  readonly span: Span
  /** Earlier branches, each with its first condition that does not hold, and schedules with unordered sums that `deterministic` excludes. */
  readonly rejectedBranches: readonly string[]
  /** The schedules among which each run selects on the device; absent if runs do not select. */
  readonly alternatives?: readonly Selection[]
  /** Why the schedules are not one plan, so that each run waits for the host to select; absent if the host does not select in runs. */
  readonly hostSelection?: string
}

/** Time of a schedule, predicted by the cost model. */
export interface PredictedTime {
  /** Call of the schedule, as in the dispatch. */
  readonly text: string
  readonly milliseconds: number
}

export interface Decision {
  readonly branch: Branch
  readonly call: BranchCall
  readonly selection: Selection & { readonly schedule: string }
}

/** Returns the value of a size, device property or statistic; booleans are 0 and 1. Throws if it is unknown. */
export type Lookup = (variable: Var) => number

/** The value of a name; undefined if it is open. */
export type Known = (variable: Var) => number | undefined

/**
 * Applies positional arguments to a dispatch; omitted ones take their defaults. @throws SptError `schedule/arguments`, `schedule/argument`
 */
export function dispatchCall(choice: Choice, args: readonly (number | undefined)[]): DispatchCall<Choice> {
  const values = valuesOf(choice, args)
  for (const [name, value] of values)
    if (!Number.isSafeInteger(value))
      failAs('schedule/argument', {
        message: `an argument is not an integer: ${name} of schedule ${choice.name} is ${value}`,
        expected: 'an integer',
      })
  return { choice: withArguments(choice, values), values, text: callText(choice, args) }
}

/** Substitutes the parameters in format arguments of fill ratios. */
function withArguments(choice: Choice, values: ReadonlyMap<string, number>): Choice {
  const names = new Map<string, string>()
  const statistics = new Map<string, Statistic>()
  for (const [name, s] of choice.statistics) {
    const isOpen = s.kind === 'fill_ratio' && s.args.some((a) => typeof a !== 'string' && a.kind !== 'const')
    const statistic = isOpen ? withNumbers(s, (e) => exact(e, (v) => values.get(v.name)!, s.span)) : s
    if (statistic.kind === 'fill_ratio') names.set(name, coverageText(statistic))
    statistics.set(names.get(name) ?? name, statistic)
  }
  if ([...names].every(([name, now]) => name === now)) return choice
  const named = (e: Expr): Expr =>
    rewriteExpr(e, (x) => {
      const now = x.kind === 'var' ? names.get(x.name) : undefined
      return now === undefined ? undefined : variable(now, x.dtype, x.span)
    })
  const branches = choice.branches.map((b) => ({
    ...b,
    conditions: b.conditions.map((c) => ({ ...c, expr: named(c.expr) })),
    calls: b.calls.map((call) => ({ ...call, args: call.args.map((a) => a && named(a)) })),
  }))
  return { ...choice, branches, statistics }
}

/**
 * Returns the schedule calls of the first branch whose conditions hold; several for `fastest`. `passed`: calls to skip, because a list
 * exceeded its capacity. `excluded`: reasons for which other calls are skipped. @throws SptError `choose/no-match`, `choose/division`,
 * `choose/argument`, and like `known`
 */
export function decide(
  { choice, values, text }: DispatchCall,
  known: Lookup,
  passed: ReadonlySet<string> = new Set(),
  excluded: ReadonlyMap<string, string> = new Map(),
): readonly Decision[] {
  const seen = new Map<string, number | boolean>()
  const rejectedBranches: string[] = []
  rejectMissing(choice, (variable) => values.get(variable.name) ?? known(variable))
  for (const branch of choice.branches) {
    const look: Lookup = (variable) => {
      const value = values.get(variable.name) ?? known(variable)
      seen.set(variable.name, variable.dtype === 'bool' ? value !== 0 : value)
      return value
    }
    const value = (e: Expr): number => exact(e, look, branch.span)
    const broken = branch.conditions.find((c) => value(c.expr) === 0)
    if (broken) {
      const names = [...freeVars(broken.expr)].filter((v) => seen.has(v))
      rejectedBranches.push(
        `${branch.calls.map((c) => c.schedule.name).join(', ')}: ${broken.text} does not hold${names.length > 0 ? `: ${names.map((n) => `${n} is ${seen.get(n)}`).join(', ')}` : ''}`,
      )
      continue
    }
    const reason = conjunction(branch.conditions)
    const all = branch.calls.map((call) => {
      const given = call.args.map((a, k) => (a ? argument(call, k, value(a)) : undefined))
      return { call, given, text: callText(call.schedule, given) }
    })
    const isFirst = (text: string, k: number): boolean => all.findIndex((c) => c.text === text) === k
    const calls = all.filter((c, k) => !passed.has(c.text) && !excluded.has(c.text) && isFirst(c.text, k))
    for (const [k, { text }] of all.entries())
      if (excluded.has(text) && isFirst(text, k)) rejectedBranches.push(`${text}: ${excluded.get(text)}`)
    if (calls.length === 0) {
      const full = all.filter((c) => !excluded.has(c.text))
      if (full.length > 0)
        rejectedBranches.push(`${full.map((c) => c.text).join(', ')}: a list exceeded its capacity`)
      continue
    }
    return calls.map(({ call, given, text: called }) => ({
      branch,
      call,
      selection: {
        dispatch: text,
        schedule: call.schedule.name,
        args: [...valuesOf(call.schedule, given).values()],
        text: called,
        reason,
        declaredBy: call.from ?? null,
        origin: call.origin ?? null,
        predictions: [],
        costModel: null,
        values: Object.fromEntries(seen),
        span: call.span,
        rejectedBranches,
      },
    }))
  }
  return failWith('choose/no-match', `${choice.kernel}.${text} has no schedule for these data`, {
    span: choice.span,
    notes: rejectedBranches,
    expected: 'a condition that holds',
    hint: 'end the dispatch with `otherwise schedule`',
  })
}

/** The conjunction of conditions and comparisons, as text; `otherwise` without any. */
export function conjunction(conditions: readonly Condition[], comparisons: readonly string[] = []): string {
  const isSingle = conditions.length + comparisons.length === 1
  const operands = conditions.map(({ expr, text }) =>
    !isSingle && expr.kind === 'binary' && expr.op === 'or' ? `(${text})` : text,
  )
  return [...operands, ...comparisons].join(' and ') || 'otherwise'
}

/** Throws one SptError with all errors of `look` for values that the dispatch may need. */
function rejectMissing({ branches }: Branching, look: Lookup): void {
  const missing = new Map<string, readonly Diagnostic[]>()
  const known = (v: Var): number | undefined => {
    const value = resultOrError(() => look(v))
    if (!(value instanceof SptError)) return value
    if (!missing.has(v.name)) missing.set(v.name, value.diagnostics)
    return undefined
  }
  // Other errors are reported when the branches are evaluated in order.
  resultOrError(() => {
    for (const { calls, span } of openBranches(branches, known))
      for (const { args } of calls) for (const a of args) if (a) resultOrError(() => reduced(a, known, span))
  })
  if (missing.size > 0) throw new SptError([...missing.values()].flat())
}

/** A branch that may hold, with the conditions that known names leave open; none for a branch that always holds. */
interface OpenBranch extends Branch {
  readonly open: readonly Expr[]
}

/** The branches that may hold, in order. Throws SptError `choose/division`. */
export function* openBranches(branches: readonly Branch[], known: Known): Generator<OpenBranch> {
  for (const branch of branches) {
    const open = openConditions(branch.conditions, known)
    if (open) yield { ...branch, open }
    if (open?.length === 0) return
  }
}

/** The conditions that known names leave open; `null` if one of them does not hold. Throws SptError `choose/division`. */
function openConditions(conditions: readonly Condition[], known: Known): readonly Expr[] | null {
  const open: Expr[] = []
  for (const { expr, span } of conditions) {
    const rest = reduced(expr, known, span)
    if (isTruth(rest, 0)) return null
    if (rest.kind !== 'const') open.push(rest)
  }
  return open
}

/** Substitutes known names, and evaluates what they determine. Throws SptError `choose/division`. */
export function reduced(e: Expr, known: Known, place: Span): Expr {
  if (e.kind === 'var') {
    const value = known(e)
    return value === undefined ? e : constant(value, e.dtype)
  }
  const operands: Expr[] = []
  for (const x of children(e)) {
    const operand = reduced(x, known, place)
    operands.push(operand)
    // The other operands may be unknown, or without a value.
    if (e.kind === 'binary' && e.op === 'and' && isTruth(operand, 0)) return operand
    if (e.kind === 'binary' && e.op === 'or' && isTruth(operand, 1)) return operand
    if (e.kind === 'select' && operand.kind === 'const')
      return reduced(isTruth(operand, 1) ? e.then : e.else, known, place)
  }
  const [a, b] = operands
  if (e.kind === 'binary' && (e.op === 'and' || e.op === 'or')) {
    const neutral = e.op === 'and' ? 1 : 0
    if (isTruth(a!, neutral)) return b!
    if (isTruth(b!, neutral)) return a!
  }
  const rebuilt = withChildren(e, operands)
  return freeVars(rebuilt).size > 0 ? rebuilt : constant(constantValue(rebuilt, place), e.dtype)
}

const isTruth = (e: Expr, value: number): boolean => e.kind === 'const' && (e.value !== 0 ? 1 : 0) === value

function argument({ schedule, span }: BranchCall, k: number, value: number): number {
  if (Number.isSafeInteger(value)) return value
  return failAs('choose/argument', {
    message: `${schedule.params[k]!.name} of schedule ${schedule.name} would be ${value}`,
    span,
    expected: 'an integer',
  })
}

/** Text of a call: arguments are positional up to the first omitted one, and named after it. */
export function callText({ name, params }: Called, args: readonly (number | undefined)[]): string {
  const gap = args.indexOf(undefined)
  const given = args.flatMap((a, k) =>
    a === undefined ? [] : [gap >= 0 && k > gap ? `${params[k]!.name} = ${a}` : String(a)],
  )
  return appliedName(name, given)
}

/** The value of an expression without names. Throws SptError `choose/division`. */
export const constantValue = (e: Expr, place: Span): number => exact(e, () => 0, place)

/** Evaluates in exact arithmetic without overflow. Operands of `and` and `or` are evaluated lazily. */
function exact(e: Expr, look: Lookup, place: Span): number {
  const evaluate = (x: Expr): number =>
    evaluateNode(x, evaluate, withoutDivisionByZero('choose/division', x.span ?? place), look)
  return evaluate(e)
}
