/** Statements without a derivative, and values that a backward pass cannot read: diagnostics. */
import { type Write, writesOf } from '../analysis/sparsity/writes.ts'
import { type Diagnostic, failAt } from '../ast/diagnostics/diagnostic.ts'
import type { Assign, Kernel1, Reduce1 } from '../ir/coordinates/stage1.ts'
import { type Expr, type Load, not } from '../ir/expressions/expr.ts'
import { sameExpr } from '../ir/expressions/structural-equality.ts'
import { printExpr1 } from '../ir/print/print-stage1.ts'
import { isFloat } from '../ir/values/dtype.ts'

/** The warning that no gradient passes through a part of a value. */
export const stepWarning = (e: Expr, stmt: Assign | Reduce1): Diagnostic => ({
  code: 'derive/step-function',
  severity: 'warning',
  message: `the derivative of ${printExpr1(e)} is 0: no gradient passes through it`,
  ...((e.span ?? stmt.span) && { span: e.span ?? stmt.span! }),
  hint: 'for a straight-through gradient of f(x), add a temporary with f(x) - x to x, and name it in `stopping`',
})

/** Rejects a part of a value. @throws SptError `derive/no-derivative` */
export function rejectPart(e: Expr, stmt: Assign | Reduce1): never {
  return failAt('derive/no-derivative', e.span ?? stmt.span, {
    message: `${printExpr1(e)} has no derivative${isFloat(e.dtype) ? '' : `: it is ${e.dtype}`}`,
    ...(stmt.span && e.span && { labels: [{ span: stmt.span, text: 'a value of this statement' }] }),
    expected: 'a value that depends continuously on floating-point tensors',
    hint:
      e.dtype === 'bool'
        ? 'write select(condition, a, b), whose branches have derivatives, or stop the gradient at the tensor: stopping (…)'
        : 'stop the gradient at the tensor: stopping (…)',
  })
}

/** Rejects a reduction. @throws SptError `derive/no-rule` */
export const rejectReducer = ({ reducer, span }: Reduce1, reason = ''): never =>
  failAt('derive/no-rule', span, {
    message: `the reducer ${reducer.name} has no derivative${reason}`,
    ...(reducer.span && { labels: [{ span: reducer.span, text: `${reducer.name} is declared here` }] }),
    expected: '+, *, max, min, or a monoid that selects one of its operands',
    hint: 'stop the gradient at the target: stopping (…)',
  })

function overwritten(message: string, at: Write, by: Write): never {
  const target = printExpr1(by.targets[0]!)
  const isSum = by.stmt.kind === 'reduce' && by.stmt.reducer.name === '+'
  // A statement that replaces all elements writes a new version of the tensor.
  const instead = isSum ? `; if it adds once to each element, write ${target} = ${target} + …` : ''
  return failAt('derive/overwritten', at.stmt.span, {
    message,
    ...(by.stmt.span && by !== at && { labels: [{ span: by.stmt.span, text: 'written here' }] }),
    hint: `write the new values to another tensor${instead}`,
  })
}

/** Checks that the needed elements which a statement reads keep their values. @throws SptError `derive/overwritten` */
export function checkReads(w: Write, kernel: Kernel1, isNeeded: (l: Load) => boolean): void {
  const writes = writesOf(kernel)
  for (const l of w.loads.filter(isNeeded)) {
    const isChange = (t: Load): boolean => t.buffer === l.buffer && !isApart(t.index, l.index)
    const later = writes.slice(writes.indexOf(w)).find((x) => x.targets.some(isChange))
    if (later) overwritten(`${l.buffer} is updated after this statement reads it`, w, later)
  }
}

/**
 * Checks that what a statement reads still has its value in the backward pass, and that its targets keep the values that
 * it writes. @param isNeeded - Whether the backward pass needs an element @throws SptError `derive/overwritten`
 */
export function checkOverwrites(w: Write, kernel: Kernel1, isNeeded: (l: Load) => boolean): void {
  checkReads(w, kernel, isNeeded)
  const writes = writesOf(kernel)
  for (const t of w.targets) {
    const before = writes
      .slice(0, writes.indexOf(w))
      .find((x) => x.targets.some((y) => y.buffer === t.buffer))
    const isUpdate = w.stmt.kind === 'assign' && before && !isDisjoint(w, before, t.buffer)
    if (isUpdate)
      overwritten(`this statement replaces values of ${t.buffer} that were written before`, w, before)
  }
}

/**
 * Checks that reductions with one reducer decide the values of the targets.
 * @param isAlone - Whether only this statement may reduce @throws SptError `derive/overwritten`
 */
export function checkWriters(w: Write, kernel: Kernel1, isAlone: boolean): void {
  const reducerOf = ({ stmt }: Write): unknown => (stmt.kind === 'reduce' ? stmt.reducer.name : null)
  for (const [k, { buffer }] of w.targets.entries()) {
    const joins = (x: Write): boolean =>
      !isAlone && reducerOf(x) === reducerOf(w) && x.targets[k]!.buffer === buffer
    const other = writesOf(kernel).find(
      (x) => x !== w && x.targets.some((t) => t.buffer === buffer) && !joins(x),
    )
    if (other || kernel.buffers.some((b) => b.name === buffer && b.role === 'inout'))
      overwritten(`${buffer} has values that this statement does not reduce`, w, other ?? w)
  }
}

/** True if indices differ in a constant. */
const isApart = (x: readonly Expr[], y: readonly Expr[]): boolean =>
  x.some((e, d) => e.kind === 'const' && y[d]!.kind === 'const' && !sameExpr(e, y[d]!))

/** True if two statements provably write different elements of a tensor. */
function isDisjoint(a: Write, b: Write, buffer: string): boolean {
  const [x, y] = [a, b].map((w) => w.targets.find((t) => t.buffer === buffer)!.index) as [Expr[], Expr[]]
  const excludes = (c: Expr, d: Expr): boolean => sameExpr(not(c), d) || sameExpr(c, not(d))
  return (
    isApart(x, y) ||
    (x.every((e, d) => sameExpr(e, y[d]!)) &&
      a.conditions.some((c) => b.conditions.some((d) => excludes(c, d))))
  )
}
