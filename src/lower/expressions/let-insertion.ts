/**
 * Let insertion for shared subexpressions, which avoids exponential code size. Invariant reached: if the expression tree of a statement is
 * much larger than its DAG, the shared nodes get names before the statement.
 * A name may be evaluated although the lazy operand of a `select`, `and` or `or` would not have been. Its loads are therefore clamped to
 * the array, and divisions by 0 are replaced. Such values are never used.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import {
  all,
  binary,
  constant,
  type Expr,
  eq,
  ge,
  int,
  load,
  lt,
  max,
  min,
  mul,
  select,
  variable,
} from '../../ir/expressions/expr.ts'
import {
  buffersRead,
  children,
  dividesByVariable,
  isLazy,
  perExpr,
  treeSize,
  walkExpr,
  withChildren,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { buffersByName } from '../../ir/statements/definitions.ts'
import type { Buffer, Stmt } from '../../ir/statements/loops.ts'
import { define } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, mapBodies, mapExprs } from '../../ir/statements/tree.ts'

/** Maximum tree size in nodes of a statement whose expressions are printed without a search for shared nodes. */
export const WRITTEN_OUT = 2048
/**
 * Maximum tree size in nodes of lazily evaluated operands. It is higher than `WRITTEN_OUT`, because clamped loads hide the structure of
 * indices from range analysis.
 */
const WRITTEN_OUT_IN_BRANCHES = 16_384
/** Minimum size in nodes of a shared expression that gets a name. */
const WORTH_A_NAME = 8

/** Inserts lets into a body. `inBranches`: maximum tree size in nodes before lazily evaluated operands are named as well. */
export function insertLets(
  body: Body,
  buffers: readonly Buffer[],
  names: Names,
  inBranches = WRITTEN_OUT_IN_BRANCHES,
): Body {
  const held = buffersByName(buffers, body)
  const shared = (s: Stmt): Body => {
    if (!isLarge(exprsOf(s), WRITTEN_OUT)) return [s]
    const named = sharing(s, held, names, false)
    if (!named.some((x) => isLarge(exprsOf(x), inBranches))) return named
    return sharing(s, held, names, true)
  }
  const go = (list: Body, outside: Named): Body => {
    const inScope = new Map(outside)
    return list.flatMap((s) => {
      // Nests of instructions are matched unchanged; the condition of a `while` loop is evaluated in every iteration.
      if (s.kind === 'while' || (s.kind === 'for' && s.mode.kind === 'instr')) return [s]
      const named = shared(isLarge(exprsOf(s), WRITTEN_OUT) ? inNames(s, inScope) : s)
      const rewritten = named.at(-1)!
      for (const x of named)
        if (x.kind === 'let' && x !== rewritten && buffersRead(x.value).size === 0)
          inScope.set(keyOf(x.value), variable(x.name, x.dtype))
      const inner = mapBodies(rewritten, (b) => go(b, inScope))
      return [...named.slice(0, -1), inner]
    })
  }
  return go(body, new Map())
}

/** Facts that hold for all sizes. */
const EVIDENT = new Facts()

/** Variables that stand for already computed values, by the key of the value. Values that load from memory are excluded. */
type Named = ReadonlyMap<string, Expr>

function inNames(s: Stmt, inScope: Named): Stmt {
  if (inScope.size === 0) return s
  const named = perExpr<Expr>((e, recurse) => {
    const rebuilt = withChildren(e, children(e).map(recurse))
    return inScope.get(keyOf(rebuilt)) ?? rebuilt
  })
  return mapExprs(s, named)
}

function isLarge(exprs: readonly Expr[], most: number): boolean {
  const written = exprs.reduce((n, e) => n + treeSize(e), 0)
  if (written <= most) return false
  const nodes = new Set<Expr>()
  for (const e of exprs) walkExpr(e, () => {}, nodes)
  return written > 2 * nodes.size
}

function sharing(statement: Stmt, buffers: ReadonlyMap<string, Buffer>, names: Names, branches: boolean) {
  const use = (e: Expr): void => {
    uses.set(e, (uses.get(e) ?? 0) + 1)
  }
  const nameOf = (value: Expr): Expr => {
    if (children(value).length === 0) return value
    const name = names.fresh(value.kind === 'load' ? `${value.buffer}_at` : 'value')
    lets.push(define(name, value))
    return variable(name, value.dtype)
  }
  /** Makes an expression safe to evaluate speculatively: loads stay within their array, and division by 0 yields 0. */
  const anywhere = (e: Expr): Expr => {
    if (dividesByVariable(e)) {
      const by = nameOf(e.b)
      const zero = constant(0, e.dtype)
      return select(eq(by, constant(0, by.dtype)), zero, binary(e.op, e.a, by, e.span))
    }
    if (e.kind === 'search') {
      const [words] = buffers.get(e.buffer)!.shape
      const length = mul(words!, int(32 / (e.bits ?? 32)))
      const cut = (x: Expr): Expr => min(max(x, int(0)), length)
      return withChildren(e, [cut(e.lo), cut(e.hi), e.value])
    }
    if (e.kind !== 'load') return e
    const { shape } = buffers.get(e.buffer)!
    const index = e.index.map((x) => nameOf(x))
    const there = index
      .flatMap((x, d) => [ge(x, int(0)), lt(x, shape[d]!)])
      .filter((c) => !EVIDENT.implies(c))
    return select(all(there), load(e.buffer, index, e.dtype, e.span), constant(0, e.dtype))
  }
  const uses = new Map<Expr, number>()
  /** Nodes that are evaluated whenever the statement is. */
  const isCertain = new Set<Expr>()
  const lets: Stmt[] = []
  const roots = exprsOf(statement)
  const seen = new Set<Expr>()
  for (const e of roots) {
    use(e)
    walkExpr(
      e,
      (x) => {
        for (const c of children(x)) use(c)
      },
      seen,
    )
    walkCertain(e, isCertain)
  }
  const named = perExpr<Expr>((e, recurse) => {
    const certain = isCertain.has(e)
    const node = withChildren(e, children(e).map(recurse))
    if (!certain && !branches) return node
    const rebuilt = certain ? node : anywhere(node)
    return uses.get(e)! > 1 && treeSize(e) >= WORTH_A_NAME ? nameOf(rebuilt) : rebuilt
  })
  const out = mapExprs(statement, named)
  return [...lets, out]
}

function walkCertain(e: Expr, seen: Set<Expr>): void {
  if (seen.has(e)) return
  seen.add(e)
  for (const c of isLazy(e) ? children(e).slice(0, 1) : children(e)) walkCertain(c, seen)
}
