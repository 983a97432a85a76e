/**
 * Offsets of lists that are built at run time. `fuse (io, go)` of a loop and a counted loop makes one loop over all
 * positions. For this, the kernel computes a prefix sum of the counts: the offset of each list, and the total number
 * of positions. From then on the inner axis is nested in the outer one, and temporaries over it have no gaps.
 */

import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import { countedBy, denseAxis, isDense, isStored } from '../../../ir/coordinates/axis.ts'
import { offsetArrayName } from '../../../ir/coordinates/derived-names.ts'
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration, IterKind, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../../../ir/coordinates/stage1-tree.ts'
import { type FreshNames, Names } from '../../../ir/expressions/bound-names.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import { add, ceildiv, int, load, lt, min, mul } from '../../../ir/expressions/expr.ts'
import { buffersRead, substitute } from '../../../ir/expressions/expr-tree.ts'
import { unflatten } from '../../../ir/statements/statement-builders.ts'
import { takenNames } from '../as/name-collisions.ts'
import {
  AHEAD,
  array,
  iter,
  LANES,
  loopOf,
  namesFor,
  nest,
  ROWS,
  Steps,
  set,
  sum,
  THREADS,
  v,
} from './nests.ts'

/** The number of outer positions whose counts are summed together. */
const CHUNK = 32

/** Returns the axes for whose positions the elements of `axis` are counted, outermost first. */
export function countedFor(kernel: Kernel1, axis: Axis | undefined): readonly string[] {
  const ends = new Set(countedBy(axis))
  return kernel.axes.flatMap((a) => (ends.has(a.name) ? [a.name] : []))
}

/** Returns whether the last axis of `chain` is counted for each position of the others, all of its outer axes. */
export function areCounted(kernel: Kernel1, chain: readonly Axis[]): boolean {
  const outer = countedFor(kernel, chain.at(-1))
  return (
    outer.length > 0 &&
    chain.every((a) => isDense(a) && a.parent === null) &&
    chain
      .slice(0, -1)
      .map((a) => a.name)
      .join() === outer.join()
  )
}

/** Adds a loop nest for the offsets of the last axis, and nests each axis of `chain` in the previous one. */
export function withOffsets(kernel: Kernel1, chain: readonly Axis[]): Kernel1 {
  const names = new Names(takenNames(kernel))
  const stored = chain.filter(isStored)
  const axis = stored.at(-1)!
  const counted = (isDense(axis) && axis.count) || int(0)
  const sums = prefixSum(stored, counted, names)
  const read = buffersRead(counted)
  const last = kernel.body.findLastIndex((s) => [...writtenBuffers1([s])].some((b) => read.has(b)))
  const [before, after] = [kernel.body.slice(0, last + 1), kernel.body.slice(last + 1)]
  // Buffers that the builder writes exist before the offsets, so they get a separate axis.
  const slot = denseAxis(names.fresh(`${axis.name}_slot`), axis.extent)
  const early = writtenBuffers1(before)
  const isEarly = (b: Buffer1): boolean => early.has(b.name) && b.axes.includes(axis.name)
  const under = new Map(stored.map((a, k) => [a.name, k === 0 ? null : stored[k - 1]!.name]))
  const nested = (a: Axis): Axis => {
    const parent = under.get(a.name)
    if (!isDense(a) || parent === undefined) return a
    return { ...a, parent, ...(a.name === axis.name && { offsets: sums.offsets }) }
  }
  return {
    ...kernel,
    axes: [...kernel.axes.map(nested), slot, ...sums.axes],
    buffers: [
      ...kernel.buffers.map((b) =>
        isEarly(b) ? { ...b, axes: b.axes.map((a) => (a === axis.name ? slot.name : a)) } : b,
      ),
      ...sums.buffers,
    ],
    body: [...before, sums.nest, ...after],
    runtimeLists: kernel.runtimeLists?.map((lists) =>
      lists.parts.some((p) => read.has(p.counts))
        ? {
            ...lists,
            parts: lists.parts.map((p) =>
              read.has(p.counts) && sums.capacity ? { ...p, capacity: sums.capacity } : p,
            ),
            defaults: [...lists.defaults, sums.defaults],
          }
        : lists,
    ),
  }
}

/** Claims names: the offsets without the limit of the capacity are `wanted`. */
const claimNames = (axis: StoredAxis, free: FreshNames) => {
  const claimed = (what: string): string => free.fresh(`${axis.name}_${what}`)
  return {
    arrays: namesFor(['sizes', 'totals', 'bases', 'offsets', 'wanted'], (x) =>
      free.fresh(offsetArrayName(x, axis.name)),
    ),
    loops: namesFor(['place', 'end', 'all', 'chunk', 'part', 'other', 'earlier'], claimed),
    nests: namesFor(['scan', 'size', 'total', 'base', 'offset', 'start'], claimed),
    copies: namesFor(['base_sum', 'sum'], claimed),
  }
}
type OffsetNames = ReturnType<typeof claimNames>

