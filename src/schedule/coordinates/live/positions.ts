/**
 * Lookup of the position of any coordinate in lists that are built at run time. The bitmask shows whether the
 * coordinate is listed; the counts before its word, and a population count of the word, give its position. No search
 * is necessary.
 */

import type { Axis, StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { Buffer1 } from '../../../ir/coordinates/stage1.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import {
  add,
  all,
  and,
  binary,
  call,
  differs,
  div,
  int,
  load,
  lt,
  max,
  mod,
  variable,
} from '../../../ir/expressions/expr.ts'
import { freeVars, substitute } from '../../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'
import type { Position, Split } from '../as/tensor-split.ts'
import { inRange } from '../legality/axis-prefixes.ts'
import type { LiveFormat } from './format.ts'

/** The number of coordinates in a word, and of words in a chunk. */
export const WORD = 32

/**
 * Names of arrays over the outer axes: the bitmask (`marks`), the number of set bits before each chunk of words
 * (`bases`), and in a chunk before each word (`starts`).
 */
export interface Ranks {
  readonly marks: string
  readonly bases: string
  readonly starts: string
}

export const bitOf = (place: Expr): Expr => call('shift_left', [int(1), place])
/** Bits below `place`. An xor, because the subtraction for bit 31 would overflow (-2 ** 31 - 1). */
const bitsBelow = (place: Expr): Expr => call('bit_xor', [call('shift_left', [int(-1), place]), int(-1)])

export const isMarked = (word: Expr, bit: Expr): Expr =>
  binary('ne', call('bit_and', [word, bitOf(bit)]), int(0))

/** Returns the number of coordinates listed before a bit, given the counts before its chunk and its word. */
export const listedBefore = (base: Expr, start: Expr, word: Expr, bit: Expr): Expr =>
  add(add(base, start), call('popcount', [call('bit_and', [word, bitsBelow(bit)])]))

/** Returns a function from coordinates to positions; `ends`: the condition that a position of `part` is visited. */
export function positionAt(
  format: LiveFormat,
  ranks: Ranks,
  part: FormatInstance,
  over: Split['over'],
  ends: Expr,
): (coordinates: readonly Expr[]) => Position {
  const visited = [ends, ...part.inverse.flatMap((e, k) => inRange(e, over[k]!, part))]
  return (coordinates) => {
    const at = new Map(over.map((a, k) => [a.name, coordinates[k]!]))
    const digit = (name: string): Expr => substitute(format.digits.get(name)!, at)
    const outer = format.outer.map((a) => digit(a.name))
    const element = (array: string, ...index: readonly Expr[]): Load => load(array, [...outer, ...index])
    const listed = digit(format.list)
    const word = div(listed, int(WORD))
    const [chunk, bit] = [div(word, int(WORD)), mod(listed, int(WORD))]
    const marked = element(ranks.marks, word)
    const before = listedBefore(
      element(ranks.bases, chunk),
      element(ranks.starts, chunk, mod(word, int(WORD))),
      marked,
      bit,
    )
    const width = int(format.width)
    const places = new Map([
      ...format.outer.map((a, k) => [a.name, outer[k]!] as const),
      ...format.inner.map((a) => [a.name, digit(a.name)] as const),
      ...(format.group
        ? // Range analysis has no bound for sums of loaded values, and a dividend must not be negative.
          ([
            [format.group.name, div(max(before, int(0)), width)],
            [format.position, mod(max(before, int(0)), width)],
          ] as const)
        : [[format.position, before] as const]),
    ])
    const held = [isMarked(marked, bit), ...visited.map((c) => substitute(c, places))]
    return { held: all(held), index: part.order.map((name) => places.get(name) ?? variable(name)) }
  }
}

// The dense tensor whose values decide which coordinates a format lists.

export interface Source {
  readonly buffer: Buffer1
  /** Index of the tensor's first dimension that the format covers. */
  readonly start: number
  /** The axes of the covered dimensions. */
  readonly over: readonly StoredAxis[]
  /** All axes of the kernel, including those of other tensors. */
  readonly axes: readonly Axis[]
  /** A further condition on the elements, over the names of the axes in `over`; null if there is no condition. */
  readonly where: Expr | null
}

/**
 * Returns the condition `held` that the tensor holds a value at the coordinate `listed`. `order` has the names that
 * the index depends on, slowest-varying first. `axes` has the axes of the other dimensions: a coordinate is listed if
 * any element along them holds a value. `inside` has the bounds of the coordinates.
 */
export function reading(
  { buffer, start, over, where }: Source,
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
  const holds = differs(load(buffer.name, index, buffer.dtype), buffer.fill)
  const at = new Map(over.map((a, k) => [a.name, coordinates[k]!]))
  const held = where ? and(holds, substitute(where, at)) : holds
  // A coordinate of one digit ends with its axis. Words extend beyond the extent of the list if its coordinate is not
  // the top digit.
  const inside = coordinates.flatMap((e, k) => (e.kind === 'var' ? [] : [lt(e, over[k]!.extent)]))
  const isFirst = format.inverse(LISTED).some((e) => firstDigit(e) === LISTED)
  if (!isFirst) inside.unshift(lt(listed, format.extent))
  return { axes, inside, held, order: index.flatMap((e) => [...freeVars(e)]) }
}

const LISTED = variable('listed')

/** Returns the top digit of a coordinate, which the extent of the coordinate bounds. */
const firstDigit = (e: Expr): Expr => (e.kind === 'binary' ? firstDigit(e.a) : e)
