/**
 * Static single assignment of tensors: a statement that replaces all elements of a tensor writes a new version, and what
 * comes before it uses a tensor of its own. Backward passes can then read the old values.
 */

import { type Write, writesOf } from '../analysis/sparsity/writes.ts'
import { isDenseRoot, isFused } from '../ir/coordinates/axis.ts'
import type { Assign, Kernel1, Reduce1, Stmt1 } from '../ir/coordinates/stage1.ts'
import { mapBodies1, mapExprs1 } from '../ir/coordinates/stage1-tree.ts'
import type { Names } from '../ir/expressions/bound-names.ts'
import { type Expr, type Load, load } from '../ir/expressions/expr.ts'
import { rewriteExpr } from '../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../ir/expressions/structural-equality.ts'
import { mapSame } from '../ir/lists.ts'
import { getOrAdd } from '../ir/memoize.ts'
import { extentOf } from './elements.ts'

/**
 * The kernel with a tensor for each version of outputs and temporaries.
 * @param copies - Receives the names of earlier versions by their tensors
 */
export function withVersions(kernel: Kernel1, names: Names, copies: Map<string, string[]>): Kernel1 {
  const written = new Set<string>()
  for (const w of writesOf(kernel)) {
    for (const t of w.targets) {
      const buffer = kernel.buffers.find((b) => b.name === t.buffer)!
      if (!written.has(t.buffer) || buffer.role === 'inout' || !replaces(w, t, kernel)) continue
      const old = { ...buffer, name: names.fresh(`${t.buffer}_before`), role: 'local' as const }
      const buffers = kernel.buffers.flatMap((b) => (b === buffer ? [old, b] : [b]))
      const body = renamedUntil(kernel.body, w.stmt, t.buffer, old.name)
      getOrAdd(copies, t.buffer, () => []).push(old.name)
      return withVersions({ ...kernel, buffers, body }, names, copies)
    }
    for (const t of w.targets) written.add(t.buffer)
  }
  return kernel
}

/** True if a statement assigns every element of the target's tensor. */
function replaces({ stmt, conditions, iterations }: Write, t: Load, { axes, buffers }: Kernel1): boolean {
  if (stmt.kind !== 'assign' || conditions.length > 0) return false
  const iters = iterations.flatMap((it) => it.iters)
  const axisOf = (name: string): string | undefined =>
    iters.find((x) => x.name === name)?.axis ??
    axes
      .flatMap((a) => (isFused(a) && iters.some((x) => x.axis === a.name) ? a.members : []))
      .find((m) => m === name)
  const over = buffers.find((b) => b.name === t.buffer)!.axes
  const isAll = (axis: string | undefined, of: string): boolean => {
    const [a, b] = [axis, of].map((name) => axes.find((x) => x.name === name))
    return a === b || (!!a && !!b && isDenseRoot(a) && isDenseRoot(b) && sameExpr(extentOf(a), extentOf(b)))
  }
  return (
    new Set(t.index.map(keyOf)).size === t.index.length &&
    t.index.every((e, d) => e.kind === 'var' && isAll(axisOf(e.name), over[d]!))
  )
}

/** Renames a tensor in all accesses before the write of a statement. */
function renamedUntil(
  body: Kernel1['body'],
  last: Assign | Reduce1,
  from: string,
  to: string,
): Kernel1['body'] {
  let isAfter = false
  const rename = (e: Expr): Expr =>
    rewriteExpr(e, (x) =>
      x.kind === 'load' && x.buffer === from ? load(to, x.index, x.dtype, x.span) : undefined,
    )
  const keep = (t: Load): Load => load(t.buffer, t.index.map(rename), t.dtype, t.span)
  const visit = (s: Stmt1): Stmt1 => {
    if (isAfter) return s
    if (s === last) {
      isAfter = true
      return mapExprs1(s, rename, (t) => (t.buffer === from ? keep(t) : (rename(t) as Load)))
    }
    return mapBodies1(mapExprs1(s, rename), (b) => mapSame(b, visit))
  }
  return mapSame(body, visit)
}
