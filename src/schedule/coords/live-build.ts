/**
 * The nests that build a format's lists in a kernel, from a dense tensor that it reads: marks of the coordinates that hold
 * anything, their numbers, and where each goes. Ranks are sums in two steps, of blocks and inside of a block, so that every
 * nest is spread over threads and no step follows another.
 */
import { denseAxis, type StoredAxis } from '../../ir/axis.ts'
import {
  add,
  and,
  binary,
  ceildiv,
  constant,
  div,
  type Expr,
  int,
  type Load,
  load,
  lt,
  min,
  mod,
  mul,
  select,
  sub,
  variable,
} from '../../ir/expr.ts'
import { builtinMonoid } from '../../ir/monoid.ts'
import type { Buffer1, Iter, Iteration, IterKind, Stmt1 } from '../../ir/stage1.ts'
import { assign1, iteration, reduce1 } from '../../ir/stage1-builders.ts'
import type { LiveFormat } from './live-format.ts'
import type { StepSpan } from './tensor-split.ts'

/** What is summed at once: ranks of n coordinates are n · (64 + n / 64) sums. */
const BLOCK = 64

export interface Built {
  readonly axes: readonly StoredAxis[]
  readonly buffers: readonly Buffer1[]
  readonly nests: readonly Stmt1[]
  /** How many coordinates are listed under positions of the outer axes. */
  readonly count: Load
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
}

