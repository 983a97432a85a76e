/**
 * The format builder: loop nests that build the lists of a `live` format from a dense tensor. The coordinates that hold
 * a value, marked in a bitmask (`mark.ts`), are compacted into the lists. Each chunk of words recomputes the count of
 * all words of its list and of the words before the chunk, which is cheaper than another kernel launch.
 */
import { denseAxis, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import { builderArrayName, listName } from '../../../ir/coordinates/derived-names.ts'
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration, Stmt1 } from '../../../ir/coordinates/stage1.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import {
  add,
  binary,
  call,
  ceildiv,
  div,
  eq,
  int,
  lt,
  max,
  min,
  mod,
  mul,
  select,
  sub,
} from '../../../ir/expressions/expr.ts'
import type { Unused } from '../as/part-statements.ts'
import type { LiveFormat } from './format.ts'
import { bitOf, markNest, type Source, WORD } from './mark.ts'
import {
  AHEAD,
  array,
  elementOf,
  iter,
  LANES,
  loopOf,
  namesFor,
  nest,
  ROUNDS,
  ROWS,
  Steps,
  set,
  sum,
  v,
} from './nests.ts'

export interface Built {
  readonly axes: readonly StoredAxis[]
  readonly arrays: Arrays & { readonly values?: Buffer1 }
  readonly nests: readonly Stmt1[]
  /** Default schedules of the loop nests, for loops that no step names. */
  readonly defaults: readonly NestDefault[]
  /** The number of coordinates in the list, over positions of the outer axes. */
  readonly count: Expr
  /** The capacity in groups; undefined if the list is allocated for the worst case. */
  readonly capacity: Expr | undefined
  /** The axis of groups (null without groups) and the axis of positions: dense with the worst-case extent, counted. */
  readonly group: StoredAxis | null
  readonly position: StoredAxis
}

const LOOPS = ['word', 'bit', 'chunk', 'part', 'other', 'any', 'earlier', 'offset'] as const
const NESTS = ['mark', 'place', 'count', 'base', 'size', 'rank', 'start', 'list'] as const

/** Claims the names of the builder of one part. */
const claimNames = ({ list }: LiveFormat, tensor: string, unused: Unused, label: string) => ({
  loops: namesFor(LOOPS, (x) => unused(`${list}_${x}`)),
  nests: namesFor(NESTS, (x) => unused(`${x}_${tensor}`, label)),
  array: (x: Parameters<typeof builderArrayName>[0]) => unused(builderArrayName(x, tensor), label),
})
type BuilderNames = ReturnType<typeof claimNames>

/**
 * The bitmask (`marks`); the number of coordinates of each list, computed by each chunk of words (`counts`); the number
 * of set bits before each chunk (`bases`), of each word of a chunk (`sizes`), and in a chunk before each word
 * (`starts`); the listed coordinates (`list`).
 */
function arraysOf(
  format: LiveFormat,
  { loops: { word, chunk, part }, array: nameOf }: BuilderNames,
  list: string,
) {
  const under = format.outer.map((a) => a.name)
  const below = format.extent
  return {
    marks: { ...array(nameOf('marks'), [...under, word]), placed: true as const },
    // Consumers read the total that the first chunk computes.
    counts: array(nameOf('counts'), [chunk, ...under]),
    bases: array(nameOf('bases'), [...under, chunk]),
    sizes: array(nameOf('sizes'), [...under, chunk, part]),
    starts: { ...array(nameOf('starts'), [...under, chunk, part]), below },
    // Loops over positions of a list visit each coordinate once.
    list: {
      ...array(list, [...under, ...slotAxes(format)]),
      below,
      placed: true as const,
      listDims: under.length,
    },
  }
}
export type Arrays = ReturnType<typeof arraysOf>

/** Returns the axes of a list under its outer axes: that of groups, if there are groups, and that of positions. */
export const slotAxes = ({ group, position }: LiveFormat): readonly string[] => [
  ...(group ? [group.name] : []),
  position,
]

