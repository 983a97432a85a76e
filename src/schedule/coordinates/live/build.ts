/**
 * The format builder: loop nests that build the lists of a `live` format from a dense tensor. A bitmask, 32 coordinates
 * in a word, marks the coordinates that hold a value; the marked coordinates are compacted into the lists. Each chunk
 * of words recomputes the count of all words of its list and of the words before the chunk, which is cheaper than
 * another kernel launch.
 */
import { denseAxis, isStored, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import { builderArrayName, listName } from '../../../ir/coordinates/derived-names.ts'
import type { Capacity, NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import {
  add,
  all,
  call,
  ceildiv,
  div,
  eq,
  int,
  load,
  lt,
  max,
  min,
  mod,
  mul,
  select,
  sub,
  variable,
} from '../../../ir/expressions/expr.ts'
import { mentions } from '../../../ir/expressions/expr-tree.ts'
import { builtinMonoid, type Monoid } from '../../../ir/values/monoid.ts'
import type { StepSpan } from '../as/tensor-split.ts'
import type { LiveFormat } from './format.ts'
import { bitOf, isMarked, listedBefore, type Ranks, reading, type Source, WORD } from './positions.ts'
import { loopOver, markSteps, placeSteps } from './schedule.ts'
import { array, iter, statementsAt, v } from './statements.ts'

export interface Built {
  readonly axes: readonly StoredAxis[]
  readonly buffers: readonly Buffer1[]
  readonly nests: readonly Stmt1[]
  /** Default schedules of the loop nests, for loops that no step names. */
  readonly defaults: readonly NestDefault[]
  /** The number of coordinates in the list, over positions of the outer axes. */
  readonly count: Expr
  /** The capacity of the list; undefined if it is allocated for the worst case. */
  readonly capacity: Capacity | undefined
  /** The listed coordinate, over axes with the names of the group and the position. */
  readonly listed: Load
  readonly ranks: Ranks
  /**
   * The axis of groups (null without groups) and the axis of positions: dense with the worst-case extent, and
   * counted.
   */
  readonly group: StoredAxis | null
  readonly position: StoredAxis
}

const wordsOf = (extent: Expr): Expr => ceildiv(extent, int(WORD))
const placeOf = (many: string, one: string): Expr => add(mul(v(many), int(WORD)), v(one))

/** Builds the loop nests of one part. `unused` returns an unused name, and `label` is the label of the part. */
export function buildNests(
  format: LiveFormat,
  source: Source,
  unused: (name: string, label?: string) => string,
  span: StepSpan,
  {
    capacity,
    total,
    label = '',
  }: { capacity?: Expr | undefined; total?: Expr | undefined; label?: string } = {},
): Built {
  const { outer, extent } = format
  const named = (what: string): string => unused(`${what}_${source.buffer.name}`, label)
  const foundBuffer = (what: Parameters<typeof builderArrayName>[0]): string =>
    unused(builderArrayName(what, source.buffer.name), label)
  const own = (a: StoredAxis): StoredAxis => denseAxis(a.name, a.extent)
  // A word is addressed by its number, or by its chunk and its part of the chunk.
  const loop = (x: string): string => unused(`${format.list}_${x}`)
  const [word, bit, chunk, part] = [loop('word'), loop('bit'), loop('chunk'), loop('part')]
  const [other, any, earlier] = [loop('other'), loop('any'), loop('earlier')]
  const words = wordsOf(extent)
  const under = outer.map((a) => a.name)
  const arrayOver = (name: string, ...axes: readonly string[]): Buffer1 => array(name, [...under, ...axes])
  const marks = { ...arrayOver(foundBuffer('marks'), word), placed: true as const }
  const sizes = arrayOver(foundBuffer('sizes'), chunk, part)
  // Each chunk computes the total; consumers read that of the first chunk.
  const counts: Buffer1 = { ...arrayOver(foundBuffer('counts')), axes: [chunk, ...under] }
  const countOf = (chunk: Expr): Load => load(counts.name, [chunk, ...under.map(v)])
  const bases = arrayOver(foundBuffer('bases'), chunk)
  const starts = { ...arrayOver(foundBuffer('starts'), chunk, part), below: extent }
  const slotNames = [...(format.group ? [format.group.name] : []), format.position]
  const list = {
    ...arrayOver(unused(listName(format.list, source.buffer.name)), ...slotNames),
    below: extent,
    placed: true as const,
  }
  const element = (b: Buffer1, ...index: readonly Expr[]): Load => load(b.name, [...under.map(v), ...index])
  const outerIters = under.map((name) => iter(name, 'S'))
  const { nest, sum, set } = statementsAt(span)

  const read = reading(source, format, placeOf(word, bit), unused)
  const reduced = read.order.flatMap((name) =>
    name === bit || !(name === word || under.includes(name)) ? [iter(name, 'R', read.axes.get(name))] : [],
  )
  // Positions of outer axes that form several digits of a coordinate may exceed its extent. Their words are set to 0,
  // not skipped.
  const inList = read.order.filter((name) => !under.includes(name))
  const isOfList = (e: Expr): boolean => !inList.some((name) => mentions(e, name))
  const exists = read.inside.filter(isOfList)
  const bits = select(read.held, bitOf(v(bit)), int(0))
  const mark = nest(
    named('mark'),
    [...outerIters, iter(word, 'S'), ...reduced],
    [sum(element(marks, v(word)), exists.length > 0 ? select(all(exists), bits, int(0)) : bits, BITS)],
    read.inside.filter((e) => !isOfList(e)),
  )

  const width = int(format.width)
  const worst = format.group ? ceildiv(extent, width) : extent
  const room = capacity ? min(max(capacity, int(0)), worst) : worst
  const found = countOf(int(0))
  const count = capacity ? min(found, mul(room, width)) : found
  const mine = placeOf(chunk, part)
  const at = add(mul(mine, int(WORD)), v(bit))
  const marked = element(marks, mine)
  const before = listedBefore(element(bases, v(chunk)), element(starts, v(chunk), v(part)), marked, v(bit))
  // Range analysis has no bound for sums of loaded values, and a dividend must not be negative.
  const slot = format.group ? max(before, int(0)) : before
  const offset = unused(`${format.list}_offset`)
  // The last listed coordinate also fills up its group.
  const filled = select(eq(add(slot, int(1)), countOf(v(chunk))), sub(width, mod(slot, width)), int(1))
  const [ofPlace, ofCount, ofBase] = [named('place'), named('count'), named('base')]
  const [ofSize, ofStart] = [named('size'), named('start')]
  const marksOf = (word: Expr): Expr => call('popcount', [element(marks, word)])
  const target = element(
    list,
    ...(format.group ? [div(slot, width), add(mod(slot, width), v(offset))] : [slot]),
  )
  const listed =
    format.group && format.padding !== 'last' ? select(eq(v(offset), int(0)), at, format.padding) : at
  const starting = nest(
    ofStart,
    [iter(other, 'R')],
    [sum(element(starts, v(chunk), v(part)), element(sizes, v(chunk), v(other)))],
  )
  const placing = nest(
    ofPlace,
    [iter(bit, 'S'), ...(format.group ? [iter(offset, 'S')] : [])],
    [set(target, listed)],
    [lt(mine, words), isMarked(marked, v(bit)), ...(capacity ? [lt(slot, mul(room, width))] : [])],
  )
  const place = nest(
    ofPlace,
    [...outerIters, iter(chunk, 'S')],
    [
      nest(ofCount, [iter(any, 'R')], [sum(countOf(v(chunk)), marksOf(v(any)))]),
      nest(ofBase, [iter(earlier, 'R')], [sum(element(bases, v(chunk)), marksOf(v(earlier)))]),
      // A word beyond the axis reads as 0.
      nest(ofSize, [iter(part, 'S')], [set(element(sizes, v(chunk), v(part)), marksOf(mine))]),
      nest(ofPlace, [iter(part, 'S')], [starting, placing]),
    ],
  )
  const axes = [
    ...outer.map(own),
    ...format.inner.map(own),
    denseAxis(word, words),
    denseAxis(bit, int(WORD)),
    // A list without words needs one chunk, which stores the count 0.
    denseAxis(chunk, max(ceildiv(words, int(WORD)), int(1))),
    denseAxis(part, int(WORD)),
    { ...denseAxis(other, int(WORD)), count: v(part) },
    denseAxis(any, words),
    { ...denseAxis(earlier, words), count: mul(v(chunk), int(WORD)) },
    ...(format.group ? [{ ...denseAxis(offset, width), count: filled }] : []),
  ]
  const extents = new Map([...source.axes.filter(isStored), ...axes].map((a) => [a.name, a.extent]))
  const inAll = total && { capacity: max(total, int(0)) }
  const group = format.group && {
    ...denseAxis(format.group.name, room),
    count: ceildiv(count, width),
    ...inAll,
  }
  const position = format.group
    ? denseAxis(format.position, width)
    : { ...denseAxis(format.position, room), count: count, ...inAll }
  return {
    axes: [...axes.slice(0, outer.length), ...(group ? [group] : []), position, ...axes.slice(outer.length)],
    buffers: [marks, counts, bases, sizes, starts, list],
    nests: [mark, place],
    defaults: [
      ...markSteps({
        nest: mark.name,
        tensor: source.buffer.name,
        dtype: source.buffer.dtype,
        marks: marks.name,
        copy: source.buffer.fill === 0 ? unused(`${source.buffer.name}_read`) : null,
        outer: under,
        word,
        bit,
        reduced: reduced.map((x) => loopOver(x.name, extents.get(x.axis)!)),
        order: read.order,
      }),
      ...placeSteps({
        nest: ofPlace,
        outer: under,
        chunk,
        part,
        sums: [
          { nest: ofCount, loop: any, buffer: counts.name, copy: unused(`${counts.name}_sum`) },
          { nest: ofBase, loop: earlier, buffer: bases.name, copy: unused(`${bases.name}_sum`) },
        ],
        size: ofSize,
        start: { nest: ofStart, loop: other, buffer: starts.name, copy: unused(`${starts.name}_sum`) },
        bit,
        grouped: format.group !== null,
      }),
    ],
    count,
    capacity: capacity && { counts: counts.name, width: format.width, capacity: room },
    listed: element(list, ...slotNames.map(v)),
    ranks: { marks: marks.name, bases: bases.name, starts: starts.name },
    group,
    position,
  }
}

const BITS: Monoid = {
  ...builtinMonoid('+', 'index'),
  name: 'bit_or',
  result: [call('bit_or', [variable('a'), variable('b')])],
}
