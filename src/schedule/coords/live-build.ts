/**
 * The nests that build a format's lists in a kernel, from a dense tensor: a bit for each coordinate that holds
 * anything, 32 to a word; how many there are before each word; and the coordinates in their places. Each nest is spread over
 * threads, and no step follows another but for counts of words, which are summed by the chunk and inside of a chunk.
 */
import { type Axis, denseAxis, isStored, type StoredAxis } from '../../ir/axis.ts'
import {
  add,
  binary,
  call,
  ceildiv,
  constant,
  div,
  type Expr,
  eq,
  int,
  type Load,
  load,
  lt,
  max,
  min,
  mod,
  mul,
  select,
  sub,
  variable,
} from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import { builtinMonoid, type Monoid } from '../../ir/monoid.ts'
import type { Buffer1, Capacity, Iter, Iteration, IterKind, NestDefault, Stmt1 } from '../../ir/stage1.ts'
import { assign1, iteration, reduce1 } from '../../ir/stage1-builders.ts'
import type { LiveFormat } from './live-format.ts'
import { loopOver, markSteps, placeSteps, startSteps } from './live-schedule.ts'
import type { StepSpan } from './tensor-split.ts'

/** Coordinates of a word, and words of a chunk. */
const WORD = 32

export interface Built {
  readonly axes: readonly StoredAxis[]
  readonly buffers: readonly Buffer1[]
  readonly nests: readonly Stmt1[]
  /** Schedules of the nests, where no step names their loops. */
  readonly defaults: readonly NestDefault[]
  /** How many coordinates are listed under positions of the outer axes. */
  readonly count: Expr
  /** What there is room for, where that may be too little. */
  readonly capacity: Capacity | undefined
  /** The coordinate that a group and a position have, of the axes of these names. */
  readonly listed: Load
  /** The group axis and that over positions, each dense to the worst case and counted. */
  readonly group: StoredAxis | null
  readonly position: StoredAxis
}

interface Source {
  readonly buffer: Buffer1
  /** Where the format's dimensions begin. */
  readonly start: number
  /** The axes of these dimensions. */
  readonly over: readonly StoredAxis[]
  /** Those of the kernel. */
  readonly axes: readonly Axis[]
}

const v = (name: string): Expr => variable(name)
const iter = (name: string, kind: IterKind, axis = name): Iter => ({ name, axis, kind })
const bitOf = (place: Expr): Expr => call('shift_left', [int(1), place])
const wordsOf = (extent: Expr): Expr => ceildiv(extent, int(WORD))
const placeOf = (many: string, one: string): Expr => add(mul(v(many), int(WORD)), v(one))