/** Bits below `place`. An xor, because the subtraction for bit 31 would overflow (-2 ** 31 - 1). */
const bitsBelow = (place: Expr): Expr => call('bit_xor', [call('shift_left', [int(-1), place]), int(-1)])

/**
 * Returns the condition that the coordinate at a bit of a word is listed, and its positions on the axes of the list. The
 * number of coordinates before it follows without a search. `at`: the word, its chunk, its part of the chunk.
 */
export function placeOf(
  { group, width }: LiveFormat,
  { marks, bases, starts }: Arrays,
  at: Readonly<Record<string, Expr>>,
  bit: Expr,
) {
  const marked = elementOf(marks, at)
  const inWord = call('popcount', [call('bit_and', [marked, bitsBelow(bit)])])
  const before = add(add(elementOf(bases, at), elementOf(starts, at)), inWord)
  // Range analysis has no bound for sums of loaded values, and a dividend must not be negative.
  const slot = group ? max(before, int(0)) : before
  return {
    isMarked: binary('ne', call('bit_and', [marked, bitOf(bit)]), int(0)),
    slot,
    index: group ? [div(slot, int(width)), mod(slot, int(width))] : [slot],
  }
}

/** Builds the lists of one part, up to the capacity of each list, or of all lists together (`total`). */
export function buildNests(
  format: LiveFormat,
  source: Source,
  unused: Unused,
  { capacity, total, label }: { capacity: Expr | undefined; total: Expr | undefined; label: string },
): Built {
  const { outer, extent, group } = format
  const width = int(format.width)
  const names = claimNames(format, source.buffer.name, unused, label)
  const { loops, nests } = names
  const { word, bit, chunk, part } = loops
  const arrays = arraysOf(format, names, unused(listName(format.list, source.buffer.name)))
  const words = ceildiv(extent, int(WORD))
  const most = group ? ceildiv(extent, width) : extent
  const room = capacity ? min(max(capacity, int(0)), most) : most
  const needed = elementOf(arrays.counts, { [chunk]: int(0) })
  const count = capacity ? min(needed, mul(room, width)) : needed
  const mark = markNest(
    format,
    source,
    { name: nests.mark, word, bit, marks: elementOf(arrays.marks) },
    unused,
  )
  const { place, filled } = placeNest(names, arrays, format, { words, room: capacity && room })
  const own = (a: StoredAxis): StoredAxis => denseAxis(a.name, a.extent)
  const inAll = total && { capacity: max(total, int(0)) }
  const counted = (name: string, end: Expr): StoredAxis => ({
    ...denseAxis(name, room),
    count: end,
    ...inAll,
  })
  const groups = group && counted(group.name, ceildiv(count, width))
  const position = group ? denseAxis(format.position, width) : counted(format.position, count)
  return {
    axes: [
      ...outer.map(own),
      ...(groups ? [groups] : []),
      position,
      ...format.inner.map(own),
      denseAxis(word, words),
      denseAxis(bit, int(WORD)),
      // A list without words needs one chunk, which stores the count 0.
      denseAxis(chunk, max(ceildiv(words, int(WORD)), int(1))),
      denseAxis(part, int(WORD)),
      { ...denseAxis(loops.other, int(WORD)), count: v(part) },
      denseAxis(loops.any, words),
      { ...denseAxis(loops.earlier, words), count: mul(v(chunk), int(WORD)) },
      ...(group ? [{ ...denseAxis(loops.offset, width), count: filled }] : []),
    ],
    arrays,
    nests: [mark.nest, place],
    defaults: [...mark.defaults, placeSteps(names, arrays, format, unused)],
    count,
    capacity: capacity && room,
    group: groups,
    position,
  }
}

/**
 * Returns the loop nest that places the marked coordinates in the list, and the number of positions that a coordinate
 * fills (`filled`): the last one also fills up its group. `room` is the capacity.
 */
