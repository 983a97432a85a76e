/**
 * Memory scopes (register, shared, global): legality of memory that threads own or share. Registers belong to one
 * thread, shared memory belongs to a block.
 */

import { conditionsAround } from '../../analysis/dependence/loop-writes.ts'
import { blockOf, type Space } from '../../analysis/dependence/subscript-injectivity.ts'
import { type Expr, type ThreadAxis, variable } from '../../ir/expressions/expr.ts'
import { buffersRead, freeVars, mentions, substitute } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { accessesOf, type BufferAccess, offsetsIn } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { reductionsOf } from '../../ir/statements/reductions.ts'
import { bodiesOf, exprsOf, walkStmts } from '../../ir/statements/tree.ts'
import type { Context } from '../state/context.ts'

export function checkAllocations(cx: Context, next: Kernel2): void {
  const paths: Paths = new Map(reductionsOf(next.body).map((r) => [r.reduce, r.path]))
  const partial = partialRegisters(next, paths)
  const go = (body: readonly Stmt[], path: readonly For[]): void => {
    body.forEach((s, k) => {
      if (s.kind === 'alloc') {
        const scope = body.slice(k + 1)
        if (s.buffer.scope === 'register') checkRegisters(cx, next, s.buffer, scope, partial, paths)
        else checkShared(cx, next, s.buffer, scope, path)
      }
      for (const b of bodiesOf(s)) go(b, s.kind === 'for' ? [...path, s] : path)
    })
  }
  go(next.body, [])
}

/**
 * Returns, for each axis, the registers whose value is valid on some threads of the axis only: the threads that receive
 * the result of a reduction across threads. Values computed from it outside of loops on the axis are valid there only.
 */
function partialRegisters(next: Kernel2, paths: Paths): ReadonlyMap<ThreadAxis, ReadonlySet<string>> {
  const out = new Map<ThreadAxis, Set<string>>()
  if ([...paths].every(([reduce, path]) => axesTogether(reduce, path).length === 0)) return out
  const registers = allocatedNames(next.body, 'register')
  const all = accessesOf(next.body)
  for (const a of all)
    for (const axis of collectiveAxes(a, paths))
      if (
        !isWhole(
          next.body.filter((s) => loopsOf([s]).includes(a.path[0]!)),
          axis,
        )
      )
        out.set(axis, (out.get(axis) ?? new Set()).add(a.buffer))
  for (const held of out.values())
    for (let changed = true; changed; ) {
      changed = false
      for (const a of all) {
        if (a.mode !== 'write' || !registers.has(a.buffer) || held.has(a.buffer)) continue
        if (!accessesOf([a.stmt]).some((x) => x.mode === 'read' && held.has(x.buffer))) continue
        held.add(a.buffer)
        changed = true
      }
    }
  return out
}

/** Returns whether all loops on the axis have one extent, so that all threads take part in a reduction. */
function isWhole(nest: readonly Stmt[], axis: ThreadAxis): boolean {
  const extents = loopsOf(nest).flatMap((l) =>
    l.mode.kind === 'bind' && l.mode.to === axis && l.extent.kind === 'const' ? [l.extent.value] : [],
  )
  return new Set(extents).size === 1
}

function collectiveAxes(a: BufferAccess, paths: Paths): readonly ThreadAxis[] {
  if (a.mode !== 'write' || a.stmt.kind !== 'reduce') return []
  return axesTogether(a.stmt, paths.get(a.stmt) ?? [])
}

const axesTogether = (reduce: Reduce, path: readonly For[]): readonly ThreadAxis[] =>
  reduce.atomic ? [] : path.flatMap((l) => (l.reduce ? (boundIndex(l, 'thread') ?? []) : []))

/** The loops around each reduction, from the allocation of its targets inwards. */
type Paths = ReadonlyMap<Reduce, readonly For[]>

/**
 * Throws `schedule/registers-of-other-threads` if a thread would need registers of another thread. If accesses to a
 * register buffer are distributed over threads, either each thread accesses its own elements only, or all threads
 * compute the same values outside of loops on that axis and only read inside.
 */
function checkRegisters(
  cx: Context,
  next: Kernel2,
  buffer: Buffer,
  scope: readonly Stmt[],
  partial: ReadonlyMap<ThreadAxis, ReadonlySet<string>>,
  paths: Paths,
): void {
  const accesses = accessesOf(scope).filter((a) => a.buffer === buffer.name)
  const spread = accesses.map((a) => threadsAround(a, paths))
  const axes = new Set(spread.flatMap((m) => [...m.keys()]))
  for (const axis of axes) {
    const repeated = accesses.every((a, k) => a.mode === 'read' || !spread[k]!.has(axis))
    if (repeated && !partial.get(axis)?.has(buffer.name)) continue
    const blocks = accesses.map((a, k) => ownBlocks(a, spread[k]!.get(axis), axis, spaceOf(next, a)))
    const common = blocks[0]!.map((b, d) => b !== undefined && blocks.every((other) => other[d] === b))
    if (common.some(Boolean)) continue
    const loops = [...new Set(spread.flatMap((m) => m.get(axis) ?? []))]
    cx.refuse('schedule/registers-of-other-threads', loops, {
      message: `${loops.map((l) => l.name).join(', ')} would spread ${buffer.name} over threads, and registers belong to a single thread`,
      hint: `keep ${buffer.name} in shared memory, or put the loop outside of where ${buffer.name} is cached`,
    })
  }
}

