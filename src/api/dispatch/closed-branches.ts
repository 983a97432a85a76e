/**
 * Branches of a dispatch on a device: conditions without device properties and parameters, and one schedule each. They can be compiled
 * before data are known, and written as a family of plans.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Branch, Condition, ScheduleCall } from '../../elaborate/index.ts'
import { constant, type Expr } from '../../ir/expressions/expr.ts'
import { children, freeVars, withChildren } from '../../ir/expressions/expr-tree.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { type DeviceFacts, deviceAnswer, type SelectionContext } from './device-facts.ts'
import { callText, type DispatchCall, exact } from './dispatch-conditions.ts'

/** Maximum number of plans of a family. */
export const MOST_PLANS = 6

export interface ClosedBranch {
  readonly branch: Branch
  readonly call: ScheduleCall
  /** The conditions over sizes and statistics; empty: always. */
  readonly conditions: readonly Expr[]
  readonly args: readonly (number | undefined)[]
  /** Call of the schedule with its arguments. */
  readonly text: string
}

/**
 * Returns the branches that may hold on the device, in order. Throws SptError `choose/open` if schedules or their arguments depend on
 * data, or if there are more than `MOST_PLANS`.
 */
export function closedBranches(
  dispatch: DispatchCall,
  on: SelectionContext,
  given: DeviceFacts = {},
): readonly ClosedBranch[] {
  const { choice, values } = dispatch
  const known = (e: Expr): Expr | undefined => {
    if (e.kind !== 'var') return undefined
    const value = values.get(e.name)
    if (value !== undefined) return constant(value, e.dtype)
    const question = choice.device.get(e.name)
    return question && constant(deviceAnswer(on, given, question, e), e.dtype)
  }
  const open = (why: string): never =>
    failWith('choose/open', `${choice.kernel}.${dispatch.text} is not a family of plans: ${why}`, {
      expected: `at most ${MOST_PLANS} schedules with known arguments`,
      hint: `distil the dispatch: distil(kernel, device) of sparsetile/search`,
    })
  const out: ClosedBranch[] = []
  for (const branch of choice.branches) {
    const conditions = branch.conditions.map(({ expr, span }) => folded(expr, known, span))
    if (conditions.some((c) => c.kind === 'const' && c.value === 0)) continue
    if (branch.calls.length > 1) open('`fastest { … }` compares predictions on data')
    const call = branch.calls[0]!
    const args = call.args.map((a) => {
      const value = a && folded(a, known, branch.span)
      return value === null
        ? undefined
        : value.kind === 'const'
          ? value.value
          : open(`${printExpr1(value)} depends on data`)
    })
    const rest = conditions.filter((c) => c.kind !== 'const')
    out.push({ branch, call, conditions: rest, args, text: callText(call.schedule, args) })
    if (rest.length === 0) break
  }
  const texts = new Set(out.map((b) => b.text))
  if (texts.size > MOST_PLANS) open(`it selects among ${texts.size} schedules`)
  return out
}

/** Substitutes known values, and evaluates what they determine. */
function folded(e: Expr, known: (e: Expr) => Expr | undefined, span: Condition['span']): Expr {
  const leaf = known(e)
  if (leaf) return leaf
  const operands: Expr[] = []
  for (const x of children(e)) {
    const operand = folded(x, known, span)
    operands.push(operand)
    // The other operand may be unknown on this device.
    if (e.kind === 'binary' && e.op === 'and' && isTruth(operand, 0)) return operand
    if (e.kind === 'binary' && e.op === 'or' && isTruth(operand, 1)) return operand
  }
  const [a, b] = operands
  if (e.kind === 'binary' && (e.op === 'and' || e.op === 'or')) {
    const neutral = e.op === 'and' ? 1 : 0
    if (isTruth(a!, neutral)) return b!
    if (isTruth(b!, neutral)) return a!
  }
  const rebuilt = withChildren(e, operands)
  return freeVars(rebuilt).size > 0
    ? rebuilt
    : constant(
        exact(rebuilt, () => 0, span),
        e.dtype,
      )
}

const isTruth = (e: Expr, value: number): boolean => e.kind === 'const' && (e.value !== 0 ? 1 : 0) === value
