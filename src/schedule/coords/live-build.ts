/**
 * The nests that build a format's lists in a kernel, from a dense tensor that it reads: marks of the coordinates that hold
 * anything, their numbers, and where each goes. Ranks are sums in two steps, of blocks and inside of a block, so that every
 * nest is spread over threads and no step follows another.
 */
import { denseAxis, type StoredAxis } from '../../ir/axis.ts'
import {
  add,
  all,
  binary,
  ceildiv,
  constant,
  div,
  type Expr,
  int,
  type Load,
  load,
  lt,
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
  at: StepSpan,
): Built {
  const { buffer: tensor } = source
  const { outer, inner, extent } = format
  const named = (what: string): string => unused(`${what}_${tensor.name}`)
  const own = (a: StoredAxis): StoredAxis => denseAxis(a.name, a.extent)
  const [block, place] = [unused(`${format.list}_block`), unused(`${format.list}_place`)]
  const [before, earlier] = [unused(`${block}_before`), unused(`${place}_before`)]
  const blocks = denseAxis(block, ceildiv(extent, int(BLOCK)))
  const places = denseAxis(place, int(BLOCK))
  const sums = (name: string, axes: readonly string[]): Buffer1 => ({
    name: named(name),
    dtype: 'i32',
    axes,
    role: 'local',
    fill: 0,
    accumulate: 'i32',
  })
  const under = outer.map((a) => a.name)
  const [marks, totals, starts, ranks] = [
    sums('marks', [...under, block, place]),
    sums('totals', [...under, block]),
    sums('starts', [...under, block]),
    sums('ranks', [...under, block, place]),
  ]
  const counts = sums('counts', under)
  const last = sums('ends', under)
  const list: Buffer1 = {
    ...sums('list', [...under, ...(format.group ? [format.group.name] : []), format.position]),
    name: unused(`${format.list}_of_${tensor.name}`),
    below: extent,
  }
  const v = (name: string): Expr => variable(name)
  const el = (b: Buffer1, ...index: readonly string[]): Load =>
    load(b.name, [...under, ...index].map(v), 'i32')
  const outerIters = under.map((name): Iter => ({ name, axis: name, kind: 'S' }))
  const iter = (name: string, kind: IterKind, axis = name): Iter => ({ name, axis, kind })
  const nest = (
    what: string,
    iters: readonly Iter[],
    body: readonly Stmt1[],
    where: readonly Expr[] = [],
  ): Iteration => iteration({ name: named(what), iters: [...outerIters, ...iters], where, body, ...at })
  const sum = (target: Load, value: Expr, by: '+' | 'max' = '+'): Stmt1 =>
    reduce1({ reducer: builtinMonoid(by, 'i32'), targets: [target], values: [value], ...at })
  const one = (cond: Expr): Expr => select(cond, int(1), int(0))
  const isMarked = (b: string, p: string): Expr => lt(int(0), el(marks, b, p))
  const coordinate = add(mul(v(block), int(BLOCK)), v(place))
  const at1 = format.inverse(coordinate)
  const others = tensor.axes.filter((_, k) => k < source.start || k >= source.start + at1.length)
  const otherIters = others.map((axis) => iter(unused(axis), 'R', axis))
  const element = load(
    tensor.name,
    [
      ...otherIters.slice(0, source.start).map((x) => v(x.name)),
      ...at1,
      ...otherIters.slice(source.start).map((x) => v(x.name)),
    ],
    tensor.dtype,
  )
  const isHeld = binary('ne', element, constant(tensor.fill, tensor.dtype))
  const padsLast = format.padding === 'last'
  const pad: Expr = format.padding === 'last' ? el(last) : format.padding
  const rank = add(el(starts, block), el(ranks, block, place))
  const slots = (r: Expr): Expr[] =>
    format.group ? [div(r, int(format.width)), mod(r, int(format.width))] : [r]
  const slotNames = list.axes.slice(under.length)
  const nests = [
    nest(
      'mark',
      [iter(block, 'S'), iter(place, 'S'), ...inner.map((a) => iter(a.name, 'R')), ...otherIters],
      [sum(el(marks, block, place), one(isHeld))],
    ),
    nest(
      'total',
      [iter(block, 'S'), iter(place, 'R')],
      [sum(el(totals, block), one(isMarked(block, place)))],
    ),
    nest(
      'start',
      [iter(block, 'S'), iter(before, 'R', block)],
      [sum(el(starts, block), select(lt(v(before), v(block)), el(totals, before), int(0)))],
    ),
    nest('count', [iter(block, 'R')], [sum(el(counts), el(totals, block))]),
    nest(
      'rank',
      [iter(block, 'S'), iter(place, 'S'), iter(earlier, 'R', place)],
      [sum(el(ranks, block, place), one(all([lt(v(earlier), v(place)), isMarked(block, earlier)])))],
    ),
    ...(padsLast
      ? [
          nest(
            'last',
            [iter(block, 'R'), iter(place, 'R')],
            [sum(el(last), select(isMarked(block, place), coordinate, int(0)), 'max')],
          ),
        ]
      : []),
    nest(
      'pad',
      slotNames.map((name) => iter(name, 'S')),
      [assign1([el(list, ...slotNames)], [pad])],
    ),
    // Each position is met once: what is added to its padding is the way from there to the coordinate.
    nest(
      'place',
      [iter(block, 'R'), iter(place, 'R')],
      [sum(load(list.name, [...under.map(v), ...slots(rank)], 'i32'), sub(coordinate, pad))],
      [isMarked(block, place)],
    ),
  ]
  const count = el(counts)
  const worst = format.group ? ceildiv(extent, int(format.width)) : extent
  const group = format.group && {
    ...denseAxis(format.group.name, worst),
    counted: ceildiv(count, int(format.width)),
  }
  const position = format.group
    ? denseAxis(format.position, int(format.width))
    : { ...denseAxis(format.position, worst), counted: count }
  return {
    axes: [...outer.map(own), ...(group ? [group] : []), position, ...inner.map(own), blocks, places],
    buffers: [marks, totals, starts, counts, ranks, ...(padsLast ? [last] : []), list],
    nests,
    count,
    listed: el(list, ...slotNames),
    group,
    position,
  }
}
