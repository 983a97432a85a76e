/**
 * Warp-level (SIMT group) operations: tiles in declared register memories, and instructions of several threads, which
 * neighbouring threads execute together without a loop that is bound to them. The neighbouring threads are threads of
 * thread.x, and all of them execute one statement.
 */

import type { ThreadAxis } from '../../ir/expressions/expr.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { memoize } from '../../ir/memoize.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, someStmt } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'

export interface Lanes {
  /** The number of threads; 1 if no operation is collective. */
  readonly count: number
  /** Buffers in declared register memories. */
  readonly buffers: ReadonlySet<string>
}

/** The result for statements without collective instructions and without buffers in declared register memories. */
const ALONE: Lanes = Object.freeze({ count: 1, buffers: new Set<string>() })

export const lanesIn = (body: Body): Lanes => {
  let out = ALONE
  for (const s of body) out = together(out, lanesOf(s))
  return out
}

const together = (a: Lanes, b: Lanes): Lanes =>
  b === ALONE
    ? a
    : a === ALONE
      ? b
      : { count: Math.max(a.count, b.count), buffers: new Set([...a.buffers, ...b.buffers]) }

function lanesOf(s: Stmt): Lanes {
  switch (s.kind) {
    case 'alloc':
      return s.buffer.memory?.scope === 'register'
        ? { count: s.buffer.memory.threads, buffers: new Set([s.buffer.name]) }
        : ALONE
    case 'instr':
      return { count: s.threads, buffers: ALONE.buffers }
    case 'for':
    case 'if':
    case 'while':
      return lanesInside(s)
    default:
      return ALONE
  }
}

const lanesInside = memoize((s: Stmt): Lanes => {
  const inside = bodiesOf(s).map(lanesIn).reduce(together)
  if (s.kind !== 'for' || s.mode.kind !== 'instr') return inside
  return together(inside, { count: s.mode.instr.threads, buffers: ALONE.buffers })
})

/** Returns the number of threads of each axis in a block of the launch, from constant extents. */
export function threadsIn(body: Body): ReadonlyMap<ThreadAxis, number> {
  const threads = new Map<ThreadAxis, number>()
  const most = (axis: ThreadAxis, n: number): void => {
    threads.set(axis, Math.max(threads.get(axis) ?? 1, n))
  }
  for (const l of loopsOf(body)) {
    const axis = boundIndex(l, 'thread')
    if (axis && l.extent.kind === 'const') most(axis, l.extent.value)
  }
  const { count } = lanesIn(body)
  if (count > 1) most('thread.x', count)
  return threads
}

/** Returns whether the threads of thread.x execute the statement, or a statement inside of it, together. */
export function isWarpCollective(s: Stmt, lanes: Lanes): boolean {
  if (lanes.count === 1) return false
  const isWide = (x: Stmt): boolean =>
    (x.kind === 'instr' && x.threads > 1) ||
    (x.kind === 'for' && x.mode.kind === 'instr' && x.mode.instr.threads > 1)
  return someStmt([s], isWide) || accessesOf([s]).some((a) => lanes.buffers.has(a.buffer))
}

/**
 * Returns whether pairs of the elements that a thread holds share a 32-bit register: an even number of 2-byte elements.
 */
export const isPacked = (b: Buffer): boolean =>
  b.memory?.scope === 'register' && !b.memory.opaque && DTYPE_BYTES[b.dtype] === 2 && b.memory.size % 2 === 0
