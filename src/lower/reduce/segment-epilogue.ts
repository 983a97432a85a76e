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
import { renameBound } from '../../ir/statements/bindings.ts'
import type { Buffer, For, WorkPartition } from '../../ir/statements/loops.ts'
import { forLoop, local, when } from '../../ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'
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

class ShareSegments {
  readonly sums: SegmentAccumulators
  readonly shares: WorkPartition
  readonly registers: readonly Buffer[]
  /** Flag: the sums belong to the segment that began before the partition. */
  readonly #continued: Buffer
  readonly #own: WriteBack['own']

  constructor(sums: SegmentAccumulators, shares: WorkPartition, own: WriteBack['own'], names: Names) {
    const target = sums.segments.reduce.targets[0]!.buffer
    this.sums = sums
    this.shares = shares
    this.#own = own
    this.#continued = local(names.fresh(`${target}_open`), 'bool')
    this.registers = [...sums.registers, this.#continued]
  }

  start(): Body {
    const { search } = this.shares
    const begins = load(search.buffer, [sub(search, int(1))])
    return [...this.sums.start(), set(this.#continued, lt(begins, search.value))]
  }

  continued(): Expr {
    return get(this.#continued)
  }

  /** Writes back the sums: of the segment that began before the partition by `flushBoundary`, of others to their elements. */
  flush(flushBoundary: Body): Body {
    return [when(this.continued(), [...flushBoundary, set(this.#continued, bool(false))], this.own())]
  }

  segmentEnd(): Expr {
    return segmentEnd(this.shares.search, this.sums.place(0))
  }

  /** Writes back an element that belongs to this partition only. */
  own(): Body {
    return this.#own === 'store' ? this.sums.store() : this.sums.update(this.#own === 'atomic')
  }
}

/** Epilogue in which every partition writes back by itself. */
export function perShare(
  sums: SegmentAccumulators,
  shares: WorkPartition,
  writeBack: WriteBack,
  names: Names,
): Epilogue {
  const segment = new ShareSegments(sums, shares, writeBack.own, names)
  const { carry } = writeBack
  const flushBoundary = (): Body =>
    carry === undefined ? sums.update(true) : sums.carryOut(carry, shareNumber(shares))
  const goesOn = lt(add(shares.search.value, int(shares.length)), segment.segmentEnd())
  const shared = carry === undefined ? binary('or', segment.continued(), goesOn) : segment.continued()
  return {
    registers: segment.registers,
    start: segment.start(),
    flush: () => segment.flush(flushBoundary()),
    end: [when(sums.occupied(), [when(shared, flushBoundary(), segment.own())])],
  }
}

/** Epilogue in which the groups of a block combine first. `shared` is allocated around the loop over groups, and `after` follows it. */
export function perBlock(
  sums: SegmentAccumulators,
  shares: WorkPartition,
  { loop, between }: Groups,
  writeBack: WriteBack,
  names: Names,
): Epilogue & { readonly shared: Buffer; readonly after: Body } {
  const segment = new ShareSegments(sums, shares, writeBack.own, names)
  const { reduce, inner } = sums.segments
  const target = reduce.targets[0]!
  const limit = local(names.fresh(`${target.buffer}_end`), 'i32')
  const room = [loop, ...between, ...inner].map((l) => l.extent)
  const shared = local(names.fresh(`${target.buffer}_rest`), target.dtype, room, 'shared')
  const groups = loop.extent.kind === 'const' ? loop.extent.value : 1
  const groupIndex = variable(loop.var)
  const rest = (group: Expr): Cells => ({
    buffer: shared,
    lead: [group, ...between.map((l) => variable(l.var))],
  })
  const isFirst = eq(groupIndex, int(0))
  /** Writes back the block's part of a segment that began in an earlier block. */
  const flushBoundary = (): Body =>
    writeBack.carry === undefined
      ? sums.update(true)
      : sums.carryOut(writeBack.carry, shareNumber(shares, groups))
  const end = [
    set(limit, segment.segmentEnd()),
    when(and(segment.continued(), not(isFirst)), sums.spill(rest(groupIndex))),
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
  const continuesOutside =
    writeBack.carry === undefined ? binary('or', segment.continued(), goesOn) : segment.continued()
  const after = [
    when(and(sums.occupied(), binary('or', not(segment.continued()), isFirst)), [
      gather,
      when(continuesOutside, flushBoundary(), segment.own()),
    ]),
  ]
  return {
    registers: [...segment.registers, limit],
    start: segment.start(),
    flush: () => segment.flush([when(isFirst, flushBoundary(), sums.spill(rest(groupIndex)))]),
    end: [when(sums.occupied(), end)],
    shared,
    after: inOwnNest([loop, ...between], after, names),
  }
}

/** Returns a separate nest of these loops around `body`. */
function inOwnNest(loops: readonly For[], body: Body, names: Names): Body {
  const copies = loops.reduceRight<Body>((inside, l) => [stmt({ ...l, body: inside })], body)
  return renameBound(copies, new Map(loops.map((l) => [l.var, names.fresh(l.var)])))
}