function placeNest(
  { loops, nests }: BuilderNames,
  arrays: Arrays,
  format: LiveFormat,
  { words, room }: { readonly words: Expr; readonly room: Expr | undefined },
): { readonly place: Iteration; readonly filled: Expr } {
  const { outer, group, width, padding } = format
  const [bit, offset] = [v(loops.bit), v(loops.offset)]
  const mine = add(mul(v(loops.chunk), int(WORD)), v(loops.part))
  const at = add(mul(mine, int(WORD)), bit)
  const { isMarked, slot, index } = placeOf(format, arrays, { [loops.word]: mine }, bit)
  const places = slotAxes(format).map(
    (name, k) => [name, k === 1 ? add(index[k]!, offset) : index[k]!] as const,
  )
  const isLast = eq(add(slot, int(1)), elementOf(arrays.counts))
  const filled = select(isLast, sub(int(width), mod(slot, int(width))), int(1))
  const listed = group && padding !== 'last' ? select(eq(offset, int(0)), at, padding) : at
  const bitsOf = (word: Expr): Expr => call('popcount', [elementOf(arrays.marks, { [loops.word]: word })])
  const before = elementOf(arrays.sizes, { [loops.part]: v(loops.other) })
  const spatial = (...names: readonly string[]) => names.map((name) => iter(name, 'S'))
  const place = nest(nests.place, spatial(...outer.map((a) => a.name), loops.chunk), [
    nest(nests.count, [iter(loops.any, 'R')], [sum(elementOf(arrays.counts), bitsOf(v(loops.any)))]),
    nest(
      nests.base,
      [iter(loops.earlier, 'R')],
      [sum(elementOf(arrays.bases), bitsOf(v(loops.earlier)))],
      [lt(v(loops.earlier), mul(v(loops.chunk), int(WORD)))],
    ),
    // A word beyond the axis reads as 0.
    nest(nests.size, spatial(loops.part), [set(elementOf(arrays.sizes), bitsOf(mine))]),
    nest(nests.rank, spatial(loops.part), [
      nest(
        nests.start,
        [iter(loops.other, 'R')],
        [sum(elementOf(arrays.starts), before)],
        [lt(v(loops.other), v(loops.part))],
      ),
      nest(
        nests.list,
        spatial(loops.bit, ...(group ? [loops.offset] : [])),
        [set(elementOf(arrays.list, Object.fromEntries(places)), listed)],
        [
          lt(mine, words),
          isMarked,
          ...(room ? [lt(slot, mul(room, int(width)))] : []),
          ...(group ? [lt(offset, filled)] : []),
        ],
      ),
    ]),
  ])
  return { place, filled }
}

/** Returns the schedule: a row of threads for each chunk, a thread for each word, of which few bits are set. */
function placeSteps(
  { nests, loops }: BuilderNames,
  { counts, bases, starts }: Arrays,
  { outer, group }: LiveFormat,
  unused: Unused,
): NestDefault {
  const s = new Steps()
  const own = (x: string) => loopOf(nests.place, x)
  const part = loopOf(nests.rank, loops.part)
  const all = s.fuse([...outer.map((a) => own(a.name)), own(loops.chunk)], `${loops.chunk}_all`)!
  const [block, row] = s.split(all, ROWS, 'row')
  s.bind([block, 'block.x'], [row, 'thread.y'])
  const keep = ({ name }: Buffer1, at = row!): void =>
    s.inRegisters('cache_write', name, at, { into: unused(`${name}_sum`) })
  for (const [loop, sums] of [
    [loopOf(nests.count, loops.any), counts],
    [loopOf(nests.base, loops.earlier), bases],
  ] as const) {
    const [rounds, lane] = s.split(loop, LANES, 'lane')
    s.bind([lane, 'thread.x'])
    s.unroll(rounds!, ROUNDS)
    keep(sums)
  }
  s.bind([loopOf(nests.size, loops.part), 'thread.x'])
  s.bind([part, 'thread.x'])
  keep(starts, part)
  s.unroll(loopOf(nests.start, loops.other), AHEAD)
  s.unroll(loopOf(nests.list, loops.bit), group ? ROUNDS : undefined)
  return { nest: nests.place, steps: s.steps }
}
