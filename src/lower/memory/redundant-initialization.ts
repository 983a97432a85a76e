/**
 * Dead store elimination for initial fills. Invariant reached: no buffer is filled whose elements one nest then updates exactly once each;
 * the nest stores instead. Facts about sizes must prove that the buffer has no padding elements.
 */

import { visitsAll } from '../../analysis/dependence/full-coverage.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { Fill, For, Kernel2, Reduce } from '../../ir/statements/loops.ts'
import { store } from '../../ir/statements/statement-builders.ts'
import { type Body, replaceStmt, withBody } from '../../ir/statements/tree.ts'

export function removeRedundantInitialization(kernel: Kernel2): Kernel2 {
  let body: Body = kernel.body
  for (const fill of kernel.body) {
    if (fill.kind !== 'fill') continue
    const shape = kernel.buffers.find((b) => b.name === fill.buffer)?.shape
    const update = shape && onlyUpdate(body, fill, shape, kernel.facts)
    if (!update) continue
    const [target] = update.targets
    body = replaceStmt(
      body.filter((s) => s !== fill),
      update,
      () => store(target!.buffer, target!.index, update.values[0]!),
    )
  }
  return withBody(kernel, body)
}

/**
 * Returns the reduction that is the only access to a filled buffer, visits each element once, and has the fill value as its identity.
 * Otherwise undefined.
 */
function onlyUpdate(
  body: Body,
  fill: Fill,
  shape: readonly Expr[],
  facts: Kernel2['facts'],
): Reduce | undefined {
  const accesses = accessesOf(body).filter((a) => a.buffer === fill.buffer && a.stmt !== fill)
  const [access] = accesses
  if (accesses.length !== 1 || access?.stmt.kind !== 'reduce') return undefined
  const { stmt: update, path } = access
  const [target] = update.targets
  const [identity] = update.reducer.identity
  if (update.targets.length !== 1 || update.init || update.values[0]!.dtype !== target!.dtype)
    return undefined
  if (!identity || !sameExpr(identity, fill.value)) return undefined
  const guards = path.flatMap((l) => l.guards)
  return isUnconditional(body, update, path) && visitsAll(target!.index, shape, path, guards, facts)
    ? update
    : undefined
}

/** Returns true if the loops and the statement are nested without conditions, reduction loops and instructions. */
function isUnconditional(body: Body, s: Reduce, path: readonly For[]): boolean {
  const around = [body, ...path.map((l) => l.body)]
  return (
    [...path, s].every((x, k) => around[k]!.includes(x)) &&
    path.every((l) => !l.reduce && l.mode.kind !== 'instr')
  )
}
