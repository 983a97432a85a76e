/**
 * Offsets of lists that are built at run time. `fuse (io, go)` of a loop and a counted loop makes one loop over all
 * positions. For this, the kernel computes a prefix sum of the counts: the offset of each list, and the total number
 * of positions. From then on the inner axis is nested in the outer one, and temporaries over it have no gaps.
 */
import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import { countedBy, denseAxis, isDense, isStored } from '../../../ir/coordinates/axis.ts'
import { offsetArrayName } from '../../../ir/coordinates/derived-names.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { writtenBuffers1 } from '../../../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../../../ir/expressions/bound-names.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import { add, ceildiv, div, int, load, lt, min, mod, mul } from '../../../ir/expressions/expr.ts'
import { buffersRead, substitute } from '../../../ir/expressions/expr-tree.ts'
import { takenNames } from '../as/name-collisions.ts'
import type { StepSpan } from '../as/tensor-split.ts'
import { type OffsetsNest, offsetSteps } from './schedule.ts'
import { array, iter, statementsAt, v } from './statements.ts'

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
export function withOffsets(kernel: Kernel1, chain: readonly Axis[], span: StepSpan): Kernel1 {
  const taken = takenNames(kernel)
  const stored = chain.filter(isStored)
  const axis = stored.at(-1)!
  const unused = (base: string): string => {
    const name = unusedName(base, (x) => taken.has(x))
    taken.add(name)
    return name
  }
  const counted = (isDense(axis) && axis.count) || int(0)
  const sums = prefixSum(stored, counted, unused, span)
  const read = buffersRead(counted)
  const last = kernel.body.findLastIndex((s) => [...writtenBuffers1([s])].some((b) => read.has(b)))
  const [before, after] = [kernel.body.slice(0, last + 1), kernel.body.slice(last + 1)]
  // Buffers that the builder writes exist before the offsets, so they get a separate axis.
  const slot = denseAxis(unused(`${axis.name}_slot`), axis.extent)
  const early = writtenBuffers1(before)
  const isEarly = (b: Buffer1): boolean => early.has(b.name) && b.axes.includes(axis.name)
  const under = new Map(stored.map((a, k) => [a.name, k === 0 ? null : stored[k - 1]!.name]))
  const lies = (a: Axis): Axis => {
    const parent = under.get(a.name)
    if (!isDense(a) || parent === undefined) return a
    return { ...a, parent, ...(a.name === axis.name ? { offsets: sums.offsets } : {}) }
  }
  return {
    ...kernel,
    axes: [...kernel.axes.map(lies), slot, ...sums.axes],
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
            defaults: [...lists.defaults, ...offsetSteps(sums.names)],
          }
        : lists,
    ),
  }
}

/** Returns the prefix sum over positions of the outer axes: the sum before each chunk, and the sum inside of the chunk. */
function prefixSum(
  stored: readonly StoredAxis[],
  counted: Expr,
  unused: (base: string) => string,
  span: StepSpan,
) {
  const axis = stored.at(-1)!
  const outer = stored.slice(0, -1)
  const named = (what: string): string => unused(`${axis.name}_${what}`)
  const summed = (what: Parameters<typeof offsetArrayName>[0], over: string): Buffer1 =>
    array(unused(offsetArrayName(what, axis.name)), [over])
  const places = outer.map((a) => a.extent).reduce(mul)
  const ends = add(places, int(1))
  const [place, end] = [denseAxis(named('place'), places), denseAxis(named('end'), ends)]
  const [once, chunk, part] = [named('all'), named('chunk'), named('part')]
  const [other, earlier] = [named('other'), named('earlier')]
  const chunks = ceildiv(ends, int(CHUNK))
  const sizes: Buffer1 = { ...summed('sizes', place.name), placed: true }
  const [totals, bases] = [summed('totals', chunk), summed('bases', chunk)]
  const room = isDense(axis) ? axis.capacity : undefined
  const worst = mul(places, axis.extent)
  const offsets: Buffer1 = { ...summed('offsets', end.name), positions: room ? min(room, worst) : worst }
  // The offsets without the limit of the capacity.
  const wanted = room ? summed('wanted', end.name) : offsets
  const names: OffsetsNest = {
    once,
    chunk,
    part,
    other,
    earlier,
    nest: offsets.name,
    wanted: wanted.name,
    size: named('size'),
    total: named('total'),
    base: named('base'),
    bases: bases.name,
    baseCopy: named('base_sum'),
    copy: named('sum'),
  }
  const position = (of: string): Expr => add(mul(v(chunk), int(CHUNK)), v(of))
  const length = substitute(counted, coordinatesAt(outer, position(part)))
  const arrays = { sizes, totals, bases, offsets, wanted }
  return {
    names,
    offsets: offsets.name,
    axes: [
      place,
      end,
      denseAxis(once, int(1)),
      denseAxis(chunk, chunks),
      denseAxis(part, int(CHUNK)),
      { ...denseAxis(other, int(CHUNK)), count: v(part) },
      { ...denseAxis(earlier, chunks), count: v(chunk) },
    ],
    buffers: [sizes, totals, bases, ...(room ? [wanted] : []), offsets],
    capacity: room && { counts: wanted.name, width: 1, capacity: room },
    nest: sumNest(names, arrays, { position, length, places, room }, span),
  }
}

/** Builds the loop nest of the prefix sum; `length` is the count at a position, and `room` the capacity. */
function sumNest(
  { nest: name, size, total, base, once, chunk, part, other, earlier }: OffsetsNest,
  {
    sizes,
    totals,
    bases,
    offsets,
    wanted,
  }: Readonly<Record<'sizes' | 'totals' | 'bases' | 'offsets' | 'wanted', Buffer1>>,
  {
    position,
    length,
    places,
    room,
  }: { position: (of: string) => Expr; length: Expr; places: Expr; room: Expr | undefined },
  span: StepSpan,
): Iteration {
  const { nest, sum, set } = statementsAt(span)
  const at = (b: Buffer1, index: Expr): Load => load(b.name, [index])
  const mine = position(part)
  const within = [iter(chunk, 'S'), iter(part, 'S')]
  const inChunk = nest(name, [iter(other, 'R')], [sum(at(wanted, mine), at(sizes, position(other)))])
  const before = sum(at(wanted, mine), at(bases, v(chunk)))
  // Positions beyond the capacity are in no list.
  const limited = room ? [set(at(offsets, mine), min(at(wanted, mine), room))] : []
  return nest(
    name,
    [iter(once, 'S')],
    [
      nest(size, within, [set(at(sizes, mine), length)], [lt(mine, places)]),
      // Sizes after the last position read as 0.
      nest(total, [iter(chunk, 'S'), iter(part, 'R')], [sum(at(totals, v(chunk)), at(sizes, mine))]),
      nest(base, [iter(chunk, 'S'), iter(earlier, 'R')], [sum(at(bases, v(chunk)), at(totals, v(earlier)))]),
      nest(name, within, [inChunk, before, ...limited], [lt(mine, add(places, int(1)))]),
    ],
  )
}

/** Returns the coordinates of axes from their common position. */
function coordinatesAt(axes: readonly StoredAxis[], at: Expr): ReadonlyMap<string, Expr> {
  const out = new Map<string, Expr>()
  let rest = at
  for (const [k, a] of [...axes.entries()].reverse()) {
    out.set(a.name, k === 0 ? rest : mod(rest, a.extent))
    rest = div(rest, a.extent)
  }
  return out
}
