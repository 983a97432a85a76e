/**
 * Epilogue of a segmented reduction: write-back of the sums of a work partition. A segment that begins and ends inside a partition belongs
 * to it alone, so its sums are stored. Only the first and the last segment may continue in other partitions.
 * Groups of a block combine such segments in shared memory: a group with the rest of a segment stores its sums there, and the group in
 * which the segment began adds them in order. Segments that continue in other blocks are combined by atomic updates, or by carry-outs that
 * a fix-up nest adds later.
 */

import { type Groups, shareNumber } from '../../analysis/loops/balanced-partition.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import {
  add,
  and,
  binary,
  bool,
  div,
  type Expr,
  eq,
  int,
  load,
  lt,
  min,
  not,
  sub,
  variable,
} from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import { copyNest } from '../../ir/statements/clone-loops.ts'
import type { Buffer, Stmt, WorkPartition } from '../../ir/statements/loops.ts'
import { forLoop, local, when } from '../../ir/statements/statement-builders.ts'
import type { Body } from '../../ir/statements/tree.ts'
import { type Cells, get, type SegmentAccumulators, segmentEnd, set } from './segment-accumulators.ts'

export interface Epilogue {
  /** Registers that are allocated around `start`, the loop and `end`. */
  readonly registers: readonly Buffer[]
  readonly start: Body
  /** Writes back the sums before the element changes. */
  readonly flush: () => Body
  readonly end: Body
}

/** How a segmented reduction updates its target elements. */
export interface WriteBack {
  /** Update of an element that belongs to one partition only; `store` if it still holds the identity. */
  readonly own: 'store' | 'update' | 'atomic'
  /** Name of the buffer for carry-outs of segments that began in an earlier partition; undefined for atomic updates. */
  readonly carry?: string | undefined
}

/** Updates every element when the thread moves on to the next. */
export function perElement(sums: SegmentAccumulators, atomic: boolean): Epilogue {
  const flush = (): Body => sums.update(atomic)
  return { registers: sums.registers, start: sums.start(), flush, end: [when(sums.occupied(), flush())] }
}

/** A segmented reduction over the partitions `shares`. */
interface Partitioned {
  readonly sums: SegmentAccumulators
  readonly shares: WorkPartition
  readonly writeBack: WriteBack
  readonly names: Names
}

/** The segments of a partition, `size` of which combine first. */
function shareSegments({ sums, shares, writeBack, names }: Partitioned, size = 1) {
  const target = sums.segments.reduce.targets[0]!.buffer
  /** Flag: the sums belong to the segment that began before the partition. */
  const flag = local(names.fresh(`${target}_open`), 'bool')
  const registers = [...sums.registers, flag]
  const start = (): Body => {
    const { search } = shares
    const begins = load(search.buffer, [sub(search, int(1))])
    return [...sums.start(), set(flag, lt(begins, search.value))]
  }
  const isContinued = (): Expr => get(flag)
  /** Writes back the sums: of the segment that began before the partition by `flushBoundary`, of others to their elements. */
  const flush = (flushBoundary: Body): Body => [
    when(isContinued(), [...flushBoundary, set(flag, bool(false))], own()),
  ]
  const endOfSegment = (): Expr => segmentEnd(shares.search, sums.place(0))
  /** Writes back an element that belongs to this partition only. */
  const own = (): Body => {
    const { own } = writeBack
    return own === 'store' ? sums.stored() : sums.update(own === 'atomic')
  }
  /** Writes back the part of a segment that other partitions also update. */
  const boundary = (): Body => {
    const { carry } = writeBack
    if (carry === undefined) return sums.update(true)
    return sums.carryOut(carry, shareNumber(shares, size))
  }
  /** Writes back the last segment; `goesOn`: condition that it continues in a later partition. */
  const last = (goesOn: Expr): Stmt => {
    const continued = isContinued()
    const isShared = writeBack.carry === undefined ? binary('or', continued, goesOn) : continued
    return when(isShared, boundary(), own())
  }
  return { registers, start, isContinued, flush, endOfSegment, own, boundary, last }
}

/** Epilogue in which every partition writes back by itself. */
export function perShare(reduction: Partitioned): Epilogue {
  const { sums, shares } = reduction
  const segment = shareSegments(reduction)
  const goesOn = lt(add(shares.search.value, int(shares.length)), segment.endOfSegment())
  return {
    registers: segment.registers,
    start: segment.start(),
    flush: () => segment.flush(segment.boundary()),
    end: [when(sums.occupied(), [segment.last(goesOn)])],
  }
}

/** Epilogue in which the groups of a block combine first. `shared` is allocated around the loop over groups, and `after` follows it. */
export function perBlock(
  reduction: Partitioned,
  { loop, between }: Groups,
): Epilogue & { readonly shared: Buffer; readonly after: Body } {
  const { sums, shares, names } = reduction
  const groups = loop.extent.kind === 'const' ? loop.extent.value : 1
  const segment = shareSegments(reduction, groups)
  const { reduce, inner } = sums.segments
  const target = reduce.targets[0]!
  const limit = local(names.fresh(`${target.buffer}_end`), 'i32')
  const room = [loop, ...between, ...inner].map((l) => l.extent)
  const shared = local(names.fresh(`${target.buffer}_rest`), target.dtype, room, 'shared')
  const groupIndex = variable(loop.var)
  const rest = (group: Expr): Cells => ({
    buffer: shared,
    lead: [group, ...between.map((l) => variable(l.var))],
  })
  const isFirst = eq(groupIndex, int(0))
  const end = [
    set(limit, segment.endOfSegment()),
    when(and(segment.isContinued(), not(isFirst)), sums.spill(rest(groupIndex))),
  ]
  // The number of further groups that contain parts of the segment; the groups in between contain nothing else.
  const others = min(
    div(sub(sub(get(limit), int(1)), shares.search.value), int(shares.length)),
    sub(int(groups - 1), groupIndex),
  )
  const other = names.fresh(`${loop.var}_other`)
  const cells = sums.addCells(rest(add(groupIndex, add(variable(other), int(1)))))
  const gather = forLoop(other, others, cells, { nest: loop.nest, reduce: true })
  const next = substitute(shares.search.value, new Map([[loop.var, int(groups)]]))
  const goesOn = lt(next, get(limit))
  const after = [
    when(and(sums.occupied(), binary('or', not(segment.isContinued()), isFirst)), [
      gather,
      segment.last(goesOn),
    ]),
  ]
  return {
    registers: [...segment.registers, limit],
    start: segment.start(),
    flush: () => segment.flush([when(isFirst, segment.boundary(), sums.spill(rest(groupIndex)))]),
    end: [when(sums.occupied(), end)],
    shared,
    after: copyNest([loop, ...between], names, new Map(), (map) => substituteStmts(after, map)),
  }
}
