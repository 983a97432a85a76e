/**
 * Walking and rewriting expressions. Nodes are rebuilt by their constructors, which fold; unchanged nodes keep their
 * identity. Operands are shared: an expression is a graph whose tree may be exponentially larger, so every walk visits
 * a node once.
 */

import { memoize } from '../memoize.ts'
import { isWord } from '../values/dtype.ts'
import { binary, call, cast, type Expr, load, not, operation } from './expr.ts'

const NONE: readonly Expr[] = Object.freeze([])

/** The direct operands of a node, in evaluation order. */
export function children(e: Expr): readonly Expr[] {
  switch (e.kind) {
    case 'const':
    case 'var':
    case 'builtin':
      return NONE
    case 'unary':
    case 'cast':
      return [e.x]
    case 'binary':
      return [e.a, e.b]
    case 'call':
      return e.args
    case 'select':
      return [e.cond, e.then, e.else]
    case 'load':
      return e.index
    case 'search':
      return [e.lo, e.hi, e.value]
  }
}

/**
 * True if the operands after the first are evaluated only under a condition on the first, which protects their reads.
 */
export const isLazy = (e: Expr): boolean =>
  e.kind === 'select' || (e.kind === 'binary' && (e.op === 'and' || e.op === 'or'))

/**
 * The condition under which a node evaluates its `k`-th operand, given the first operand `first`; `undefined`
 * if the operand is always evaluated.
 */
export function evaluationGuard(e: Expr, k: number, first = children(e)[0]): Expr | undefined {
  if (!first || k === 0 || !isLazy(e)) return undefined
  const isElse = e.kind === 'select' ? k === 2 : e.kind === 'binary' && e.op === 'or'
  return isElse ? not(first) : first
}

/** Rebuilds a node over new operands through the normalising constructors; the same operands give the same node. */
export function withChildren(e: Expr, operands: readonly Expr[]): Expr {
  const previous = children(e)
  if (previous.every((c, k) => c === operands[k])) return e
  switch (e.kind) {
    case 'const':
    case 'var':
    case 'builtin':
      return e
    case 'unary':
    case 'binary':
      return operation(e.op, operands, e.span)
    case 'cast':
      return cast(operands[0]!, e.dtype, e.span)
    case 'call':
      return call(e.fn, operands, e.span)
    case 'select':
      return operation(e.kind, operands, e.span)
    case 'load':
      return load(e.buffer, operands, e.dtype, e.span)
    case 'search':
      return Object.freeze({ ...e, lo: operands[0]!, hi: operands[1]!, value: operands[2]! })
  }
}

/**
 * Bottom-up rewrite; `visit` returns `undefined` for "unchanged". Shared subtrees are rewritten once. The result of a
 * fold is not visited again: `i + k` under `i → j, j → 5, k → 0` is `j`.
 */
export function rewriteExpr(
  e: Expr,
  visit: (e: Expr) => Expr | undefined,
  memo: Map<Expr, Expr> = new Map(),
): Expr {
  const cached = memo.get(e)
  if (cached) return cached
  const previous = children(e)
  if (previous.length === 0) {
    const leaf = visit(e) ?? e
    if (leaf !== e) memo.set(e, leaf)
    return leaf
  }
  let operands = previous
  for (let k = 0; k < previous.length; k++) {
    const rewritten = rewriteExpr(previous[k]!, visit, memo)
    if (operands !== previous) (operands as Expr[]).push(rewritten)
    else if (rewritten !== previous[k]) operands = [...previous.slice(0, k), rewritten]
  }
  const rebuilt = operands === previous ? e : withChildren(e, operands)
  const folded = rebuilt !== e && operands.some((x) => x === rebuilt || children(x).includes(rebuilt))
  const result = folded ? rebuilt : (visit(rebuilt) ?? rebuilt)
  memo.set(e, result)
  return result
}

export function substitute(e: Expr, map: ReadonlyMap<string, Expr>): Expr {
  if (map.size === 0) return e
  return rewriteExpr(e, (x) => (x.kind === 'var' ? map.get(x.name) : undefined))
}

/** True if a node passes the test; shared subtrees are tested once. */
export function someExpr(e: Expr, test: (e: Expr) => boolean, seen?: Set<Expr>): boolean {
  if (test(e)) return true
  const operands = children(e)
  if (operands.length === 0) return false
  const visited = seen ?? new Set()
  for (const c of operands) {
    if (visited.has(c)) continue
    visited.add(c)
    if (someExpr(c, test, visited)) return true
  }
  return false
}

