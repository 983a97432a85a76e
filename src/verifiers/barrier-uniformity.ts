/**
 * Checks that all threads of a block reach every barrier together: no condition and no trip count around a barrier may differ
 * between them. The check is syntactic, like the uniformity analysis of WGSL.
 */
import type { Expr, ThreadAxis } from '../ir/expressions/expr.ts'
import { someExpr } from '../ir/expressions/expr-tree.ts'
import { levelOf } from '../ir/instructions/hardware-axes.ts'
import { printExpr } from '../ir/print/print-stage2.ts'
import { allocatedNames } from '../ir/statements/bindings.ts'
import type { Stmt } from '../ir/statements/loops.ts'
import { type Body, hasBarrier, someStmt } from '../ir/statements/tree.ts'

/**
 * Describes a divergent barrier or lane exchange of a launch; `undefined` if all are uniform. `readOnly` reports buffers that
 * the launch does not write: a load from them at a uniform index is uniform. `width` is the extent of thread.x: lanes whose
 * number divides it differ in thread.x alone.
 */
export function findDivergentBarrier(
  body: Body,
  isReadOnly: (buffer: string) => boolean,
  width: number,
): string | undefined {
  if (!someStmt(body, (s) => s.kind === 'barrier' || laneGroupSize(s) !== undefined)) return undefined
  const isLaneExchange = (s: Stmt): boolean => laneGroupSize(s) !== undefined
  const isWithinRow = (s: Stmt): boolean => width % (laneGroupSize(s) ?? Number.NaN) === 0
  const isClusterBarrier = (s: Stmt): boolean => s.kind === 'barrier' && s.cluster === true
  const isThreadAxis = (axis: ThreadAxis): boolean => levelOf(axis) === 'thread'
  // Target languages do not require lanes to read only read-only memory for uniformity: loads from any buffer are accepted.
  const anyBuffer = (): boolean => true
  return (
    findDivergence(body, isReadOnly, isThreadAxis, (s) => !isLaneExchange(s)) ??
    findDivergence(body, anyBuffer, isThreadAxis, (s) => isLaneExchange(s) && !isWithinRow(s)) ??
    findDivergence(body, anyBuffer, (axis) => axis === 'thread.x', isWithinRow) ??
    findDivergence(body, isReadOnly, (axis) => isThreadAxis(axis) || axis === 'block.x', isClusterBarrier)
  )
}

/** Number of neighbouring lanes that take part in a lane exchange. */
const laneGroupSize = (s: Stmt): number | undefined =>
  s.kind === 'let' ? s.lane?.among : s.kind === 'reduce' || s.kind === 'barrier' ? s.lanes?.among : undefined

/** Describes a statement satisfying `waits` whose execution depends on values that vary along the given axes. */
function findDivergence(
  body: Body,
  isReadOnly: (buffer: string) => boolean,
  isVaryingAxis: (axis: ThreadAxis) => boolean,
  selects: (s: Stmt) => boolean,
): string | undefined {
  const mustBeUniform = (s: Stmt): boolean =>
    (s.kind === 'barrier' || (s.kind === 'let' && s.uniform) || laneGroupSize(s) !== undefined) && selects(s)
  /** Variables and register arrays whose values may differ along the axes. */
  const varying = new Set<string>()
  const registers = allocatedNames(body, 'register')
  const isVaryingNode = (e: Expr): boolean => {
    if (e.kind === 'var') return varying.has(e.name)
    if (e.kind === 'builtin') return isVaryingAxis(e.axis)
    if (e.kind === 'load' || e.kind === 'search')
      if (registers.has(e.buffer) ? varying.has(e.buffer) : !isReadOnly(e.buffer)) return true
    return false
  }
  const isVarying = (e: Expr): boolean => someExpr(e, isVaryingNode)
  const visit = (list: Body, divergence: Expr | undefined): string | undefined => {
    for (const s of list) {
      const problem = statement(s, divergence)
      if (problem) return problem
    }
    return undefined
  }
  const statement = (s: Stmt, divergence: Expr | undefined): string | undefined => {
    switch (s.kind) {
      case 'barrier':
        return divergence && mustBeUniform(s)
          ? `a barrier depends on ${printExpr(divergence)}, which differs between the threads of a block`
          : undefined
      case 'let':
        if (divergence && mustBeUniform(s))
          return `${s.uniform ? 'what all threads are told' : 'an exchange'} depends on ${printExpr(divergence)}, which differs between the lanes`
        if (s.uniform && s.value.kind === 'load') {
          if (s.value.index.some(isVarying)) varying.add(s.name)
        } else if (divergence || s.lane || isVarying(s.value)) varying.add(s.name)
        return undefined
      case 'for': {
        const inner = isVarying(s.extent) ? s.extent : divergence
        if (inner) varying.add(s.var)
        return visit(s.body, inner)
      }
      case 'while':
        if (hasBarrier(s.body)) return 'a barrier stands inside of a search'
        return visit(s.body, isVarying(s.cond) ? s.cond : divergence)
      case 'store':
        if (divergence || isVarying(s.value) || s.index.some(isVarying)) varying.add(s.buffer)
        return undefined
      case 'reduce':
        if (divergence && mustBeUniform(s))
          return `an exchange depends on ${printExpr(divergence)}, which differs between the lanes`
        for (const t of s.targets) varying.add(t.buffer)
        return undefined
      case 'if': {
        const inner = isVarying(s.cond) ? s.cond : divergence
        return visit(s.then, inner) ?? visit(s.else, inner)
      }
      default:
        return undefined
    }
  }
  // Fixed point: stores later in a loop body reach loads earlier in it.
  for (;;) {
    const previousSize = varying.size
    const problem = visit(body, undefined)
    if (problem || varying.size === previousSize) return problem
  }
}
