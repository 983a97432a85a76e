/**
 * Simplification of conditions under facts: bounds that always hold, such as `v c + rest < n` over `n / c` tiles if c
 * divides n, where v may be a coordinate. Values of the source may wrap, and count as data.
 */

import { add, bool, type Expr, int, lt, rewriter, variable } from '../../ir/expressions/expr.ts'
import { readsMemory, readsSome, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import type { Rule } from '../../ir/expressions/patterns.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import { mapSame, reuseIfSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, mapExprs, stmt, withBodies } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'
import type { Facts } from './facts.ts'
import { linear, minus } from './linear.ts'

const implied: Rule<Facts>['to'] = (_, facts, e) => (facts.implies(e) ? bool(true) : undefined)

/** Rules for comparisons under facts. */
export const CONDITION_RULES: readonly Rule<Facts>[] = [
  { name: 'implied bound', match: ['lt', 'x', 'y'], to: implied },
  { name: 'implied sign', match: ['ge', 'x', 0], to: implied },
  {
    // If g | Σ and 0 <= r < g, then Σ + q g + r < 0 is equivalent to Σ + q g < 0: lanes of a vector share the condition.
    name: 'multiples',
    match: ['lt', 'x', 'y'],
    to: ({ x, y }, facts) => {
      const constant = x!.kind === 'binary' && x!.op === 'add' ? x!.b : x!
      if (facts.ofSizes.length === 0 || constant.kind !== 'const' || !isWord(x!.dtype)) return undefined
      if (hasWrappingTerms(x!) || hasWrappingTerms(y!)) return undefined
      const difference = minus(linear(x!), linear(y!))
      const g = facts.divisorOfTerms(difference)
      const r = g < 2 ? 0 : ((difference.constant % g) + g) % g
      return r === 0 ? undefined : lt(add(x!, int(-r)), y!)
    },
  },
]

const simplifyCondition = rewriter(CONDITION_RULES)

/** Returns a function to expressions that are equal under the facts, with fewer and uniform conditions. */
function simplifierUnder(facts: Facts): (e: Expr) => Expr {
  const memo = new Map<Expr, Expr>()
  const simplified = (e: Expr): Expr | undefined => {
    const value = e.dtype === 'bool' ? facts.decided(e) : undefined
    return value === undefined ? simplifyCondition(e, facts) : bool(value)
  }
  return (e) => rewriteExpr(e, simplified, memo)
}

/**
 * Returns the facts in the nested lists of a statement: a loop adds its extent, and a branch adds the facts about sizes
 * that its condition implies.
 */
export function nestedFacts(s: Stmt, facts: Facts): (list: number) => Facts {
  if (s.kind === 'if') return (list) => (list === 0 ? facts.where(s.cond) : facts)
  if (s.kind !== 'for') return () => facts
  const inside = facts.child()
  // The extent is computed once, before the loop.
  if (!readsMemory(s.extent) || !readsSome(s.extent, writesOf(s.body)))
    inside.coordinate(variable(s.var), s.extent)
  return () => inside
}

/**
 * Returns the body with simplified guards, branches and selections, without branches that are never taken, loops that
 * never run (unless `keepsLoops`), and statements that become empty.
 */
export function simplifyUnder(body: Body, facts: Facts, keepsLoops = false): Body {
  const simplify = simplifierUnder(facts)
  const out = body.flatMap((old): Body => {
    const inside = nestedFacts(old, facts)
    const nested = bodiesOf(old).map((b, list) => simplifyUnder(b, inside(list), keepsLoops))
    const isEmptied = nested.length > 0 && nested.every((b, k) => b.length === 0 && bodiesOf(old)[k] !== b)
    if (isEmptied) return []
    const s = withBodies(old, nested)
    if (s.kind === 'for') {
      const { hi, knownHi } = facts.range(s.extent)
      if (!keepsLoops && knownHi && hi <= 0) return []
      const simpler = mapSame(s.guards, simplifierUnder(inside(0)))
      const guards = simpler.some(isTrue) ? simpler.filter((g) => !isTrue(g)) : simpler
      const extent = simplify(s.extent)
      return [guards === s.guards && extent === s.extent ? s : stmt<For>({ ...s, extent, guards })]
    }
    const simpler = mapExprs(s, simplify)
    if (simpler.kind !== 'if' || simpler.cond.kind !== 'const') return [simpler]
    if (isTrue(simpler.cond)) return simpler.then
    // A write that is never made is reported as lost.
    return simpler.absent === undefined ? simpler.else : [simpler]
  })
  return reuseIfSame(body, out)
}

const isTrue = (e: Expr): boolean => e.kind === 'const' && e.value !== 0
