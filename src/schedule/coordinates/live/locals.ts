/**
 * Simplifications in iterations over a format that is built at run time. Temporaries that only these iterations use
 * need the capacity of the lists only, and a test whether the tensor holds a value is true.
 */
import { accessesOf } from '../../../analysis/dependence/coordinate-accesses.ts'
import type { StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import {
  type Body1,
  iterationsOf,
  mapBodies1,
  rewriteBody1,
  writersIn,
} from '../../../ir/coordinates/stage1-tree.ts'
import { bool, constant, type Expr, type Load } from '../../../ir/expressions/expr.ts'
import { initialValue } from '../../../ir/values/monoid.ts'
import type { SplitBuffer } from '../as/tensor-split.ts'

interface Of {
  readonly buffer: Buffer1
  /**
   * The tensor's axes that the format replaces (`over`), and the axes that the kernel's text has in their place
   * (`chosen`).
   */
  readonly over: readonly StoredAxis[]
  readonly chosen: readonly StoredAxis[]
  /** Index of the first statement that may iterate over the new axes. */
  readonly from: number
}

/**
 * Returns the temporaries over the same axes that are written at the coordinates of iterations over the tensor only.
 * From now on, such a temporary is stored over the tensor's positions, and a read at an unlisted coordinate returns the
 * temporary's initial value.
 */
export function goingAlong(kernel: Kernel1, { buffer, over, chosen, from }: Of): readonly SplitBuffer[] {
  const axes = new Map(kernel.axes.map((a) => [a.name, a]))
  const early = new Set(accessesOf(kernel.body.slice(0, from), axes).map((a) => a.buffer))
  const accesses = accessesOf(kernel.body.slice(from), axes)
  return kernel.buffers.flatMap((b): readonly SplitBuffer[] => {
    const start = b.axes.indexOf(chosen[0]!.name)
    const isOver = start >= 0 && chosen.every((a, k) => b.axes[start + k] === a.name)
    const mine = accesses.filter((a) => a.buffer === b.name)
    const writes = mine.filter((a) => a.mode !== 'read')
    if (b === buffer || b.role !== 'local' || !isOver || early.has(b.name) || writes.length === 0) return []
    const isThere = writes.every((a) =>
      over.every((axis, k) => {
        const e = a.index[start + k]!
        const by = e.kind === 'var' ? a.around.findLast((o) => o.iter.name === e.name) : undefined
        return by?.iter.axis === axis.name
      }),
    )
    return isThere ? [{ buffer: b, parts: [b.name], start, absent: startIn(kernel, b) }] : []
  })
}

/**
 * Returns the value of elements before the first statement: the identity if a reduction comes first, otherwise the
 * fill value.
 */
function startIn({ body }: Kernel1, { name, fill, dtype }: Buffer1): Expr {
  const isOf = (t: Load): boolean => t.buffer === name
  const first = writersIn(body).find((s) => s.targets.some(isOf))
  return first?.kind === 'reduce'
    ? initialValue(first.reducer.identity[first.targets.findIndex(isOf)]!, dtype)
    : constant(fill, dtype)
}

/** Returns a predicate: the k-th index of an access is an iterator of the statement over the k-th axis. */
export function atIterators(s: Stmt1, over: readonly StoredAxis[]): (index: Expr, k: number) => boolean {
  const iters = iterationsOf([s]).flatMap((it) => it.iters)
  return (e, k) => {
    const by = e.kind === 'var' ? iters.filter((x) => x.name === e.name) : []
    return by.length > 0 && by.every((x) => x.axis === over[k]!.name)
  }
}

/**
 * Returns the statement with the condition of `if (P[e, t] != 0)` replaced by true if the indices are iterators: each
 * listed element holds a value.
 */
export function whereHeld(s: Stmt1, buffer: Buffer1, over: readonly StoredAxis[]): Stmt1 {
  const isAt = atIterators(s, over)
  const isElement = (e: Expr): boolean => e.kind === 'load' && e.buffer === buffer.name && e.index.every(isAt)
  const isFill = (e: Expr): boolean => e.kind === 'const' && e.value === buffer.fill
  const answered = rewriteBody1([s], (e) =>
    e.kind === 'binary' &&
    e.op === 'ne' &&
    ((isElement(e.a) && isFill(e.b)) || (isFill(e.a) && isElement(e.b)))
      ? bool(true)
      : undefined,
  )
  return opened(answered)[0]!
}

/** Removes conditions that are constant true. */
const opened = (body: Body1): Body1 =>
  body.flatMap((s) => {
    const inner = mapBodies1(s, opened)
    return inner.kind === 'if' && inner.cond.kind === 'const' && inner.cond.value === 1 ? inner.then : [inner]
  })