/** Visits every node once, a node before its operands, in the order in which they are first evaluated. */
export function walkExpr(e: Expr, visit: (e: Expr) => void, seen?: Set<Expr>): void {
  const operands = children(e)
  if (!seen && operands.length === 0) {
    visit(e)
    return
  }
  const visited = seen ?? new Set()
  if (visited.has(e)) return
  visited.add(e)
  visit(e)
  for (let k = 0; k < operands.length; k++) walkExpr(operands[k]!, visit, visited)
}

/**
 * A recursive function over expressions, evaluated once per node: `f` computes the value of a node, and its second
 * argument returns the values of operands. Use it for every recursion, because operands are shared.
 */
export function perExpr<T>(f: (e: Expr, operandValue: (e: Expr) => T) => T): (e: Expr) => T {
  const results = new Map<Expr, T>()
  const operandValue = (e: Expr): T => {
    const previous = results.get(e)
    if (previous !== undefined || results.has(e)) return previous as T
    const result = f(e, operandValue)
    results.set(e, result)
    return result
  }
  return operandValue
}

/** The number of nodes of the expression as a tree, shared nodes counted at each occurrence; may be infinite. */
export const treeSize: (e: Expr) => number = memoize((e: Expr) =>
  children(e).reduce((size, c) => size + treeSize(c), isFreeCast(e) ? 0 : 1),
)

/** True for a conversion between `index` and `i32`, which costs nothing. */
export const isFreeCast = (e: Expr): e is Extract<Expr, { kind: 'cast' }> =>
  e.kind === 'cast' && isWord(e.dtype) && isWord(e.x.dtype)

/** Names of the variables in an expression; hardware indices are included by their axis name. */
export const freeVars: (e: Expr) => ReadonlySet<string> = memoize((e: Expr) =>
  e.kind === 'var'
    ? new Set([e.name])
    : e.kind === 'builtin'
      ? new Set([e.axis])
      : unionOfOperands(e, freeVars),
)

export const buffersRead: (e: Expr) => ReadonlySet<string> = memoize((e: Expr) => {
  const operandBuffers = unionOfOperands(e, buffersRead)
  return e.kind === 'load' || e.kind === 'search' ? new Set([e.buffer, ...operandBuffers]) : operandBuffers
})

const NO_NAMES: ReadonlySet<string> = new Set()

/** The union of the names in all operands, in their order. Reuses the first non-empty set if the others add nothing. */
function unionOfOperands(e: Expr, namesOf: (c: Expr) => ReadonlySet<string>): ReadonlySet<string> {
  let out = NO_NAMES
  let extended: Set<string> | undefined
  for (const c of children(e)) {
    const names = namesOf(c)
    if (out.size === 0) out = names
    else
      for (const v of names)
        if (!out.has(v)) {
          extended ??= new Set(out)
          extended.add(v)
          out = extended
        }
  }
  return out
}

export const mentions = (e: Expr, name: string): boolean => freeVars(e).has(name)

export const mentionsSome = (e: Expr, names: { has(name: string): boolean }): boolean =>
  [...freeVars(e)].some((v) => names.has(v))

export const readsMemory = (e: Expr): boolean => buffersRead(e).size > 0

export const readsSome = (e: Expr, arrays: { has(name: string): boolean }): boolean =>
  [...buffersRead(e)].some((b) => arrays.has(b))

/** Conditions reordered such that those that read memory come after those that protect the reads. */
export function orderReadsLast(conditions: readonly Expr[]): readonly Expr[] {
  const first = conditions.findIndex(readsMemory)
  if (first < 0 || conditions.slice(first).every(readsMemory)) return conditions
  return [...conditions.filter((c) => !readsMemory(c)), ...conditions.filter(readsMemory)]
}

/** True for a division by a non-constant with the semantics of targets, where a divisor of 0 is undefined. */
export const dividesByVariable = (e: Expr): e is Extract<Expr, { kind: 'binary' }> =>
  e.kind === 'binary' && (e.op === 'quo' || e.op === 'rem') && e.b.kind !== 'const'

/** Replaces flooring divisions by truncating ones; valid for operands that are not negative, such as sizes. */
export const truncateDivisions = (e: Expr): Expr =>
  rewriteExpr(e, (x) =>
    x.kind === 'binary' && (x.op === 'div' || x.op === 'mod')
      ? binary(x.op === 'div' ? 'quo' : 'rem', x.a, x.b)
      : undefined,
  )
