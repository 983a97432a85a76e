/**
 * The epilogue of a segmented reduction: where the sums of a share go. A segment that begins and ends inside of a share is
 * that share's alone: its sums are stored. Only the first and the last one of a share go on in other shares.
 *
 * Those of the groups of a block meet in shared memory: a share with the rest of a segment that began in an earlier one
 * leaves its sums there, and the group in whose share the segment began adds them to its own, in their order. What is left
 * are the segments that go on in other blocks. They meet in atomic updates, or what a later share has of them is its
 * carry-out, which a fix-up nest after this one adds.
 */

import { type Groups, shareNumber } from '../analysis/balanced-shares.ts'
import { renameBound } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
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
} from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import type { Buffer, For, WorkPartition } from '../ir/loops.ts'
import { forLoop, local, when } from '../ir/statement-builders.ts'
import { type Body, stmt } from '../ir/tree.ts'
import { type Cells, get, type SegmentAccumulators, segmentEnd, set } from './segment-accumulators.ts'

export interface Epilogue {
  /** What exists around `start`, the loop and `end`. */
  readonly registers: readonly Buffer[]
  readonly start: Body
  /** Before the sums become those of another element. */
  readonly flush: () => Body
  readonly end: Body
}

/** How elements are updated. */
export interface WriteBack {
  /** One that no other share has: `store` where it is at the identity. */
  readonly own: 'store' | 'update' | 'atomic'
  /** What shares have of segments that began before them goes to rows of this buffer, and not to elements. */
  readonly carry?: string | undefined
}

/** Every element that a thread leaves is updated. */
export function perElement(sums: SegmentAccumulators, atomic: boolean): Epilogue {
  const flush = (): Body => sums.update(atomic)
  return { registers: sums.registers, start: sums.start(), flush, end: [when(sums.occupied(), flush())] }
}

/** What a thread knows of the segments of its share. */
class ShareSegments {
  readonly sums: SegmentAccumulators
  readonly shares: WorkPartition
  readonly registers: readonly Buffer[]
  /** Whether the sums are of the segment that began before the share. */
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
    const begins = load(search.buffer, [sub(search, int(1))], 'i32')
    return [...this.sums.start(), set(this.#continued, lt(begins, search.value))]
  }

  continued(): Expr {
    return get(this.#continued)
  }

  /** The sums of the segment that began before the share go `out`, those of others to their elements. */
  flush(flushBoundary: Body): Body {
    return [when(this.continued(), [...flushBoundary, set(this.#continued, bool(false))], this.own())]
  }

  segmentEnd(): Expr {
    return segmentEnd(this.shares.search, this.sums.place(0))
  }

  /** The sums to an element that no other share has. */
  own(): Body {
    return this.#own === 'store' ? this.sums.store() : this.sums.update(this.#own === 'atomic')
  }
}

/** Every share by itself. */
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

/** The groups of a block. `shared` and `after` stand around and after the loop over groups. */
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
  const own = variable(loop.var)
  const rest = (group: Expr): Cells => ({
    buffer: shared,
    lead: [group, ...between.map((l) => variable(l.var))],
  })
  const isFirst = eq(own, int(0))
  /** What the block has of a segment that began before it. */
  const flushBoundary = (): Body =>
    writeBack.carry === undefined
      ? sums.update(true)
      : sums.carryOut(writeBack.carry, shareNumber(shares, groups))
  const end = [
    set(limit, segment.segmentEnd()),
    when(and(segment.continued(), not(isFirst)), sums.spill(rest(own))),
  ]
  // The last group with a part of the segment, from this one on: all between have nothing else.
  const others = min(
    div(sub(sub(get(limit), int(1)), shares.search.value), int(shares.length)),
    sub(int(groups - 1), own),
  )
  const other = names.fresh(`${loop.var}_other`)
  const cells = sums.addCells(rest(add(own, add(variable(other), int(1)))))
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
    flush: () => segment.flush([when(isFirst, flushBoundary(), sums.spill(rest(own)))]),
    end: [when(sums.occupied(), end)],
    shared,
    after: inOwnNest([loop, ...between], after, names),
  }
}

/** `body` of nested loops in a nest of its own. */
function inOwnNest(loops: readonly For[], body: Body, names: Names): Body {
  const copies = loops.reduceRight<Body>((inside, l) => [stmt({ ...l, body: inside })], body)
  return renameBound(copies, new Map(loops.map((l) => [l.var, names.fresh(l.var)])))
}
