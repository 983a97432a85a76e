/**
 * Cluster multicast: one block of a thread-block cluster copies a tile for all blocks of the cluster. Such copies use an instruction with
 * a `multicast` variant, and do not depend on the loop whose iterations are the blocks.
 */

import { type Expr, int, mod, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { findLoop, loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, someStmt, walkStmts } from '../../ir/statements/tree.ts'

export interface BlockInvariantCopies {
  /** The number of blocks in a cluster. */
  readonly cluster: number
  /** The number of the executing block in its cluster. */
  readonly rank: Expr
  /** Returns true if the copy is identical in all blocks of the cluster. */
  includes(copy: For): boolean
}

/**
 * Returns the block-invariant copies among `copies` in `loop` of the nest `top`. Undefined if no copy is invariant, or if the blocks may
 * run the loop differently. `allocated`: names of the kernel's local buffers, whose contents may differ between blocks.
 */
export function blockInvariantCopies(
  copies: Body,
  loop: For,
  top: Stmt,
  allocated: ReadonlySet<string>,
): BlockInvariantCopies | undefined {
  const clustered = clusterOf([top])
  if (!clustered) return undefined
  const varying = dependentOn(clustered.loop, top)
  const varies = (e: Expr): boolean =>
    someExpr(
      e,
      (x) =>
        (x.kind === 'var' && varying.has(x.name)) ||
        ((x.kind === 'load' || x.kind === 'search') && allocated.has(x.buffer)),
    )
  const contains = (s: Stmt): boolean => findLoop([s], loop.var) !== undefined
  if (someStmt([top], (s) => contains(s) && exprsOf(s).some(varies))) return undefined
  const invariantFills = new Map<string, boolean>()
  for (const s of copies) {
    const differs = (x: Stmt): boolean =>
      (x.kind === 'for' && x.mode.kind === 'instr' && !x.mode.instr.multicast) || exprsOf(x).some(varies)
    const same = !someStmt([s], differs)
    for (const a of accessesOf([s]))
      if (a.mode === 'write') invariantFills.set(a.buffer, same && invariantFills.get(a.buffer) !== false)
  }
  if (![...invariantFills.values()].includes(true)) return undefined
  const includes = (copy: For): boolean =>
    accessesOf([copy]).every((a) => a.mode !== 'write' || invariantFills.get(a.buffer) === true)
  const { blocks } = clustered
  return { cluster: blocks, rank: mod(variable(clustered.loop.var), int(blocks)), includes }
}

/** The loop whose iterations form clusters of `blocks` blocks; undefined if no loop does. */
export function clusterOf(body: Body): { readonly loop: For; readonly blocks: number } | undefined {
  const clusters = loopsOf(body).flatMap((loop) =>
    loop.mode.kind === 'bind' && loop.mode.cluster ? [{ loop, blocks: loop.mode.cluster }] : [],
  )
  return clusters[0]
}

/** Names of the loop's variable and of the variables computed from it. */
function dependentOn(loop: For, top: Stmt): ReadonlySet<string> {
  const varying = new Set([loop.var])
  const varies = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'var' && varying.has(x.name))
  for (;;) {
    const before = varying.size
    walkStmts([top], (s) => {
      if (s.kind === 'let' && varies(s.value)) varying.add(s.name)
      if (s.kind === 'for' && varies(s.extent)) varying.add(s.var)
    })
    if (varying.size === before) return varying
  }
}
