/**
 * What must hold of bound loops and of memory that threads own or share, whatever step came last. Checked on the
 * kernel that a step proposes; the refusal shows the kernel as it is.
 */

import { accessesOf, type BufferAccess } from '../ir/accesses.ts'
import { countText, MAX_UNROLLED } from '../ir/budgets.ts'
import { type Expr, type ThreadAxis, variable } from '../ir/expr.ts'
import { freeVars, mentions, substitute } from '../ir/expr-tree.ts'
import { lanesIn } from '../ir/lanes.ts'
import type { Buffer, For, Kernel2, Reduce, Stmt } from '../ir/loops.ts'
import { elementChanges, reductionsOf } from '../ir/reductions.ts'
import { bodiesOf, findLoop, loopsOf, walkStmts } from '../ir/tree.ts'
import { copiesOf, unrolledSize } from '../ir/unrolled.ts'
import type { Context } from './context.ts'
import { monotone } from './depend.ts'
import { blockOf, type Space } from './linear.ts'
import { checkInstr } from './loops/tensorize.ts'

/** Threads that one block may have on any device that is meant. */
const THREAD_LIMIT = 1024

/** Nests that the step left alone have been checked, and threads of different nests never meet. */
export function checkParallel(cx: Context, proposed: Kernel2): void {
  const before = new Set(cx.kernel.body)
  const next: Kernel2 = { ...proposed, body: proposed.body.filter((s) => !before.has(s)) }
  checkAxes(cx, next)
  checkBlocks(cx, next)
  checkThreadCount(cx, next)
  checkVectors(cx, next)
  checkShares(cx, next)
  checkAllocations(cx, next)
  checkInstructions(cx, next)
  checkUnrolled(cx, next)
}

/** Unrolled loops within unrolled loops write out the product of their extents. */
function checkUnrolled(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    const statements = unrolledSize([top])
    if (statements <= MAX_UNROLLED) continue
    const unrolled = loopsOf([top]).filter((l) => copiesOf(l) > 1)
    if (unrolled.length === 0) continue
    const factors = unrolled.map((l) => `${l.name} ${countText(copiesOf(l))}`)
    cx.refuse({
      code: 'too-many-copies',
      message: `the unrolled loops of ${unrolled[0]!.nest} would make ${countText(statements)} statements (${factors.join(', ')} copies)`,
      loops: unrolled,
      expected: `at most ${countText(MAX_UNROLLED)}`,
      hint: 'unroll the inner loops only, or by a factor',
    })
  }
}

const boundTo = (l: For, what: 'block' | 'thread'): boolean =>
  l.mode.kind === 'bind' && l.mode.to.startsWith(what)

/** One index cannot be two loops' at once, wherever a step moved them. */
function checkAxes(cx: Context, next: Kernel2): void {
  walkStmts(next.body, (s, path) => {
    if (s.kind !== 'for' || s.mode.kind !== 'bind') return
    const { to } = s.mode
    const outer = path.find((l) => l.mode.kind === 'bind' && l.mode.to === to)
    if (outer)
      cx.refuse({
        code: 'axis-taken',
        message: `${s.name} and ${outer.name} around it are both bound to ${to}`,
        loops: [outer, s],
        hint: 'bind one of them to another axis',
      })
  })
}

/** Blocks run in no order and share no barrier: their loops stand outermost, with nothing beside them. */
function checkBlocks(cx: Context, next: Kernel2): void {
  walkStmts(next.body, (s, path) => {
    if (s.kind !== 'for' || !boundTo(s, 'block')) return
    const beside = path.find(
      (l, k) => !boundTo(l, 'block') || l.body.length > 1 || l.body[0] !== (path[k + 1] ?? s),
    )
    if (beside)
      cx.refuse({
        code: 'block-not-outermost',
        message: boundTo(beside, 'block')
          ? `${beside.name} has other statements beside the block-bound loop ${s.name}`
          : `${s.name} is bound to a block axis inside of ${beside.name}, which is not`,
        loops: [beside, s],
        expected: 'block-bound loops outermost, directly inside of each other',
        hint: `reorder ${s.name} outwards, or bind it to a thread axis`,
      })
  })
}

