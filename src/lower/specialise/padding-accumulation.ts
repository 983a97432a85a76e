/**
 * Accumulation into the padding of register tiles. Invariant reached: if a register tile has padding elements (rows beyond the end of a
 * strip), and every consumer tests that its element exists, values are accumulated into all elements without a test. `for v where g { T[v]
 * += … }` loses `g`, so the copies of `v` share their common loads.
 * The first iteration is proved to run, so loads that do not depend on `v` are executed anyway. Loads that depend on `v` are aligned to
 * multiples of the loop's extent, so they are in range if the first one is.
 */

import {
  dropGuards,
  type GuardedReduction,
  isUnread,
  variablesDecidedBy,
} from '../../analysis/dependence/redundant-guards.ts'
import { type Facts, factsInside } from '../../analysis/integers/facts.ts'
import { coefficientOf, keepTerms, linear, sumExpr } from '../../analysis/integers/linear.ts'
import { type Expr, int, type Load } from '../../ir/expressions/expr.ts'
import { mentions, mentionsSome, readsSome, someExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { exprsOf, someStmt, withBody } from '../../ir/statements/tree.ts'
import { isDivision } from '../../ir/values/evaluate.ts'

export function accumulateIntoPadding(kernel: Kernel2): Kernel2 {
  const written = writesOf(kernel.body)
  const isRedundant = ({ reduce, inside, around, body }: GuardedReduction) => {
    const [loop] = inside
    const tile = reduce.targets.length === 1 ? reduce.targets[0]!.buffer : ''
    const isTile = (l: For): boolean =>
      l.body.some((a) => a.kind === 'alloc' && a.buffer.scope === 'register' && a.buffer.name === tile)
    const owner = around.findIndex(isTile)
    if (owner < 0) return () => false
    const varying = new Set(around.slice(owner + 1).map((l) => l.var))
    const facts = factsInside(around, kernel)
    for (const l of around) for (const g of l.guards) facts.holds(g)
    return (g: Expr): boolean =>
      mentions(g, loop.var) &&
      !readsSome(g, written) &&
      !mentionsSome(g, varying) &&
      isUnread(g, reduce, reduce.targets, inside, body) &&
      facts.implies(substitute(g, new Map([[loop.var, int(0)]]))) &&
      staysInside(inside, g, kernel, facts)
  }
  return withBody(kernel, dropGuards(kernel.body, isRedundant))
}

/** Returns true if iterations without the guard only accumulate, and their accesses are in range if those of the first iteration are. */
function staysInside(
  inside: GuardedReduction['inside'],
  without: Expr,
  { buffers }: Kernel2,
  facts: Facts,
): boolean {
  const [{ var: name, extent, mode, guards, body, cooperative }] = inside
  if (extent.kind !== 'const' || mode.kind === 'bind' || mode.kind === 'instr' || cooperative) return false
  if (someStmt(body, (s) => s.kind !== 'for' && s.kind !== 'reduce')) return false
  const decided = variablesDecidedBy(inside)
  const wholeMultiple = ({ buffer, index }: Load): boolean =>
    index.every((e, d) => {
      if (!mentionsSome(e, decided)) return true
      const by = coefficientOf(e, name) * extent.value
      const shape = buffers.find((b) => b.name === buffer)?.shape[d]
      const rest = keepTerms(linear(e), ({ term }) => !mentionsSome(term, decided))
      return (
        by > 0 &&
        linear(e).terms.size === rest.terms.size + 1 &&
        facts.isMultiple(sumExpr(rest), by) &&
        shape !== undefined &&
        facts.isMultiple(shape, by)
      )
    })
  const leaves = (e: Expr): boolean =>
    someExpr(
      e,
      (x) =>
        mentionsSome(x, decided) &&
        (x.kind === 'search' ||
          (isDivision(x) && x.b.kind !== 'const') ||
          (x.kind === 'load' && !wholeMultiple(x))),
    )
  return !guards.some((g) => g !== without && leaves(g)) && !someStmt(body, (s) => exprsOf(s).some(leaves))
}