/** `unused` gives names that are free. */
export function buildNests(
  format: LiveFormat,
  source: Source,
  unused: (name: string) => string,
  span: StepSpan,
): Built {
  const { buffer: tensor } = source
  const { outer, inner, extent } = format
  const named = (what: string): string => unused(`${what}_${tensor.name}`)
  const own = (a: StoredAxis): StoredAxis => denseAxis(a.name, a.extent)
  // Coordinates that may be listed, and blocks of them.
  const [at, block, place] = ['at', 'block', 'place'].map((x) => unused(`${format.list}_${x}`)) as [
    string,
    string,
    string,
  ]
  const before = unused(`${block}_before`)
  const coordinates = denseAxis(at, extent)
  const blocks = denseAxis(block, ceildiv(extent, int(BLOCK)))
  const places = denseAxis(place, int(BLOCK))
  const under = outer.map((a) => a.name)
  const sums = (name: string, ...axes: readonly string[]): Buffer1 => ({
    name: named(name),
    dtype: 'i32',
    axes: [...under, ...axes],
    role: 'local',
    fill: 0,
    accumulate: 'i32',
  })
  const marks = sums('marks', at)
  const ranks = { ...sums('ranks', at), below: extent }
  const [totals, lasts] = [sums('totals', block), sums('lasts', block)]
  const starts = { ...sums('starts', block), below: extent }
  const [counts, ends] = [sums('counts'), sums('ends')]
  const slotNames = [...(format.group ? [format.group.name] : []), format.position]
  const list: Buffer1 = {
    ...sums('list', ...slotNames),
    name: unused(`${format.list}_of_${tensor.name}`),
    below: extent,
  }
  const v = (name: string): Expr => variable(name)
  const element = (b: Buffer1, ...index: readonly Expr[]): Load =>
    load(b.name, [...under.map(v), ...index], 'i32')
  const outerIters = under.map((name): Iter => ({ name, axis: name, kind: 'S' }))
  const iter = (name: string, kind: IterKind, axis = name): Iter => ({ name, axis, kind })
  const nest = (
    what: string,
    iters: readonly Iter[],
    body: readonly Stmt1[],
    where: readonly Expr[] = [],
  ): Iteration => iteration({ name: named(what), iters: [...outerIters, ...iters], where, body, ...span })
  const sum = (target: Load, value: Expr, by: '+' | 'max' = '+'): Stmt1 =>
    reduce1({ reducer: builtinMonoid(by, 'i32'), targets: [target], values: [value], ...span })
  const one = (cond: Expr): Expr => select(cond, int(1), int(0))
  const placed = add(mul(v(block), int(BLOCK)), v(place))
  const isMarked = (coordinate: Expr): Expr => lt(int(0), element(marks, coordinate))
  const padsLast = format.padding === 'last'
  const pad = format.padding === 'last' ? element(ends) : format.padding
  const inBlock = div(v(at), int(BLOCK))
  // No more are listed before a coordinate than there are: that there is a slot for it is known before the run.
  const slot = min(add(element(starts, inBlock), element(ranks, v(at))), v(at))
  const width = int(format.width)
  const read = reading(source, format.inverse(v(at)), unused)
  const nests = [
    nest(
      'mark',
      [iter(at, 'S'), ...inner.map((a) => iter(a.name, 'R')), ...read.iters],
      [sum(element(marks, v(at)), one(read.held))],
    ),
    // Beyond the last coordinate nothing is marked.
    nest(
      'total',
      [iter(block, 'S'), iter(place, 'R')],
      [
        sum(element(totals, v(block)), one(isMarked(placed))),
        ...(padsLast ? [sum(element(lasts, v(block)), select(isMarked(placed), placed, int(0)), 'max')] : []),
      ],
    ),
    nest(
      'start',
      [iter(block, 'S'), iter(before, 'R', block)],
      [sum(element(starts, v(block)), select(lt(v(before), v(block)), element(totals, v(before)), int(0)))],
    ),
    nest(
      'count',
      [iter(block, 'R')],
      [
        sum(element(counts), element(totals, v(block))),
        ...(padsLast ? [sum(element(ends), element(lasts, v(block)), 'max')] : []),
      ],
    ),
    nest(
      'rank',
      [iter(at, 'S'), iter(place, 'R')],
      [
        sum(
          element(ranks, v(at)),
          one(and(lt(v(place), mod(v(at), int(BLOCK))), isMarked(add(mul(inBlock, int(BLOCK)), v(place))))),
        ),
      ],
    ),
    nest(
      'pad',
      slotNames.map((name) => iter(name, 'S')),
      [assign1([element(list, ...slotNames.map(v))], [pad], span.span)],
    ),
    // Each position is met once: what is added to its padding is the way from there to the coordinate.
    nest(
      'place',
      [iter(at, 'R')],
      [
        sum(
          element(list, ...(format.group ? [div(slot, width), mod(slot, width)] : [slot])),
          sub(v(at), pad),
        ),
      ],
      [isMarked(v(at))],
    ),
  ]
  const count = element(counts)
  const worst = format.group ? ceildiv(extent, int(format.width)) : extent
  const group = format.group && {
    ...denseAxis(format.group.name, worst),
    counted: ceildiv(count, int(format.width)),
  }
  const position = format.group
    ? denseAxis(format.position, int(format.width))
    : { ...denseAxis(format.position, worst), counted: count }
  return {
    axes: [
      ...outer.map(own),
      ...(group ? [group] : []),
      position,
      ...inner.map(own),
      coordinates,
      blocks,
      places,
    ],
    buffers: [marks, totals, starts, counts, ranks, ...(padsLast ? [lasts, ends] : []), list],
    nests,
    count,
    listed: element(list, ...slotNames.map(v)),
    group,
    position,
  }
}

/**
 * Whether the tensor holds anything at coordinates of the format's dimensions, and the iterators of its other ones: something
 * is listed where any of these hold something.
 */
function reading({ buffer, start }: Source, coordinates: readonly Expr[], unused: (name: string) => string) {
  const end = start + coordinates.length
  const iters = buffer.axes.map((axis, k): Iter | null =>
    k < start || k >= end ? { name: unused(axis), axis, kind: 'R' } : null,
  )
  const index = iters.map((x, k) => (x ? variable(x.name) : coordinates[k - start]!))
  const held = binary('ne', load(buffer.name, index, buffer.dtype), constant(buffer.fill, buffer.dtype))
  return { iters: iters.filter((x) => x !== null), held }
}
