/**
 * Barrier insertion (`__syncthreads`, `workgroupBarrier`, `__syncwarp`). Invariant reached: a barrier separates each write of shared or
 * global memory from a conflicting access by another thread of the block.
 * A barrier is placed between two sibling statements if their accesses conflict (`access-conflicts.ts`), and at the end of a serial loop
 * if one iteration conflicts with the next. If only threads of one row conflict, and a row lies within a warp, the barrier synchronises
 * this row only. Copies that signal an mbarrier need no barrier, because consumers wait at the mbarrier.
 */

import type { Lanes as WarpLanes } from '../../analysis/instructions/lane-groups.ts'
import { isWarpCollective, lanesIn, threadsIn } from '../../analysis/instructions/lane-groups.ts'
import { linear } from '../../analysis/integers/linear.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { all, conjuncts, type Expr, variable } from '../../ir/expressions/expr.ts'
import { freeVars, mentions, readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf, sameExpr } from '../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { getOrAdd, memoize } from '../../ir/memoize.ts'
import { accessesOf, type BufferAccess, targetsOf, writesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, If, Lanes, Stmt } from '../../ir/statements/loops.ts'
import { isSingleIteration } from '../../ir/statements/reductions.ts'
import { barrier, define } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, stmt } from '../../ir/statements/tree.ts'
import { type Block, type ConflictScope, conflictScope } from './access-conflicts.ts'
import { isConvergent } from './divergent-conditions.ts'

/** The threads of a block, and the groups of threads that can synchronise without the block. */
interface BarrierScope extends Block {
  /** Buffers that the launch writes, except registers. Accesses to other buffers do not conflict. */
  readonly changing: ReadonlySet<string>
  /** Lanes of a row and of a warp; absent if a row is not contained in a warp. */
  readonly row?: Lanes | undefined
  readonly names: Names
}

/**
 * Inserts barriers into the body of a launch. `indptr`: names of monotone buffers. `warp`: number of lanes that can synchronise without
 * the block; 1 if the target has no such barrier.
 */
export function insertBarriers(body: Body, indptr: ReadonlySet<string>, warp: number, names: Names): Body {
  const registers = allocatedNames(body, 'register')
  const shared = allocatedNames(body, 'shared')
  const changing = new Set([...writesOf(body)].filter((b) => !registers.has(b)))
  const lanes = lanesIn(body)
  // An axis of one thread needs no barrier.
  const axes = new Set([...threadsIn(body)].flatMap(([axis, count]) => (count > 1 ? [axis] : [])))
  const width = rowOf(body, lanes.count)
  const row = width !== undefined && warp % width === 0 ? { row: { width, among: warp } } : {}
  return axes.size === 0
    ? body
    : between(body, { axes: [...axes], registers, shared, changing, indptr, lanes, names, ...row })
}

/** The number of threads in a row of the block; undefined if it is not constant. */
function rowOf(body: Body, least: number): number | undefined {
  const extents = loopsOf(body).flatMap((l) => (boundIndex(l, 'thread') === 'thread.x' ? [l.extent] : []))
  return extents.reduce<number | undefined>(
    (width, e) => (width === undefined || e.kind !== 'const' ? undefined : Math.max(width, e.value)),
    least,
  )
}

function between(list: Body, block: BarrierScope): Body {
  const inner = list.flatMap((s): Body => {
    if (s.kind === 'for' && s.mode.kind === 'instr') return [s]
    const axis = boundIndex(s, 'thread')
    const inside = axis ? { ...block, axes: block.axes.filter((a) => a !== axis) } : block
    const rebuilt = mapBodies(s, (b) => between(b, inside))
    if (rebuilt.kind === 'if') return decided(rebuilt, block)
    if (rebuilt.kind !== 'for') return [rebuilt]
    return [rebuilt.mode.kind === 'bind' ? rebuilt : closed(rebuilt, inside)]
  })
  return siblings(reuseIfSame(list, inner), block)
}

/**
 * Evaluates a condition before its branches, in all threads, if a branch writes data that the condition reads. Otherwise a write by one
 * thread could change whether another thread enters the branch. Conditions on private registers are re-evaluated, unless the branches
 * contain a barrier.
 */
function decided(s: If, block: BarrierScope): Body {
  const body = [...s.then, ...s.else]
  const haveBarrier = body.some(isConvergent)
  const changes = new Set([...writesOf(body)].filter((b) => haveBarrier || !block.registers.has(b)))
  const reads = (e: Expr): boolean => readsSome(e, changes)
  if (!reads(s.cond)) return [s]
  const name = block.names.fresh('holds')
  // Conjuncts that do not read written data stay visible, because they prove that indices are in range.
  const readFree = conjuncts(s.cond).filter((e) => !reads(e))
  return [define(name, s.cond), stmt({ ...s, cond: all([...readFree, variable(name, 'bool')]) })]
}

function siblings(inner: Body, block: BarrierScope): Body {
  const out: Stmt[] = []
  // Accesses since the last barrier of the block (`since`), and since the last barrier of each row (`recent`).
  let since = new Touched(block)
  let recent = new Touched(block)
  for (const s of inner) {
    if (s.kind === 'barrier' && !s.lanes) {
      out.push(s)
      since = new Touched(block)
      recent = new Touched(block)
      continue
    }
    const now = new Touched(block, [s])
    const conflicts = conflictsBetween(since, now, block, 'block')
    const rows = block.row ? conflictsBetween(recent, now, block, 'row') : []
    if (conflicts.length > 0) {
      out.push(barrierFor([...conflicts, ...rows], block))
      since = new Touched(block)
      recent = new Touched(block)
    } else if (rows.length > 0) {
      out.push(rowBarrier(block))
      recent = new Touched(block)
    }
    out.push(s)
    since.addAll(now)
    recent.addAll(now)
  }
  return reuseIfSame(inner, out)
}