/** The thread-bound loops around an access, below the allocation, without the axes of a collective reduction. */
function threadsAround(a: BufferAccess, paths: Paths): ReadonlyMap<ThreadAxis, For> {
  const collective = collectiveAxes(a, paths)
  const out = new Map<ThreadAxis, For>()
  for (const l of a.path) {
    const to = boundIndex(l, 'thread')
    if (to && !collective.includes(to)) out.set(to, l)
  }
  return out
}

/** A text of the block of elements that one thread of `axis` accesses (`blockOf`), for each dimension. */
function ownBlocks(
  a: BufferAccess,
  loop: For | undefined,
  axis: ThreadAxis,
  space: Space,
): readonly (string | undefined)[] {
  if (!loop || a.whole) return a.index.map(() => undefined)
  const map = new Map<string, Expr>([[loop.var, variable(axis)]])
  const extent = loop.extent.kind === 'const' ? loop.extent.value : '?'
  return a.index.map((e) => {
    const block = blockOf(substitute(e, map), axis, space)
    return block && `${block} of ${extent}`
  })
}

/** Returns a space in which all loops around the access are inner loops: elsewhere, their values may be different. */
const spaceOf = (kernel: Kernel2, a: BufferAccess): Space => ({
  inner: new Map(a.path.map((l) => [l.var, l])),
  indptr: offsetsIn(kernel.buffers),
})

/**
 * Throws `schedule/shared-by-threads` if threads would write different values to a shared copy: if it is allocated
 * inside of a thread-bound loop, each thread must access its own part, or all threads must write the same values.
 */
function checkShared(
  cx: Context,
  next: Kernel2,
  buffer: Buffer,
  scope: readonly Stmt[],
  path: readonly For[],
): void {
  const accesses = accessesOf(scope).filter((a) => a.buffer === buffer.name)
  for (const t of path.filter((l) => boundIndex(l, 'thread'))) {
    const own = buffer.shape.some((_, d) => {
      const blocks = accesses.map((a) => blockOf(a.index[d]!, t.var, spaceOf(next, a)))
      return blocks[0] !== undefined && blocks.every((b) => b === blocks[0])
    })
    if (own || sameForAll(accesses, t, path.slice(path.indexOf(t) + 1))) continue
    cx.refuse('schedule/shared-by-threads', [t], {
      message: `threads of ${t.name} would write different values to the same elements of ${buffer.name}`,
      hint: `bind ${t.name} before ${buffer.name} is cached, or cache in registers`,
    })
  }
}

/**
 * Returns whether the written values, their addresses and their conditions are the same in every iteration of `t`, also
 * through intermediate results. `around` has the loops between `t` and the memory.
 */
function sameForAll(accesses: readonly BufferAccess[], t: For, around: readonly For[]): boolean {
  const loops = new Map(loopsOf(t.body).map((l) => [l.var, l]))
  const lets = new Map<string, Expr>()
  // Registers differ between threads, so a store of registers does too.
  const held = allocatedNames(t.body, 'register')
  walkStmts(t.body, (s) => {
    if (s.kind === 'let') lets.set(s.name, s.value)
  })
  const inside = accessesOf(t.body)
  const seen = new Set<unknown>()
  /** Returns true the first time only: `x` does not vary, or the result is known already. */
  const first = (x: unknown): boolean => !seen.has(x) && !!seen.add(x)
  const varies = (e: Expr): boolean =>
    mentions(e, t.var) ||
    [...buffersRead(e)].some((b) => first(b) && filled(b)) ||
    [...freeVars(e)].some((v) => {
      const [l, value] = [loops.get(v), lets.get(v)]
      return (
        (l || value) &&
        first(v) &&
        [...(l ? [l.extent, ...l.guards] : []), ...(value ? [value] : [])].some(varies)
      )
    })
  const written = (a: BufferAccess): boolean =>
    [
      ...exprsOf(a.stmt),
      ...[...around, ...a.path].flatMap((l) => [l.extent, ...l.guards]),
      ...conditionsAround(t.body, a.stmt).map((c) => c.cond),
    ].some(varies) || inside.some((r) => r.stmt === a.stmt && r.mode === 'read' && held.has(r.buffer))
  const filled = (buffer: string): boolean =>
    inside.some((a) => a.mode === 'write' && a.buffer === buffer && written(a))
  return accesses.every((a) => a.mode !== 'write' || (a.stmt.kind === 'store' && !written(a)))
}
