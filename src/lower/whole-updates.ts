/**
 * Invariant reached: nothing is filled that one nest then combines something into, element by element, each of them
 * once: the nest stores it. What a format stores beyond the tensor's elements is written in no other way where facts
 * about sizes say that there is nothing beyond.
 */
import { accessesOf } from '../ir/accesses.ts'
import { ceildiv, type Expr, int } from '../ir/expr.ts'
import { sameExpr } from '../ir/keys.ts'
import { type Linear, linear, linearKey, loopMap } from '../ir/linear.ts'
import type { Fill, For, Kernel2, Reduce } from '../ir/loops.ts'
import { type Body, replaceStmt, stmt } from '../ir/tree.ts'

export function storeWholeUpdates(kernel: Kernel2): Kernel2 {
  let body: Body = kernel.body
  for (const fill of kernel.body) {
    if (fill.kind !== 'fill') continue
    const shape = kernel.buffers.find((b) => b.name === fill.buffer)?.shape
    const update = shape && onlyUpdate(body, fill, shape)
    if (!update) continue
    const [target] = update.targets
    body = replaceStmt(
      body.filter((s) => s !== fill),
      update,
      () => stmt({ kind: 'store', buffer: target!.buffer, index: target!.index, value: update.values[0]! }),
    )
  }
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** The reduction that is all that happens to a filled buffer, to each element once, and begins at the fill's value. */
function onlyUpdate(body: Body, fill: Fill, shape: readonly Expr[]): Reduce | undefined {
  const accesses = accessesOf(body).filter((a) => a.buffer === fill.buffer && a.stmt !== fill)
  const [access] = accesses
  if (accesses.length !== 1 || access?.stmt.kind !== 'reduce') return undefined
  const { stmt: update, path } = access
  const [target] = update.targets
  const [identity] = update.reducer.identity
  if (update.targets.length !== 1 || update.init || update.values[0]!.dtype !== target!.dtype)
    return undefined
  if (identity?.kind !== 'const' || fill.value.kind !== 'const' || identity.value !== fill.value.value)
    return undefined
  return isUnconditional(body, update, path) && visitsAll(target!.index, shape, path) ? update : undefined
}

/** Whether the statement lies directly in the loops, each in the next. */
function isUnconditional(body: Body, s: Reduce, path: readonly For[]): boolean {
  const around = [body, ...path.map((l) => l.body)]
  return (
    [...path, s].every((x, k) => around[k]!.includes(x)) &&
    path.every((l) => !l.reduce && l.mode.kind !== 'instr')
  )
}

/** Whether loops over digits of each dimension visit every element, and each of them once; guards may only end the last round. */
function visitsAll(index: readonly Expr[], shape: readonly Expr[], path: readonly For[]): boolean {
  const loops = loopMap(path)
  const unused = new Set(path.filter((l) => !isOne(l.extent)))
  const guards = new Set(path.flatMap((l) => l.guards))
  const digitsOf = (e: Expr): Linear => {
    const { constant, terms } = linear(e)
    const more = [...terms].filter(([, { term }]) => {
      const loop = term.kind === 'var' ? loops.get(term.name) : undefined
      return !loop || !isOne(loop.extent)
    })
    return { constant, terms: new Map(more) }
  }
  const isTrimmed = (digits: Linear, extent: Expr): boolean => {
    const trim = [...guards].find(
      (g) =>
        g.kind === 'binary' &&
        g.op === 'lt' &&
        sameExpr(g.b, extent) &&
        linearKey(digitsOf(g.a)) === linearKey(digits),
    )
    return trim !== undefined && guards.delete(trim)
  }
  const covers = (e: Expr, extent: Expr): boolean => {
    const digits = digitsOf(e)
    if (digits.constant !== 0) return false
    let size = 1
    const ascending = [...digits.terms.values()].sort((a, b) => a.coefficient - b.coefficient)
    for (const [k, { term, coefficient }] of ascending.entries()) {
      const loop = term.kind === 'var' ? loops.get(term.name) : undefined
      if (!loop || !unused.delete(loop) || coefficient !== size) return false
      if (loop.extent.kind === 'const') size *= loop.extent.value
      else if (k < ascending.length - 1) return false
      else if (sameExpr(loop.extent, extent)) return size === 1
      else return sameExpr(loop.extent, ceildiv(extent, int(size))) && isTrimmed(digits, extent)
    }
    return extent.kind === 'const' && extent.value === size
  }
  return index.every((e, k) => covers(e, shape[k]!)) && unused.size === 0 && guards.size === 0
}

const isOne = (e: Expr): boolean => e.kind === 'const' && e.value === 1