/** Returns the prefix sum over positions of the outer axes: the sum before each chunk, and the sum inside of the chunk. */
function prefixSum(stored: readonly StoredAxis[], counted: Expr, free: FreshNames) {
  const axis = stored.at(-1)!
  const outer = stored.slice(0, -1)
  const room = isDense(axis) ? axis.capacity : undefined
  const names = claimNames(axis, free)
  const { arrays, loops } = names
  const wanted = room ? arrays.wanted : arrays.offsets
  const places = outer.map((a) => a.extent).reduce(mul)
  const ends = add(places, int(1))
  const chunks = ceildiv(ends, int(CHUNK))
  const worst = mul(places, axis.extent)
  const lengthAt = (e: Expr): Expr => {
    const coordinates = unflatten(
      e,
      outer.map((a) => a.extent),
    )
    return substitute(counted, new Map(outer.map((a, k) => [a.name, coordinates[k]!])))
  }
  return {
    offsets: arrays.offsets,
    axes: [
      denseAxis(loops.place, places),
      denseAxis(loops.end, ends),
      denseAxis(loops.all, int(1)),
      denseAxis(loops.chunk, chunks),
      denseAxis(loops.part, int(CHUNK)),
      { ...denseAxis(loops.other, int(CHUNK)), count: v(loops.part) },
      { ...denseAxis(loops.earlier, chunks), count: v(loops.chunk) },
    ],
    buffers: [
      { ...array(arrays.sizes, [loops.place]), placed: true as const },
      array(arrays.totals, [loops.chunk]),
      array(arrays.bases, [loops.chunk]),
      ...(room ? [array(wanted, [loops.end])] : []),
      { ...array(arrays.offsets, [loops.end]), positions: room ? min(room, worst) : worst },
    ],
    capacity: room && { counts: wanted, width: 1, capacity: room },
    nest: sumNest(names, wanted, { lengthAt, places, room }),
    defaults: offsetSteps(names, wanted),
  }
}

/** Returns the loop nest of the prefix sum; `lengthAt` is the count at a position, and `room` the capacity. */
function sumNest(
  { arrays, loops, nests }: OffsetNames,
  wanted: string,
  { lengthAt, places, room }: { lengthAt: (e: Expr) => Expr; places: Expr; room: Expr | undefined },
): Iteration {
  const at = (name: string, index: Expr): Load => load(name, [index])
  const positionOf = (loop: string): Expr => add(mul(v(loops.chunk), int(CHUNK)), v(loop))
  const mine = positionOf(loops.part)
  const [size, result] = [at(arrays.sizes, mine), at(wanted, mine)]
  const [total, base] = [at(arrays.totals, v(loops.chunk)), at(arrays.bases, v(loops.chunk))]
  const chunkwise = (loop: string, kind: IterKind) => [iter(loops.chunk, 'S'), iter(loop, kind)]
  const other = at(arrays.sizes, positionOf(loops.other))
  return nest(
    nests.scan,
    [iter(loops.all, 'S')],
    [
      nest(nests.size, chunkwise(loops.part, 'S'), [set(size, lengthAt(mine))], [lt(mine, places)]),
      // Sizes after the last position read as 0.
      nest(nests.total, chunkwise(loops.part, 'R'), [sum(total, size)]),
      nest(
        nests.base,
        chunkwise(loops.earlier, 'R'),
        [sum(base, at(arrays.totals, v(loops.earlier)))],
        [lt(v(loops.earlier), v(loops.chunk))],
      ),
      nest(
        nests.offset,
        chunkwise(loops.part, 'S'),
        [
          nest(
            nests.start,
            [iter(loops.other, 'R')],
            [sum(result, other)],
            [lt(v(loops.other), v(loops.part))],
          ),
          sum(result, base),
          // Positions beyond the capacity are in no list.
          ...(room ? [set(at(arrays.offsets, mine), min(result, room))] : []),
        ],
        [lt(mine, add(places, int(1)))],
      ),
    ],
  )
}

/** Returns the schedule for one block: a row of threads for each chunk, a thread for each sum before a chunk. */
function offsetSteps({ arrays, loops, nests, copies }: OffsetNames, wanted: string): NestDefault {
  const s = new Steps()
  s.bind([loopOf(nests.scan, loops.all), 'block.x'])
  for (const inner of [nests.size, nests.total, nests.offset]) {
    const [, row] = s.split(loopOf(inner, loops.chunk), ROWS, 'row')
    s.bind([row, 'thread.y'], [loopOf(inner, loops.part), 'thread.x'])
  }
  const [, chunks] = s.split(loopOf(nests.base, loops.chunk), THREADS, 'thread')
  const [row, lane] = s.split(chunks!, LANES, 'lane')
  s.bind([row, 'thread.y'], [lane, 'thread.x'])
  s.inRegisters('cache_write', arrays.bases, lane!, { into: copies.base_sum })
  s.inRegisters('cache_write', wanted, loopOf(nests.offset, loops.part), { into: copies.sum })
  s.unroll(loopOf(nests.base, loops.earlier), AHEAD)
  s.unroll(loopOf(nests.start, loops.other), AHEAD)
  return { nest: nests.scan, steps: s.steps }
}