function checkThreadCount(cx: Context, next: Kernel2): void {
  for (const top of next.body) {
    const extents = new Map<ThreadAxis, number>()
    const bound = loopsOf([top]).filter((l) => boundTo(l, 'thread'))
    for (const l of bound) {
      if (l.mode.kind !== 'bind' || l.extent.kind !== 'const') continue
      extents.set(l.mode.to, Math.max(extents.get(l.mode.to) ?? 1, l.extent.value))
    }
    extents.set('thread.x', Math.max(extents.get('thread.x') ?? 1, lanesIn([top]).count))
    const threads = [...extents.values()].reduce((x, y) => x * y, 1)
    if (threads > THREAD_LIMIT)
      cx.refuse({
        code: 'too-many-threads',
        message: `a block would have ${threads} threads`,
        loops: bound,
        expected: `at most ${THREAD_LIMIT}`,
        hint: 'split a loop and bind the smaller one',
      })
  }
}

function checkVectors(cx: Context, next: Kernel2): void {
  for (const l of loopsOf(next.body))
    if (l.mode.kind === 'vectorize' && loopsOf(l.body).length > 0)
      cx.refuse({
        code: 'not-innermost',
        message: `the vector loop ${l.name} has to stay innermost`,
        loops: [l],
      })
}

/** What an instruction does stays what it does, whatever a step makes of the loops. */
function checkInstructions(cx: Context, next: Kernel2): void {
  for (const l of loopsOf(next.body)) {
    const found = l.mode.kind === 'instr' ? findLoop(next.body, l.var) : undefined
    if (l.mode.kind === 'instr' && found) checkInstr(cx, next, found, l.mode.instr)
  }
  for (const top of next.body) {
    const { count } = lanesIn([top])
    if (count === 1) continue
    const other = loopsOf([top]).find(
      (l) =>
        l.mode.kind === 'bind' &&
        l.mode.to === 'thread.x' &&
        (l.extent.kind !== 'const' || l.extent.value > count || count % l.extent.value !== 0),
    )
    if (other)
      cx.refuse({
        code: 'not-idle',
        message: `thread.x is ${count} threads that do instructions together, and ${other.name} would need others`,
        loops: [other],
        hint: `bind ${other.name} to thread.y, or split it by ${count}`,
      })
  }
}

/** What threads reduce together, each keeps a share of in registers: the elements are of a constant number. */
function checkShares(cx: Context, next: Kernel2): void {
  for (const { reduce, path } of reductionsOf(next.body)) {
    const root = path.findIndex((l) => l.reduce && !boundTo(l, 'block'))
    const inside = root < 0 ? [] : path.slice(root)
    if (!inside.some((l) => l.reduce && boundTo(l, 'thread'))) continue
    const changing = inside.filter((l) => elementChanges(reduce, l))
    if (reduce.atomic && changing.some((l) => l.reduce)) continue
    const open = changing.find((l) => !l.reduce && !boundTo(l, 'thread') && l.extent.kind !== 'const')
    if (open)
      cx.refuse({
        code: 'extent-not-constant',
        message: `threads would reduce ${reduce.targets[0]!.buffer} together inside of which ${open.name} has no constant extent, so that no thread can keep its share in registers`,
        loops: [inside[0]!, open],
        hint: `reorder ${open.name} outwards, or split it and put the outer loop outside`,
      })
  }
}

