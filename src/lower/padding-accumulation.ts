/**
 * Accumulation into padding of register tiles. Invariant reached: where a register tile has elements beyond what there is
 * of a tensor (the last rows of a strip), and whoever reads them asks whether they exist, values are combined into all of
 * them without asking: `for v where g { T[v] += … }` does without g. What copies of `v` load in common is one load then.
 *
 * The first iteration is proved to run, so that whatever does not depend on `v` is done in any case; loads that do read
 * whole multiples of the loop's extent, of which the first iteration reads the first element.
 */

import { Facts } from '../analysis/integers/facts.ts'
import { coefficientOf, keepTerms, linear, roundedUp, sameSum, sumExpr } from '../analysis/integers/linear.ts'
import { accessesOf, type BufferAccess, writesOf } from '../ir/accesses.ts'
import { isDivision } from '../ir/evaluate.ts'
import { conjuncts, type Expr, int, type Load, mul, variable } from '../ir/expr.ts'
import { freeVars, mentions, readsSome, someExpr, substitute, walkExpr } from '../ir/expr-tree.ts'
import type { Buffer, For, Kernel2 } from '../ir/loops.ts'
import { keyOf } from '../ir/structural-equality.ts'
import { exprsOf, rewriteStmts, someStmt, stmt, walkStmts } from '../ir/tree.ts'

export function accumulateIntoPadding(kernel: Kernel2): Kernel2 {
  const dropped = new Map<string, ReadonlySet<Expr>>()
  const written = writesOf(kernel.body)
  walkStmts(kernel.body, (s, path) => {
    if (s.kind !== 'for') return
    const registers = s.body.flatMap((a) =>
      a.kind === 'alloc' && a.buffer.scope === 'register' ? [a.buffer] : [],
    )
    if (registers.length === 0) return
    const outside = new Set([...path, s].map((l) => l.var).concat(kernel.params.map((p) => p.name)))
    const accesses = accessesOf(s.body)
    for (const { name } of registers) {
      const uses = accesses.filter((a) => a.buffer === name)
      const writes = uses.filter((a) => a.mode === 'write')
      const [writer] = writes
      if (writes.length !== 1 || writer?.stmt.kind !== 'reduce' || writer.stmt.targets.length !== 1) continue
      for (const [k, loop] of writer.path.entries()) {
        const stable = loop.guards.filter(
          (g) =>
            mentions(g, loop.var) &&
            !readsSome(g, written) &&
            [...freeVars(g)].every((v) => v === loop.var || outside.has(v)) &&
            isAskedByReaders(g, loop, writer, uses) &&
            runsFirst(g, loop, [...path, s, ...writer.path.slice(0, k)], kernel.buffers),
        )
        if (stable.length > 0 && staysInside(loop, stable, kernel)) dropped.set(loop.var, new Set(stable))
      }
    }
  })
  if (dropped.size === 0) return kernel
  const body = rewriteStmts(kernel.body, {
    stmt: (s) => {
      const guards = s.kind === 'for' ? dropped.get(s.var) : undefined
      return s.kind === 'for' && guards
        ? stmt({ ...s, guards: s.guards.filter((g) => !guards.has(g)) })
        : undefined
    },
  })
  return { ...kernel, body }
}

/** Whether the loop is a dimension of the tile, and whoever reads an element of it asks the same condition before. */
function isAskedByReaders(g: Expr, loop: For, writer: BufferAccess, uses: readonly BufferAccess[]): boolean {
  const isVar = (e: Expr, v: string): boolean => e.kind === 'var' && e.name === v
  const dim = writer.index.findIndex((e) => isVar(e, loop.var))
  if (dim < 0 || writer.index.some((e, d) => d !== dim && mentions(e, loop.var))) return false
  return uses.every(
    (use) =>
      use === writer ||
      use.path.some((l) => {
        const asked = keyOf(substitute(g, new Map([[loop.var, use.index[dim]!]])))
        return (
          use.index[dim]?.kind === 'var' &&
          isVar(use.index[dim], l.var) &&
          l.guards.some((x) => keyOf(x) === asked)
        )
      }),
  )
}

/**
 * Whether the condition holds in the loop's first iteration: tiles of which there are `ceildiv(n, c)` begin below n. What
 * is known to be below that is a loop's variable, what a condition around asks, or what an index array holds.
 */
function runsFirst(g: Expr, loop: For, around: readonly For[], buffers: readonly Buffer[]): boolean {
  const first = substitute(g, new Map([[loop.var, int(0)]]))
  if (first.kind !== 'binary' || first.op !== 'lt') return false
  const ends: (readonly [Expr, Expr])[] = around.flatMap((l) => [
    [variable(l.var), l.extent] as const,
    ...l.guards
      .flatMap(conjuncts)
      .flatMap((c) => (c.kind === 'binary' && c.op === 'lt' ? [[c.a, c.b] as const] : [])),
  ])
  walkExpr(first.a, (e) => {
    const below = e.kind === 'load' ? buffers.find((b) => b.name === e.buffer)?.below : undefined
    if (below) ends.push([e, below])
  })
  return ends.some(([x, end]) => {
    const tiles = roundedUp(end)
    if (sameSum(x, first.a) && sameSum(end, first.b)) return true
    return (
      tiles !== undefined && sameSum(mul(x, int(tiles.by)), first.a) && sameSum(sumExpr(tiles.total), first.b)
    )
  })
}

const dividesByUnknown = (e: Expr): boolean => isDivision(e) && e.b.kind !== 'const'

/** Whether an iteration without these guards only combines, and reads nothing outside of arrays where the first one does not. */
function staysInside(loop: For, without: readonly Expr[], { buffers, facts: sizes }: Kernel2): boolean {
  const { extent, mode, guards, body } = loop
  if (extent.kind !== 'const' || mode.kind === 'bind' || mode.kind === 'instr' || loop.cooperative)
    return false
  if (someStmt(body, (s) => s.kind !== 'for' && s.kind !== 'reduce')) return false
  const facts = new Facts({ sizes })
  const wholeMultiple = ({ buffer, index }: Load): boolean =>
    index.every((e, d) => {
      if (!mentions(e, loop.var)) return true
      const by = coefficientOf(e, loop.var) * extent.value
      const rest = keepTerms(linear(e), ({ term }) => !mentions(term, loop.var))
      const shape = buffers.find((b) => b.name === buffer)?.shape[d]
      return (
        by > 0 &&
        linear(e).terms.size === rest.terms.size + 1 &&
        rest.constant % by === 0 &&
        facts.divisorOfTerms(rest) % by === 0 &&
        shape !== undefined &&
        facts.isMultiple(shape, by)
      )
    })
  const mayLeave = (e: Expr): boolean =>
    mentions(e, loop.var) &&
    (e.kind === 'search' || dividesByUnknown(e) || (e.kind === 'load' && !wholeMultiple(e)))
  const leaves = (e: Expr): boolean => someExpr(e, mayLeave)
  return (
    !guards.some((g) => !without.includes(g) && leaves(g)) && !someStmt(body, (s) => exprsOf(s).some(leaves))
  )
}
