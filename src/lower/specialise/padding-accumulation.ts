/**
 * Accumulation into the padding of register tiles. Invariant reached: if a register tile has padding elements (rows beyond the end of a
 * strip), and every consumer tests that its element exists, values are accumulated into all elements without a test. `for v where g { T[v]
 * += … }` loses `g`, so the copies of `v` share their common loads.
 * The first iteration is proved to run, so loads that do not depend on `v` are executed anyway. Loads that depend on `v` are aligned to
 * multiples of the loop's extent, so they are in range if the first one is.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { coefficientOf, keepTerms, linear } from '../../analysis/integers/linear.ts'
import { beginsTile } from '../../analysis/integers/tiles.ts'
import { conjuncts, type Expr, int, type Load, variable } from '../../ir/expressions/expr.ts'
import {
  freeVars,
  mentions,
  readsSome,
  someExpr,
  substitute,
  walkExpr,
} from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { accessesOf, type BufferAccess, writesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, For, Kernel2 } from '../../ir/statements/loops.ts'
import { exprsOf, rewriteStmts, someStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'
import { isDivision } from '../../ir/values/evaluate.ts'

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

/** Returns true if the loop indexes one dimension of the tile, and every consumer tests the same condition. */
function isAskedByReaders(g: Expr, loop: For, writer: BufferAccess, uses: readonly BufferAccess[]): boolean {
  const isVar = (e: Expr, v: string): boolean => e.kind === 'var' && e.name === v
  const dim = writer.index.findIndex((e) => isVar(e, loop.var))
  if (dim < 0 || writer.index.some((e, d) => d !== dim && mentions(e, loop.var))) return false
  return uses.every(
    (use) =>
      use === writer ||
      use.path.some((l) => {
        const guardKey = keyOf(substitute(g, new Map([[loop.var, use.index[dim]!]])))
        return (
          use.index[dim]?.kind === 'var' &&
          isVar(use.index[dim], l.var) &&
          l.guards.some((x) => keyOf(x) === guardKey)
        )
      }),
  )
}

/**
 * Returns true if the condition holds in the loop's first iteration. Sources of upper bounds: loop extents, enclosing guards, and bounds
 * of index arrays.
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
  return ends.some(([x, end]) => beginsTile(first.a, first.b, x, end))
}

const dividesByUnknown = (e: Expr): boolean => isDivision(e) && e.b.kind !== 'const'

/**
 * Returns true if iterations without these guards only accumulate, and their accesses are in range if those of the first iteration are.
 */
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
