/**
 * Warp-level (SIMT group) operations: tiles in declared register memories, and instructions of several threads, which
 * neighbouring threads execute together without a loop that is bound to them. The neighbouring threads are threads of
 * thread.x, and all of them execute one statement.
 */

import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import { add, div, type Expr, int, lt, mod, type ThreadAxis, variable } from '../../ir/expressions/expr.ts'
import { mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { levelOf } from '../../ir/instructions/hardware-axes.ts'
import { coordinateName, type Memory } from '../../ir/instructions/instr.ts'
import { memoize } from '../../ir/memoize.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import type { Buffer, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, someStmt, walkStmts } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import type { Facts } from '../integers/facts.ts'
import { coefficientOf, keepTerms, linear, mapNumbers, minus, sumExpr } from '../integers/linear.ts'

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
  walkStmts(body, (s) => {
    if (s.kind !== 'for' || s.mode.kind !== 'bind' || s.extent.kind !== 'const') return
    if (levelOf(s.mode.to) === 'thread') most(s.mode.to, s.extent.value)
  })
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

// Contiguity and alignment of accesses: runs of neighbouring elements along a loop.

/**
 * Returns the reason why the runs of `run` neighbours along a loop do not begin at multiples of `run` in the last
 * dimension; undefined if they do.
 */
export function notInRuns(
  index: readonly Expr[],
  along: { readonly var: string; readonly name?: string } | undefined,
  run: number,
  facts: Facts,
): string | undefined {
  const e = index.at(-1)
  if (!along || !e) return 'it is one element'
  const sum = linear(e)
  const term = sum.terms.get(keyOf(variable(along.var)))
  if (term?.coefficient !== 1 || index.slice(0, -1).some((x) => mentions(x, along.var)))
    return `${along.name ?? along.var} does not go along it`
  for (const t of sum.terms.values())
    if (t !== term && (t.coefficient * facts.divisor(t.term)) % run !== 0)
      return `${printExpr(e)} may begin anywhere`
  return sum.constant % run === 0 ? undefined : `${printExpr(e)} begins between`
}

/**
 * Returns the bound of a run's first element, if the bound is a multiple of the run's width: it then holds for all
 * elements of the run, or fails for all. Returns other bounds unchanged.
 */
export function boundOfRun(g: Expr, lane: string, width: number, facts: Facts): Expr {
  if (!mentions(g, lane) || g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, lane)) return g
  const first = substitute(g.a, new Map([[lane, int(0)]]))
  const whole = coefficientOf(g.a, lane) === 1 && facts.isMultiple(first, width)
  return whole && facts.isMultiple(g.b, width) ? lt(first, g.b) : g
}

// Addresses in declared memories: the last dimensions of a buffer are tiles, each stored as the memory
// declares.

/**
 * Returns `quotient` and `rest` of `e = t * quotient + rest`. Evident multiples of `t` in the sum become part of the
 * quotient; the other terms are divided.
 */
export function splitBy(e: Expr, t: number): { readonly quotient: Expr; readonly rest: Expr } {
  const sum = linear(e)
  const constant = sum.constant - t * Math.floor(sum.constant / t)
  const over = keepTerms({ ...sum, constant }, ({ coefficient }) => coefficient % t !== 0)
  const quotient = sumExpr(mapNumbers(minus(sum, over), (n) => n / t))
  const rest = sumExpr(over)
  if (over.terms.size === 0) return { quotient, rest }
  return { quotient: add(quotient, div(rest, int(t))), rest: mod(rest, int(t)) }
}

/** Returns the extents of a buffer's tiled dimensions, and the dimensions before (`lead`). */
function tileDims(
  b: Buffer,
  m: Memory,
): { readonly lead: readonly Expr[]; readonly extents: readonly number[] } {
  const at = b.shape.length - m.shape.length
  invariant(at >= 0, `${b.name} has no tiles of ${m.name}`)
  const extents = b.shape.slice(at).map((e) => (e.kind === 'const' ? e.value : 0))
  invariant(
    extents.every((n, d) => n > 0 && n % m.shape[d]! === 0),
    `${b.name} is made of no tiles of ${m.name}`,
  )
  return { lead: b.shape.slice(0, at), extents }
}

/** Returns the shape in which tiles are stored: the dimensions before, the numbers of tiles, and the size of a tile. */
export function tiledShape(b: Buffer, m: Memory): readonly Expr[] {
  const { lead, extents } = tileDims(b, m)
  return [...lead, ...extents.map((n, d) => int(n / m.shape[d]!)), int(m.size)]
}

/** Returns the index in `tiledShape` of an element of a shared memory with addresses. */
export function tiledIndex(index: readonly Expr[], m: Memory): readonly Expr[] {
  const at = index.length - m.shape.length
  const parts = m.shape.map((t, d) => splitBy(index[at + d]!, t))
  const map = new Map(parts.map((p, d) => [coordinateName(d), p.rest]))
  invariant(m.address, `${m.name} has no addresses`)
  return [...index.slice(0, at), ...parts.map((p) => p.quotient), substitute(m.address, map)]
}

/**
 * Returns whether pairs of the elements that a thread holds share a 32-bit register: an even number of 2-byte elements.
 */
export const isPacked = (b: Buffer): boolean =>
  b.memory?.scope === 'register' && !b.memory.opaque && DTYPE_BYTES[b.dtype] === 2 && b.memory.size % 2 === 0
