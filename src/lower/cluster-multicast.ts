/**
 * What the blocks of a cluster copy alike: copies by instructions that have a text for `multicast`, nothing of which
 * changes with the loop that the blocks are iterations of.
 */
import { accessesOf } from '../ir/accesses.ts'
import { type Expr, int, mod, variable } from '../ir/expr.ts'
import { someExpr } from '../ir/expr-tree.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { type Body, exprsOf, findLoop, walkStmts } from '../ir/tree.ts'

export interface Alike {
  /** Blocks. */
  readonly cluster: number
  /** The number of a block in its cluster. */
  readonly rank: Expr
  /** Whether it is this copy that all of them make. */
  is(copy: For): boolean
}

/**
 * Of `copies` in `loop` of the nest `top`, if there are any, and all blocks run the loop alike. `memory`: what the kernel
 * allocates, which may differ.
 */
export function alikeIn(copies: Body, loop: For, top: Stmt, memory: ReadonlySet<string>): Alike | undefined {
  const clustered = clusterOf([top])
  if (!clustered) return undefined
  const varying = varyingWith(clustered.loop, top)
  const differs = (e: Expr): boolean =>
    someExpr(
      e,
      (x) =>
        (x.kind === 'var' && varying.has(x.name)) ||
        ((x.kind === 'load' || x.kind === 'search') && memory.has(x.buffer)),
    )
  const runs = (s: Stmt): boolean => findLoop([s], loop.var) !== undefined
  let together = true
  walkStmts([top], (s) => {
    if (runs(s) && exprsOf(s).some(differs)) together = false
  })
  if (!together) return undefined
  const filled = new Map<string, boolean>()
  for (const s of copies) {
    let same = true
    walkStmts([s], (x) => {
      if (x.kind === 'for' && x.mode.kind === 'instr') same &&= x.mode.instr.multicast !== undefined
      same &&= !exprsOf(x).some(differs)
    })
    for (const a of accessesOf([s]))
      if (a.mode === 'write') filled.set(a.buffer, same && filled.get(a.buffer) !== false)
  }
  if (![...filled.values()].includes(true)) return undefined
  const is = (copy: For): boolean =>
    accessesOf([copy]).every((a) => a.mode !== 'write' || filled.get(a.buffer) === true)
  const { blocks } = clustered
  return { cluster: blocks, rank: mod(variable(clustered.loop.var), int(blocks)), is }
}

/** The loop whose iterations form clusters. */
export function clusterOf(body: Body): { readonly loop: For; readonly blocks: number } | undefined {
  let found: { loop: For; blocks: number } | undefined
  walkStmts(body, (s) => {
    if (s.kind === 'for' && s.mode.kind === 'bind' && s.mode.cluster)
      found ??= { loop: s, blocks: s.mode.cluster }
  })
  return found
}

/** The loop's variable, and what is computed from it. */
function varyingWith(loop: For, top: Stmt): ReadonlySet<string> {
  const varying = new Set([loop.var])
  const differs = (e: Expr): boolean => someExpr(e, (x) => x.kind === 'var' && varying.has(x.name))
  for (;;) {
    const before = varying.size
    walkStmts([top], (s) => {
      if (s.kind === 'let' && differs(s.value)) varying.add(s.name)
      if (s.kind === 'for' && differs(s.extent)) varying.add(s.var)
    })
    if (varying.size === before) return varying
  }
}