/** `unused` gives names that are free. */
export function buildNests(
  format: LiveFormat,
  source: Source,
  unused: (name: string) => string,
  span: StepSpan,
  capacity?: Expr,
): Built {
  const { outer, extent } = format
  const named = (what: string): string => unused(`${what}_${source.buffer.name}`)
  const own = (a: StoredAxis): StoredAxis => denseAxis(a.name, a.extent)
  // Words by their number, or as parts of chunks.
  const [word, bit, chunk, part, other, before] = ['word', 'bit', 'chunk', 'part', 'other', 'before'].map(
    (x) => unused(`${format.list}_${x}`),
  ) as [string, string, string, string, string, string]
  const words = wordsOf(extent)
  // One block counts a list that is under no axis.
  const single = outer.length === 0 ? [unused(`${format.list}_all`)] : []
  const under = outer.map((a) => a.name)
  const array = (name: string, ...axes: readonly string[]): Buffer1 => ({
    name,
    dtype: 'i32',
    axes: [...under, ...axes],
    role: 'local',
    fill: 0,
    accumulate: 'i32',
  })
  const marks = { ...array(named('marks'), word), placed: true as const }
  const sizes = array(named('sizes'), word)
  const [totals, counts] = [array(named('totals'), chunk), array(named('counts'))]
  const starts = { ...array(named('starts'), word), below: extent }
  const slotNames = [...(format.group ? [format.group.name] : []), format.position]
  const list = {
    ...array(unused(`${format.list}_of_${source.buffer.name}`), ...slotNames),
    below: extent,
    placed: true as const,
  }
  const element = (b: Buffer1, ...index: readonly Expr[]): Load =>
    load(b.name, [...under.map(v), ...index], 'i32')
  const outerIters = under.map((name) => iter(name, 'S'))
  const nest = (
    name: string,
    iters: readonly Iter[],
    body: readonly Stmt1[],
    where: readonly Expr[] = [],
  ): Iteration => iteration({ name, iters, where, body, ...span })
  const sum = (target: Load, value: Expr, reducer: Monoid = builtinMonoid('+', 'i32')): Stmt1 =>
    reduce1({ reducer, targets: [target], values: [value], ...span })

  const read = reading(source, format, placeOf(word, bit), unused)
  const reduced = read.order.flatMap((name) =>
    name === bit || !(name === word || under.includes(name)) ? [iter(name, 'R', read.axes.get(name))] : [],
  )
  const mark = nest(
    named('mark'),
    [...outerIters, iter(word, 'S'), ...reduced],
    [sum(element(marks, v(word)), select(read.held, bitOf(v(bit)), int(0)), BITS)],
    read.inside,
  )

  const [ofSize, ofChunk, ofWord, ofAll] = ['size', 'total', 'start', 'count'].map(named) as [
    string,
    string,
    string,
    string,
  ]
  const mine = placeOf(chunk, part)
  const start = nest(
    ofWord,
    [...outerIters, ...single.map((x) => iter(x, 'S'))],
    [
      nest(
        ofSize,
        [iter(chunk, 'S'), iter(part, 'S')],
        [assign1([element(sizes, mine)], [call('popcount', [element(marks, mine)])], span.span)],
        [lt(mine, words)],
      ),
      // Words beyond the last one have nothing.
      nest(
        ofChunk,
        [iter(chunk, 'S'), iter(part, 'R')],
        [sum(element(totals, v(chunk)), element(sizes, mine))],
      ),
      nest(
        ofWord,
        [iter(chunk, 'S'), iter(part, 'S')],
        [
          nest(
            ofWord,
            [iter(other, 'R')],
            [sum(element(starts, mine), element(sizes, placeOf(chunk, other)))],
          ),
          nest(ofWord, [iter(before, 'R')], [sum(element(starts, mine), element(totals, v(before)))]),
        ],
        [lt(mine, words)],
      ),
      nest(ofAll, [iter(chunk, 'R')], [sum(element(counts), element(totals, v(chunk)))]),
    ],
  )

  const width = int(format.width)
  const worst = format.group ? ceildiv(extent, width) : extent
  const room = capacity ? min(max(capacity, int(0)), worst) : worst
  const count = capacity ? min(element(counts), mul(room, width)) : element(counts)
  const at = placeOf(word, bit)
  const below = call('bit_and', [element(marks, v(word)), sub(bitOf(v(bit)), int(1))])
  const slot = add(element(starts, v(word)), call('popcount', [below]))
  const isMarked = binary('ne', call('bit_and', [element(marks, v(word)), bitOf(v(bit))]), int(0))
  const offset = unused(`${format.list}_offset`)
  // Who has the last slot fills up its group.
  const filled = select(eq(add(slot, int(1)), element(counts)), sub(width, mod(slot, width)), int(1))
  const place = nest(
    named('place'),
    [...outerIters, iter(word, 'S'), iter(bit, 'S'), ...(format.group ? [iter(offset, 'S')] : [])],
    [
      assign1(
        [element(list, ...(format.group ? [div(slot, width), add(mod(slot, width), v(offset))] : [slot]))],
        [format.group && format.padding !== 'last' ? select(eq(v(offset), int(0)), at, format.padding) : at],
        span.span,
      ),
    ],
    [lt(at, extent), isMarked, ...(capacity ? [lt(slot, mul(room, width))] : [])],
  )

  const axes = [
    ...outer.map(own),
    ...format.inner.map(own),
    ...single.map((x) => denseAxis(x, int(1))),
    denseAxis(word, words),
    denseAxis(bit, int(WORD)),
    denseAxis(chunk, ceildiv(words, int(WORD))),
    denseAxis(part, int(WORD)),
    { ...denseAxis(other, int(WORD)), counted: v(part) },
    { ...denseAxis(before, ceildiv(words, int(WORD))), counted: v(chunk) },
    ...(format.group ? [{ ...denseAxis(offset, width), counted: filled }] : []),
  ]
  const extents = new Map([...source.axes.filter(isStored), ...axes].map((a) => [a.name, a.extent]))
  const group = format.group && { ...denseAxis(format.group.name, room), counted: ceildiv(count, width) }
  const position = format.group
    ? denseAxis(format.position, width)
    : { ...denseAxis(format.position, room), counted: count }
  return {
    axes: [...axes.slice(0, outer.length), ...(group ? [group] : []), position, ...axes.slice(outer.length)],
    buffers: [marks, sizes, totals, starts, counts, list],
    nests: [mark, start, place],
    defaults: [
      ...markSteps({
        nest: mark.name,
        tensor: source.buffer.name,
        dtype: source.buffer.dtype,
        copy: source.buffer.fill === 0 ? unused(`${source.buffer.name}_read`) : null,
        outer: under,
        word,
        bit,
        reduced: reduced.map((x) => loopOver(x.name, extents.get(x.axis)!)),
        finest: read.order.at(-1)!,
      }),
      ...startSteps({
        nest: ofWord,
        outer: [...under, ...single],
        size: ofSize,
        total: ofChunk,
        count: ofAll,
        starts: starts.name,
        copy: unused(`${starts.name}_sum`),
        chunk,
        part,
        other,
      }),
      ...placeSteps({ nest: place.name, outer: under, word, bit, inner: format.group ? [offset] : [] }),
    ],
    count,
    capacity: capacity && {
      axis: format.group?.name ?? format.position,
      counts: counts.name,
      width: format.width,
      capacity: room,
    },
    listed: element(list, ...slotNames.map(v)),
    group,
    position,
  }
}

/** Sets of bits together. */
const BITS: Monoid = {
  ...builtinMonoid('+', 'i32'),
  name: 'bit_or',
  result: [call('bit_or', [variable('a', 'i32'), variable('b', 'i32')])],
}

/**
 * Whether the tensor holds anything where a coordinate `listed` is, at coordinates of the format's dimensions; the names of all
 * that its index changes with, from that which changes it most, and the axes of those of its other dimensions: something is
 * listed where any of these hold something.
 */
function reading(
  { buffer, start, over }: Source,
  format: LiveFormat,
  listed: Expr,
  unused: (name: string) => string,
) {
  const coordinates = format.inverse(listed)
  const end = start + coordinates.length
  const axes = new Map<string, string>()
  const index = buffer.axes.map((axis, k) => {
    if (k >= start && k < end) return coordinates[k - start]!
    const name = unused(axis)
    axes.set(name, axis)
    return variable(name)
  })
  const held = binary('ne', load(buffer.name, index, buffer.dtype), constant(buffer.fill, buffer.dtype))
  // What is but one digit ends where its axis does.
  const inside = coordinates.flatMap((e, k) => (e.kind === 'var' ? [] : [lt(e, over[k]!.extent)]))
  return { axes, inside, held, order: index.flatMap((e) => [...freeVars(e)]) }
}