function checkAllocations(cx: Context, next: Kernel2): void {
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
 * Registers that hold their value on some threads of an axis only, by axis: what threads reduce together arrives at
 * those that do, and what is computed from it outside of loops on that axis is right there.
 */
function partialRegisters(next: Kernel2, paths: Paths): ReadonlyMap<ThreadAxis, ReadonlySet<string>> {
  const registers = new Set<string>()
  walkStmts(next.body, (s) => {
    if (s.kind === 'alloc' && s.buffer.scope === 'register') registers.add(s.buffer.name)
  })
  const all = accessesOf(next.body)
  const out = new Map<ThreadAxis, Set<string>>()
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
    for (let grown = true; grown; ) {
      grown = false
      for (const a of all) {
        if (a.mode !== 'write' || !registers.has(a.buffer) || held.has(a.buffer)) continue
        if (!accessesOf([a.stmt]).some((x) => x.mode === 'read' && held.has(x.buffer))) continue
        held.add(a.buffer)
        grown = true
      }
    }
  return out
}

/** Whether all loops of a nest on the axis are equally long: the threads that reduce together are all that there are. */
function isWhole(nest: readonly Stmt[], axis: ThreadAxis): boolean {
  const extents = loopsOf(nest).flatMap((l) =>
    l.mode.kind === 'bind' && l.mode.to === axis && l.extent.kind === 'const' ? [l.extent.value] : [],
  )
  return new Set(extents).size === 1
}

/** The axes whose threads carry out a reduction together. */
function collectiveAxes(a: BufferAccess, paths: Paths): readonly ThreadAxis[] {
  if (a.mode !== 'write' || a.stmt.kind !== 'reduce' || a.stmt.atomic) return []
  const path = paths.get(a.stmt) ?? []
  return path.flatMap((l) => (l.mode.kind === 'bind' && boundTo(l, 'thread') && l.reduce ? [l.mode.to] : []))
}

/** The loops around each reduction, from the allocation of its targets inwards. */
type Paths = ReadonlyMap<Reduce, readonly For[]>

/**
 * Each thread has registers of its own. Where accesses to a register buffer are spread over threads, either
 * every one reaches the elements of its own thread only, or all threads compute the same outside of loops on
 * that axis and only read inside.
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
    cx.refuse({
      code: 'registers-of-other-threads',
      message: `${loops.map((l) => l.name).join(', ')} would spread ${buffer.name} over threads, and registers belong to one thread`,
      loops,
      hint: `keep ${buffer.name} in shared memory, or put the loop outside of where ${buffer.name} is cached`,
    })
  }
}

/** Thread-bound loops around an access below the allocation, by axis; a collective reduction's own aside. */
function threadsAround(a: BufferAccess, paths: Paths): ReadonlyMap<ThreadAxis, For> {
  const collective = collectiveAxes(a, paths)
  const out = new Map<ThreadAxis, For>()
  for (const l of a.path)
    if (l.mode.kind === 'bind' && boundTo(l, 'thread') && !collective.includes(l.mode.to))
      out.set(l.mode.to, l)
  return out
}

/** Per dimension, the block of elements that one thread of `axis` reaches, as a text; see `blockOf`. */
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

/** All loops around the access count as inner: their values are not known to be the same elsewhere. */
const spaceOf = (kernel: Kernel2, a: BufferAccess): Space => ({
  inner: new Map(a.path.map((l) => [l.var, l])),
  indptr: monotone(kernel),
})

/**
 * Threads of a block share one copy: where the allocation is inside of a thread-bound loop, its accesses stay
 * in a part of its own for each thread, or every thread writes the same values.
 */
function checkShared(
  cx: Context,
  next: Kernel2,
  buffer: Buffer,
  scope: readonly Stmt[],
  path: readonly For[],
): void {
  const accesses = accessesOf(scope).filter((a) => a.buffer === buffer.name)
  for (const t of path.filter((l) => boundTo(l, 'thread'))) {
    const own = buffer.shape.some((_, d) => {
      const blocks = accesses.map((a) => blockOf(a.index[d]!, t.var, spaceOf(next, a)))
      return blocks[0] !== undefined && blocks.every((b) => b === blocks[0])
    })
    if (own || sameForAll(accesses, t)) continue
    cx.refuse({
      code: 'shared-by-threads',
      message: `threads of ${t.name} would write different values to the same elements of ${buffer.name}`,
      loops: [t],
      hint: `bind ${t.name} before ${buffer.name} is cached, or cache in registers`,
    })
  }
}

/** Whether what is written, and where, is the same in every iteration of `t`. */
function sameForAll(accesses: readonly BufferAccess[], t: For): boolean {
  return accesses
    .filter((a) => a.mode === 'write')
    .every((a) => {
      if (a.stmt.kind !== 'store') return false
      const loops = new Map(a.path.map((l) => [l.var, l]))
      const seen = new Set<string>()
      const varies = (e: Expr): boolean =>
        mentions(e, t.var) ||
        [...freeVars(e)].some((v) => {
          const l = loops.get(v)
          if (!l || seen.has(v)) return false
          seen.add(v)
          return [l.extent, ...l.guards].some(varies)
        })
      return ![...a.stmt.index, a.stmt.value, ...a.path.flatMap((l) => [l.extent, ...l.guards])].some(varies)
    })
}
