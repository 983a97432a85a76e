/** Whether an expression is a pattern: what stands for something else in it, and may stand for it in several ways. */
import { computeType } from '../ir/dtype.ts'
import type { Expr } from '../ir/expr.ts'
import { children } from '../ir/expr-tree.ts'

/** Narrow values are computed with in 32 bits: a cast that only says so is none. */
function plain(e: Expr): Expr {
  let x = e
  while (x.kind === 'cast' && computeType(x.x.dtype) === x.dtype) x = x.x
  return x
}

const COMMUTES = new Set(['add', 'mul', 'min', 'max', 'and', 'or'])

/**
 * The ways, among those given, in which the expression is the pattern: operands of sums may change places. `leaf` says in
 * which ways a part of the pattern stands for a part of the expression; `undefined`: it stands for itself.
 */
export function matches<W>(
  pattern: Expr,
  actual: Expr,
  ways: readonly W[],
  leaf: (pattern: Expr, actual: Expr, ways: readonly W[]) => readonly W[] | undefined,
): readonly W[] {
  const p = plain(pattern)
  const a = plain(actual)
  if (ways.length === 0) return ways
  const found = leaf(p, a, ways)
  if (found) return found
  if (computeType(p.dtype) !== computeType(a.dtype) || p.kind !== a.kind) return []
  const operands = children(p)
  const given = children(a)
  const sameLayout =
    (p.kind === 'const' && a.kind === 'const' && Object.is(p.value, a.value)) ||
    (p.kind === 'unary' && a.kind === 'unary' && a.op === p.op) ||
    (p.kind === 'cast' && a.kind === 'cast' && a.dtype === p.dtype) ||
    (p.kind === 'call' && a.kind === 'call' && a.fn === p.fn) ||
    (p.kind === 'binary' && a.kind === 'binary' && a.op === p.op) ||
    p.kind === 'select'
  if (!sameLayout || operands.length !== given.length) return []
  const inOrder = (xs: readonly Expr[]): readonly W[] =>
    operands.reduce<readonly W[]>((now, x, k) => matches(x, xs[k]!, now, leaf), ways)
  const straight = inOrder(given)
  return p.kind === 'binary' && COMMUTES.has(p.op)
    ? [...straight, ...inOrder([...given].reverse())]
    : straight
}
