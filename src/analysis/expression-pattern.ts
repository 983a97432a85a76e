/** Matching of expressions with patterns, modulo commutativity, with all possible bindings. */

import type { Expr } from '../ir/expressions/expr.ts'
import { children } from '../ir/expressions/expr-tree.ts'
import { computeType, scalarType } from '../ir/values/dtype.ts'

/** Returns the expression without casts to 32 bits, in which narrow values are computed in any case. */
function plain(e: Expr): Expr {
  let x = e
  while (x.kind === 'cast' && computeType(x.x.dtype) === scalarType(x.dtype)) x = x.x
  return x
}

const COMMUTES = new Set(['add', 'mul', 'min', 'max', 'and', 'or'])

/**
 * Returns the bindings, extended from those in `ways`, under which the expression matches the pattern; operands of
 * commutative operations may be swapped. `leaf` returns the bindings under which a part of the pattern matches a part
 * of the expression; undefined for parts that must be equal.
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