const rowBarrier = (block: BarrierScope): Stmt => barrier({ lanes: block.row })

/** Names of the buffers in which accesses of `a` and `b` conflict: between threads of one row (`row`), or beyond a row (`block`). */
function conflictsBetween(
  a: Touched,
  b: Touched,
  block: BarrierScope,
  where: Exclude<ConflictScope, 'none'>,
  apart: (x: BufferAccess, y: BufferAccess) => boolean = () => false,
): readonly string[] {
  const both = [...b.all].flatMap(([buffer, second]) => {
    const first = a.all.get(buffer)
    return first && (a.written.has(buffer) || b.written.has(buffer)) ? [{ first, second }] : []
  })
  const meets = (x: BufferAccess, y: BufferAccess): boolean => {
    if (hasArrived(x)) return false
    const scope = conflictScope(x, y, block)
    // A barrier of a row orders shared memory only.
    const inRow = scope === 'row' && block.row !== undefined && block.shared.has(x.buffer)
    return scope !== 'none' && inRow === (where === 'row') && !apart(x, y)
  }
  return both.flatMap(({ first, second }) =>
    first.flatMap((x) => (second.some((y) => meets(x, y)) ? [x.buffer] : [])),
  )
}

/** Returns true if the write is a copy that signals an mbarrier, at which its consumers have waited. */
const hasArrived = (x: BufferAccess): boolean =>
  x.mode === 'write' && x.path.some((l) => l.mode.kind === 'instr' && l.mode.signals !== undefined)

/**
 * Accesses of statements, by buffer. Accesses with equal index, loops and kind of statement conflict with the same accesses, so at most
 * two of them (of different statements) are stored. This makes the comparison of statements linear in their number.
 */
class Touched {
  readonly all = new Map<string, BufferAccess[]>()
  readonly written = new Set<string>()
  readonly #ways = new Map<string, readonly BufferAccess[]>()

  constructor({ lanes, changing }: BarrierScope, body: Body = []) {
    if (body.length === 0) return
    const statement = memoize((s: Stmt) => wayOf(s, lanes))
    for (const x of accessesOf(body, changing)) {
      const { stmt: s, mode, whole, buffer, index, path } = x
      const loops = path.map((l) => l.var).join()
      this.#add(`${statement(s)} ${loops} ${mode} ${whole} ${buffer} ${index.map(keyOf).join()}`, x)
    }
  }

  addAll(others: Touched): void {
    for (const [way, accesses] of others.#ways) for (const x of accesses) this.#add(way, x)
  }

  #add(way: string, x: BufferAccess): void {
    const before = this.#ways.get(way) ?? []
    if (before.length > 1 || before[0]?.stmt === x.stmt) return
    this.#ways.set(way, [...before, x])
    if (x.mode === 'write') this.written.add(x.buffer)
    getOrAdd(this.all, x.buffer, () => []).push(x)
  }
}

/** Returns a key of the properties of a statement that affect conflicts of its accesses. */
function wayOf(s: Stmt, lanes: WarpLanes): string {
  const reduction =
    s.kind === 'reduce' && (s.atomic || s.lanes) ? `${s.atomic && s.reducer.name} ${s.lanes?.width}` : ''
  return `${s.kind} ${isWarpCollective(s, lanes)} ${reduction} ${targetsOf(s).map((t) => t.buffer)}`
}

/** Returns true if two iterations of a loop touch different elements, because one index is an injective function of the loop variable. */
const ofOneRound =
  (loop: For) =>
  (x: BufferAccess, y: BufferAccess): boolean =>
    x.buffer === y.buffer &&
    x.index.some((e, k) => {
      const { terms } = linear(e)
      const other = y.index[k]
      return (
        terms.size === 1 &&
        freeVars(e).size === 1 &&
        mentions(e, loop.var) &&
        isVar(terms) &&
        other &&
        sameExpr(e, other)
      )
    })

const isVar = (terms: ReturnType<typeof linear>['terms']): boolean =>
  [...terms.values()].every((t) => t.term.kind === 'var')

const barrierFor = (conflicts: readonly string[], block: BarrierScope): Stmt =>
  barrier(conflicts.some((b) => !block.shared.has(b)) ? { global: true } : {})

/** Returns the loop with a barrier at its end if two consecutive iterations conflict. */
function closed(loop: For, block: BarrierScope): For {
  // In a cooperative loop, threads touch only the elements of their own iterations. A single iteration has no successor.
  if (loop.cooperative || isSingleIteration(loop)) return loop
  // The loop is part of the paths, because its variable has different values in the two iterations.
  const round = (body: Body): Body => [{ ...loop, body }]
  const conflicts = (where: 'row' | 'block'): readonly string[] => {
    const separates = (s: Stmt): boolean => s.kind === 'barrier' && (where === 'row' || !s.lanes)
    const first = loop.body.findIndex(separates)
    const last = loop.body.findLastIndex(separates)
    const tail = new Touched(block, round(loop.body.slice(last + 1)))
    const head = new Touched(block, round(first < 0 ? loop.body : loop.body.slice(0, first)))
    return conflictsBetween(tail, head, block, where, ofOneRound(loop))
  }
  const all = conflicts('block')
  const rows = block.row ? conflicts('row') : []
  if (all.length === 0 && rows.length === 0) return loop
  const end = all.length > 0 ? barrierFor([...all, ...rows], block) : rowBarrier(block)
  return stmt({ ...loop, body: [...loop.body, end] })
}
