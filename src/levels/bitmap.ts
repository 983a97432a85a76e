/**
 * Bitmap levels: each word of the mask holds 32 coordinates of one parent position, lowest bit first. The position of a coordinate is its
 * rank: the number of set bits below it, plus the bits of earlier parents.
 */
import { failWith, invariant } from '../ast/diagnostics/diagnostic.ts'
import { type AxisOfKind, arrayName } from '../ir/coordinates/axis.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { add, call, div, int, load, lt, max, min, mul, sub, variable } from '../ir/expressions/expr.ts'
import { bitCount, MASK_BITS, wordsFor } from '../ir/values/packed-fields.ts'
import { checkIndptr, required } from './bind.ts'
import { bindTable, offsetSegment, offsetsArray } from './segments.ts'
import { type LevelFormat, makeLevel, rangeChecks, runStarts } from './types.ts'

type MaskedAxis = AxisOfKind<'bitmap'>

export const BITMAP: LevelFormat<MaskedAxis> = {
  searchable: false,
  order: 'unless ranked',
  inline: true,
  indexArrays: (axis, levels) => [
    offsetsArray(axis, levels),
    { array: 'mask', length: mul(levels.positions(axis.parent), int(wordsOf(axis))) },
  ],
  slots: ({ extent }) => extent,
  segment: (axis, parent, end, levels) => ({
    ...offsetSegment(axis, parent, end, levels),
    length: axis.extent,
  }),
  entry(axis, { parent, base }, relative) {
    invariant(parent, `axis ${axis.name} entered without its parent`)
    const offset = add(base, rankOf(axis, parent, relative))
    return { offset, coordinate: relative, guards: [isSet(axis, parent, relative)] }
  },
  locate(axis, { coordinate, above, facts, levels }) {
    invariant(above, `axis ${axis.name} is looked up under its parent`)
    const parent = above.at
    // Nonnegative after the range checks; `max` keeps flooring out of the index of the word, because LLVM of CUDA 13.0 does not
    // terminate on it in loops.
    const at = wordsOf(axis) === 1 || facts.nonNegative(coordinate) ? coordinate : max(coordinate, int(0))
    const { base } = offsetSegment(axis, parent, null, levels)
    return {
      position: { at: add(base, rankOf(axis, parent, at)), end: null },
      present: [...rangeChecks(facts, coordinate, axis.extent), isSet(axis, parent, at)],
    }
  },
  *assemble({ frame, d, parent, starts }) {
    const { axis, coordinate, extent } = d
    invariant(parent.position, `${axis.name} has a parent`)
    const name = `@at ${axis.name}`
    const { mask, indptr, positions } = yield* frame.engine.bitmap(
      frame,
      name,
      runStarts(d, parent, starts),
      {
        parent: parent.position,
        parents: parent.positions,
        coordinate,
        words: wordsFor(extent, MASK_BITS),
        label: axis.name,
      },
    )
    return { level: makeLevel(d, positions, { indptr, mask }), position: variable(name) }
  },
  assembleRanked: null,
  ancestor(frame, level, position, parents, allocated) {
    const bits = frame.engine.bitsOf(level, parents)
    allocated.push(bits.parents, bits.coordinates)
    const at = (kind: string, column: typeof bits.parents): Expr =>
      load(bindTable(frame, `@${kind} ${level.axis.name}`, column), [position])
    return { parent: at('parents', bits.parents), coordinate: at('indices', bits.coordinates) }
  },
  bind(axis, { extent, parents, arrays, make }) {
    const indptr = required(axis, 'indptr', arrays.indptr)
    checkIndptr(axis, indptr, parents, null)
    checkMask(axis, required(axis, 'mask', arrays.mask), indptr, extent, parents)
    return make(indptr[parents]!, { indptr })
  },
}

function wordsOf(axis: MaskedAxis): number {
  invariant(axis.extent.kind === 'const', `the extent of the bitmap ${axis.name} is a constant`)
  return Math.ceil(axis.extent.value / 32)
}

const wordAt = (axis: MaskedAxis, parent: Expr, word: Expr): Expr =>
  load(arrayName(axis.name, 'mask'), [add(mul(parent, int(wordsOf(axis))), word)])

/** Shifts a word left so that the bit of the coordinate is the highest. */
function upTo(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  const one = wordsOf(axis) === 1
  const word = wordAt(axis, parent, one ? int(0) : div(coordinate, int(32)))
  // Shift counts are taken modulo 32.
  return call('shift_left', [word, sub(int(31), coordinate)])
}

/** Tests the bit of a coordinate, which is the sign after the shift. */
const isSet = (axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr =>
  lt(upTo(axis, parent, coordinate), int(0))

/** The number of stored coordinates under this parent position that are smaller. */
function rankOf(axis: MaskedAxis, parent: Expr, coordinate: Expr): Expr {
  let rank = call('popcount', [call('shift_left', [upTo(axis, parent, coordinate), int(1)])])
  for (let w = wordsOf(axis) - 2; w >= 0; w--) {
    // 1 for words below the coordinate's word, otherwise 0. Arithmetic is used, because branches would multiply with the number of
    // words.
    const after = min(max(sub(div(coordinate, int(32)), int(w)), int(0)), int(1))
    rank = add(rank, mul(call('popcount', [wordAt(axis, parent, int(w))]), after))
  }
  return rank
}

/** Checks the length of a mask, that no bit from `extent` on is set, and that indptr counts the bits. */
function checkMask(
  axis: MaskedAxis,
  mask: Int32Array,
  indptr: Int32Array,
  extent: number,
  parents: number,
): void {
  const words = wordsFor(extent, MASK_BITS)
  if (mask.length !== parents * words)
    failWith(
      'bind/mask-length',
      `mask of axis ${axis.name} has ${mask.length} words for ${parents} positions of ${axis.parent}`,
      {
        expected: `${parents * words}: ${words} of 32 bits for each`,
        hint: 'every parent position has a whole number of words',
      },
    )
  const tailBits = extent & 31
  for (let p = 0; p < parents; p++) {
    let bits = 0
    for (let w = p * words; w < (p + 1) * words; w++) bits += bitCount(mask[w]!)
    if (tailBits !== 0 && mask[(p + 1) * words - 1]! >>> tailBits !== 0)
      failWith(
        'bind/mask-range',
        `mask of axis ${axis.name} has bits from ${extent} on at position ${p} of ${axis.parent}, and the extent is ${extent}`,
        { expected: `bits 0 to ${extent - 1}`, hint: 'clear the unused bits of the last word' },
      )
    if (bits !== indptr[p + 1]! - indptr[p]!)
      failWith(
        'bind/mask-count',
        `mask of axis ${axis.name} has ${bits} bits at position ${p} of ${axis.parent}, where indptr counts ${indptr[p + 1]! - indptr[p]!}`,
        {
          expected: 'as many bits as positions',
          hint: 'indptr holds running sums of the bits of each parent position',
        },
      )
  }
}
