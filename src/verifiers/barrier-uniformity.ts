/**
 * Checks that all threads of a block reach every barrier together: no condition and no trip count around a barrier may differ
 * between them. The check is syntactic, like the uniformity analysis of WGSL.
 */

import type { Expr, ThreadAxis } from '../ir/expr.ts'
import { someExpr } from '../ir/expr-tree.ts'
import { levelOf } from '../ir/hardware-axes.ts'
import type { Stmt } from '../ir/loops.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { type Body, hasBarrier, someStmt, walkStmts } from '../ir/tree.ts'

/**
 * Describes a divergent barrier or lane exchange of a launch; `undefined` if all are uniform. `readOnly` reports buffers that
 * the launch does not write: a load from them at a uniform index is uniform. `width` is the extent of thread.x: lanes whose
 * number divides it differ in thread.x alone.
 */
export function uniformBarriers(
  body: Body,
  readOnly: (buffer: string) => boolean,
  width: number,
): string | undefined {
  if (!someStmt(body, (s) => s.kind === 'barrier' || amongOf(s) !== undefined)) return undefined
  const ofLanes = (s: Stmt): boolean => amongOf(s) !== undefined
  const inRow = (s: Stmt): boolean => width % (amongOf(s) ?? Number.NaN) === 0
  const inCluster = (s: Stmt): boolean => s.kind === 'barrier' && s.cluster === true
  const threads = (axis: ThreadAxis): boolean => levelOf(axis) === 'thread'
  // What lanes read of memory that is written is one value where barriers are: no language asks its text to say so.
  const any = (): boolean => true
  return (
    uniform(body, readOnly, threads, (s) => !ofLanes(s)) ??
    uniform(body, any, threads, (s) => ofLanes(s) && !inRow(s)) ??
    uniform(body, any, (axis) => axis === 'thread.x', inRow) ??
    uniform(body, readOnly, (axis) => threads(axis) || axis === 'block.x', inCluster)
  )
}

/** Number of neighbouring lanes in a lane exchange. */
const amongOf = (s: Stmt): number | undefined =>
  s.kind === 'let' ? s.lane?.among : s.kind === 'reduce' || s.kind === 'barrier' ? s.lanes?.among : undefined

/** Describes a statement satisfying `waits` whose execution depends on values that vary along the given axes. */
function uniform(
  body: Body,
  readOnly: (buffer: string) => boolean,
  along: (axis: ThreadAxis) => boolean,
  waits: (s: Stmt) => boolean,
): string | undefined {
  const meets = (s: Stmt): boolean =>
    (s.kind === 'barrier' || (s.kind === 'let' && s.uniform) || amongOf(s) !== undefined) && waits(s)
  /** Variables and register arrays that may differ between the threads of a block. */
  const varying = new Set<string>()
  const registers = new Set<string>()
  walkStmts(body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') registers.add(s.buffer.name)
  })
  const decides = (e: Expr): boolean => {
    if (e.kind === 'var') return varying.has(e.name)
    if (e.kind === 'builtin') return along(e.axis)
    if (e.kind === 'load' || e.kind === 'search')
      if (registers.has(e.buffer) ? varying.has(e.buffer) : !readOnly(e.buffer)) return true
    return false
  }
  const differs = (e: Expr): boolean => someExpr(e, decides)
  const visit = (list: Body, around: Expr | undefined): string | undefined => {
    for (const s of list) {
      const problem = statement(s, around)
      if (problem) return problem
    }
    return undefined
  }
  const statement = (s: Stmt, around: Expr | undefined): string | undefined => {
    switch (s.kind) {
      case 'barrier':
        return around && meets(s)
          ? `a barrier depends on ${printExpr(around)}, which differs between the threads of a block`
          : undefined
      case 'let':
        if (around && meets(s))
          return `${s.uniform ? 'what all threads are told' : 'an exchange'} depends on ${printExpr(around)}, which differs between the lanes`
        if (s.uniform && s.value.kind === 'load') {
          if (s.value.index.some(differs)) varying.add(s.name)
        } else if (around || s.lane || differs(s.value)) varying.add(s.name)
        return undefined
      case 'for': {
        const own = differs(s.extent) ? s.extent : around
        if (own) varying.add(s.var)
        return visit(s.body, own)
      }
      case 'while':
        if (hasBarrier(s.body)) return 'a barrier stands inside of a search'
        return visit(s.body, differs(s.cond) ? s.cond : around)
      case 'store':
        if (around || differs(s.value) || s.index.some(differs)) varying.add(s.buffer)
        return undefined
      case 'reduce':
        if (around && meets(s))
          return `an exchange depends on ${printExpr(around)}, which differs between the lanes`
        for (const t of s.targets) varying.add(t.buffer)
        return undefined
      case 'if': {
        const own = differs(s.cond) ? s.cond : around
        return visit(s.then, own) ?? visit(s.else, own)
      }
      default:
        return undefined
    }
  }
  // What varies grows until nothing is added: a loop's later stores reach its earlier loads.
  for (;;) {
    const before = varying.size
    const problem = visit(body, undefined)
    if (problem || varying.size === before) return problem
  }
}
