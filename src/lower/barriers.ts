/**
 * Barrier insertion (`__syncthreads`, `workgroupBarrier`, `__syncwarp`). Invariant reached: between a write of memory that
 * threads of a block share and any access to it by another thread of the block stands a barrier.
 *
 * Siblings get one where the later touches what the earlier may have left to another thread (`access-conflicts.ts`). A
 * serial loop gets one at its end where a round may touch what another thread touches in the next one. Where only threads of
 * one row can meet, and a row is within one warp, the barrier is theirs alone. Who touches what a copy that signals its own
 * barrier brought has waited there.
 */

import { linear } from '../analysis/integers/linear.ts'
import { isWarpCollective, lanesIn, threadsIn, type Lanes as WarpLanes } from '../analysis/lane-groups.ts'
import { accessesOf, type BufferAccess, targetsOf, writesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { all, conjuncts, type Expr, variable } from '../ir/expr.ts'
import { freeVars, mentions, readsSome } from '../ir/expr-tree.ts'
import { boundIndex } from '../ir/hardware-axes.ts'
import type { For, If, Lanes, Stmt } from '../ir/loops.ts'
import { memoize } from '../ir/memoize.ts'
import { isSingleIteration } from '../ir/reductions.ts'
import { barrier, define } from '../ir/statement-builders.ts'
import { keyOf, sameExpr } from '../ir/structural-equality.ts'
import { type Body, bodiesOf, stmt, walkStmts, withBodies } from '../ir/tree.ts'
import { type Block, type ConflictScope, conflictScope } from './access-conflicts.ts'
import { isConvergent } from './divergent-conditions.ts'

/** Where barriers stand, and threads that can meet by themselves. */
interface BarrierScope extends Block {
  /** Buffers that the launch writes, registers aside: accesses to others meet nothing. */
  readonly changing: ReadonlySet<string>
  /** Threads of a row, where they are lanes of one warp, and lanes of a warp. */
  readonly row?: Lanes | undefined
  readonly names: Names
}

/** `indptr`: buffers that are known to be monotone. `warp`: lanes that can meet without the block, 1 for none. */
export function insertBarriers(body: Body, indptr: ReadonlySet<string>, warp: number, names: Names): Body {
  const registers = allocatedNames(body, 'register')
  const shared = allocatedNames(body, 'shared')
  const changing = new Set([...writesOf(body)].filter((b) => !registers.has(b)))
  const lanes = lanesIn(body)
  // One thread waits for nobody.
  const axes = new Set([...threadsIn(body)].flatMap(([axis, count]) => (count > 1 ? [axis] : [])))
  const width = rowOf(body, lanes.count)
  const row = width !== undefined && warp % width === 0 ? { row: { width, among: warp } } : {}
  return axes.size === 0
    ? body
    : between(body, { axes: [...axes], registers, shared, changing, indptr, lanes, names, ...row })
}

/** How many threads a row of the block has, where that is a constant. */
function rowOf(body: Body, least: number): number | undefined {
  let width: number | undefined = least
  walkStmts(body, (s) => {
    if (s.kind !== 'for' || boundIndex(s, 'thread') !== 'thread.x') return
    width = width === undefined || s.extent.kind !== 'const' ? undefined : Math.max(width, s.extent.value)
  })
  return width
}

function between(list: Body, block: BarrierScope): Body {
  const inner = list.flatMap((s): Body => {
    if (s.kind === 'for' && s.mode.kind === 'instr') return [s]
    const axis = boundIndex(s, 'thread')
    const inside = axis ? { ...block, axes: block.axes.filter((a) => a !== axis) } : block
    const rebuilt = withBodies(
      s,
      bodiesOf(s).map((b) => between(b, inside)),
    )
    if (rebuilt.kind === 'if') return decided(rebuilt, block)
    if (rebuilt.kind !== 'for') return [rebuilt]
    return [rebuilt.mode.kind === 'bind' ? rebuilt : closed(rebuilt, inside)]
  })
  return siblings(inner.length === list.length && inner.every((s, k) => s === list[k]) ? list : inner, block)
}

/**
 * A condition that reads what is written under it is evaluated before, by all threads: what one of them writes must not
 * decide whether another runs it, nor whether one runs the rest of it. What a thread holds in registers is its own, and
 * asked about again only where threads meet in between.
 */
function decided(s: If, block: BarrierScope): Body {
  const body = [...s.then, ...s.else]
  const haveBarrier = body.some(isConvergent)
  const changes = new Set([...writesOf(body)].filter((b) => haveBarrier || !block.registers.has(b)))
  const reads = (e: Expr): boolean => readsSome(e, changes)
  if (!reads(s.cond)) return [s]
  const name = block.names.fresh('holds')
  // What indices are in range by is still seen.
  const known = conjuncts(s.cond).filter((e) => !reads(e))
  return [define(name, s.cond), stmt({ ...s, cond: all([...known, variable(name, 'bool')]) })]
}

/** With barriers between statements one after the other, in which they are already. */
function siblings(inner: Body, block: BarrierScope): Body {
  const out: Stmt[] = []
  // Since all threads of the block met, and since those of each row did.
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
  return out.length === inner.length ? inner : Object.freeze(out)
}

const rowBarrier = (block: BarrierScope): Stmt => barrier({ lanes: block.row })

/** The buffers in which work of `a` may meet work of `b` in another thread: of the same row, or one beyond it. */
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
    const found = conflictScope(x, y, block)
    // Only what is in memory of the block is seen at a barrier of a row.
    const inRow = found === 'row' && block.row !== undefined && block.shared.has(x.buffer)
    return found !== 'none' && inRow === (where === 'row') && !apart(x, y)
  }
  return both.flatMap(({ first, second }) =>
    first.flatMap((x) => (second.some((y) => meets(x, y)) ? [x.buffer] : [])),
  )
}

/** Whether what follows the write has waited for it: it is a copy that signals. */
const hasArrived = (x: BufferAccess): boolean =>
  x.mode === 'write' && x.path.some((l) => l.mode.kind === 'instr' && l.mode.signals !== undefined)

/**
 * What statements access, by buffer. Whether threads meet in two accesses depends on how they are made, and on whether one
 * statement makes both: of those that are made alike, the first of two statements stand for all. So statements are compared
 * with the ways in which memory is touched, not with each other.
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
    const list = this.all.get(x.buffer)
    if (list) list.push(x)
    else this.all.set(x.buffer, [x])
  }
}

/** What of a statement decides how threads meet in what it touches. */
function wayOf(s: Stmt, lanes: WarpLanes): string {
  const reduction =
    s.kind === 'reduce' && (s.atomic || s.lanes) ? `${s.atomic && s.reducer.name} ${s.lanes?.width}` : ''
  return `${s.kind} ${isWarpCollective(s, lanes)} ${reduction} ${targetsOf(s).map((t) => t.buffer)}`
}

/** Whether two rounds of a loop touch different elements: one index is the round's number, or tells it. */
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

/** The loop, with a barrier at its end where one round may meet the next. */
function closed(loop: For, block: BarrierScope): For {
  // Threads that share the rounds out among themselves touch what they touch in one round only, and one round has no next.
  if (loop.cooperative || isSingleIteration(loop)) return loop
  // Seen from two rounds, the loop's own variable has two values: it is part of the paths.
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
