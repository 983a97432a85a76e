/**
 * Expansion of searches into loops. Invariant reached: no `search` remains. Each becomes a binary search (or a linear scan, for short or
 * unordered ranges) before the statement that uses its result. A search may be valid only under the conditions before it, so it stays
 * inside conditions of statements and of lazy expressions (`c and search(…) < n`).
 */

import type { Names } from '../../ir/expressions/bound-names.ts'
import type { Expr, Search } from '../../ir/expressions/expr.ts'
import { add, all, binary, conjuncts, int, load, lt, not, sub, variable } from '../../ir/expressions/expr.ts'
import { children, isLazy, someExpr, withChildren } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import type { If, Stmt } from '../../ir/statements/loops.ts'
import {
  alloc,
  define,
  positionRegister,
  store,
  when,
  whileLoop,
} from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, mapExprs, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import { fieldAt } from '../../ir/values/packed-fields.ts'

export function expandSearches(body: Body, names: Names): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (!exprsOf(s).some(searches)) return undefined
      if (s.kind === 'if' && s.else.length === 0) {
        const terms = conjuncts(s.cond)
        const first = terms.findIndex((t, k) => k > 0 && searches(t))
        if (first > 0) {
          const inner = stmt<If>({ ...s, cond: all(terms.slice(first)) })
          return expandSearches([when(all(terms.slice(0, first)), [inner])], names)
        }
      }
      // The result of `let x = search` is `x` itself.
      const searchLet = s.kind === 'let' && s.value.kind === 'search' ? s : undefined
      const before = statementsBefore(names)
      const replaced = mapExprs(s, (e) =>
        before.take(e, searchLet && e === searchLet.value ? searchLet.name : undefined),
      )
      return searchLet ? before.body() : [...before.body(), replaced]
    },
  })
}

/** Statements under one condition of an expression, and the expressions that are already evaluated there. */
interface Run {
  readonly parts: (Stmt | { readonly where: Expr; readonly run: Run })[]
  readonly known: Map<string, Expr>
}

/** The truth value of an operand on which later operands depend, and the scope in which they are evaluated. */
interface Truth {
  readonly value: Expr
  /** The scope that is entered if all operands before `last` have this truth value. */
  readonly run: Run
  readonly last: Expr
}

/** Statements to run before a statement, so that its expressions contain no searches. */
function statementsBefore(names: Names) {
  /** Registers for results of conditional searches. */
  const registers: Stmt[] = []
  const always: Run = { parts: [], known: new Map() }
  /** Returns the expression without searches. If the whole expression is a search, its result is called `name`. */
  const take = (e: Expr, name: string | undefined): Expr => expand(e, always, name)
  const expand = (e: Expr, run: Run, name?: string): Expr => {
    if (!searches(e)) return e
    const cached = run.known.get(keyOf(e))
    if (cached) return cached
    const operands: Expr[] = []
    let truth: Truth | undefined
    for (const [k, x] of children(e).entries())
      if (k === 0 && isLazy(e)) {
        truth = decide(x, run, !isOr(e))
        operands.push(truth.value)
      } else operands.push(expand(x, truth ? branch(e, k, truth, run) : run))
    const rebuilt = withChildren(e, operands)
    const value = rebuilt.kind === 'search' ? result(rebuilt, run, name) : rebuilt
    run.known.set(keyOf(e), value)
    return value
  }
  /** Returns the scope in which the k-th operand of a lazy expression is evaluated. */
  const branch = (e: Expr, k: number, { value, run, last }: Truth, around: Run): Run =>
    e.kind === 'select' && k === 2 ? under(around, not(value)) : under(run, isOr(e) ? not(last) : last)
  /** Expands an operand whose truth value decides whether later operands are evaluated. `truth`: the value for which they are. */
  const decide = (e: Expr, run: Run, truth: boolean): Truth => {
    if (e.kind !== 'binary' || e.op !== (truth ? 'and' : 'or') || run.known.has(keyOf(e))) {
      const value = expand(e, run)
      return { value, run, last: value }
    }
    const a = decide(e.a, run, truth)
    const b = decide(e.b, under(a.run, truth ? a.last : not(a.last)), truth)
    return { ...b, value: withChildren(e, [a.value, b.value]) }
  }
  const result = (s: Search, run: Run, name = names.fresh('found')): Expr => {
    if (run === always) {
      run.parts.push(...emit(s, names, (at) => define(name, at)))
      return variable(name)
    }
    registers.push(alloc(positionRegister(name)), store(name, [int(0)], int(0)))
    run.parts.push(...emit(s, names, (at) => store(name, [int(0)], at)))
    return load(name, [int(0)])
  }
  return { body: (): Body => [...registers, ...bodyOf(always)], take }
}

const isOr = (e: Expr): boolean => e.kind === 'binary' && e.op === 'or'

/** Returns a new scope under a condition, inside `run`. */
function under(run: Run, where: Expr): Run {
  const inner: Run = { parts: [], known: new Map(run.known) }
  run.parts.push({ where, run: inner })
  return inner
}

const bodyOf = ({ parts }: Run): Body =>
  parts.flatMap((p) => {
    if (!('where' in p)) return [p]
    const inner = bodyOf(p.run)
    return inner.length > 0 ? [when(p.where, inner)] : []
  })

const searches = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'search')

function emit(s: Search, names: Names, result: (at: Expr) => Stmt): Stmt[] {
  const lo = names.fresh('lo')
  const hi = names.fresh('hi')
  const get = (b: string): Expr => load(b, [int(0)])
  const set = (b: string, value: Expr): Stmt => store(b, [int(0)], value)
  const declare = (b: string, value: Expr): Stmt[] => [alloc(positionRegister(b, s.hi)), set(b, value)]
  const at = (p: Expr): Expr => fieldAt(p, s.bits ?? 32, (word) => load(s.buffer, [word]), true)
  const loop = (body: readonly Stmt[], cond: Expr): Stmt => whileLoop(cond, body)
  const end = result(get(lo))
  if (s.method === 'linear' || s.method === 'next') {
    const differs = binary(s.method === 'next' ? 'le' : 'ne', at(get(lo)), s.value)
    const further = binary('and', lt(get(lo), s.hi), differs)
    return [...declare(lo, s.lo), loop([set(lo, add(get(lo), int(1)))], further), end]
  }
  const mid = names.fresh('mid')
  const m = variable(mid)
  const goRight = binary(s.method === 'lower' ? 'lt' : 'le', at(m), s.value)
  return [
    ...declare(lo, s.lo),
    ...declare(hi, s.hi),
    loop(
      [
        define(mid, add(get(lo), binary('quo', sub(get(hi), get(lo)), int(2)))),
        when(goRight, [set(lo, add(m, int(1)))], [set(hi, m)]),
      ],
      lt(get(lo), get(hi)),
    ),
    end,
  ]
}
