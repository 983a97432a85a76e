/** Validation of one level's ready-made arrays; each failure names the axis, the position and the value. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { MAX_POSITIONS, rejectCount } from '../../columns/allocate.ts'
import { bitCount } from '../../columns/bits.ts'
import {
  hasIndices,
  hasIndptr,
  hasMask,
  indexBits,
  isDense,
  type MaskedAxis,
  type PaddedAxis,
  parentOf,
  type StoredAxis,
} from '../../ir/coordinates/axis.ts'
import { checkFields, wordsFor } from '../../ir/values/packed-fields.ts'
import { coordinatesOf, type Level, segment, wordsOf } from '../storage.ts'
import { checkIndices } from './validate-indices.ts'

export interface IndexArrays {
  readonly indptr?: Int32Array
  readonly indices?: Int32Array
  readonly mask?: Int32Array
}

/** Known properties of a level of fixed width. */
export interface FixedLevel {
  readonly width?: number | undefined
  /** The coordinate that pads it, if it is one of the tensor. */
  readonly padding?: number | undefined
}

/**
 * A level over validated arrays. `parent` is `null` for a root; `parentPadding` marks the parent's padding
 * positions.
 */
export function bindLevel(
  axis: StoredAxis,
  extent: number,
  parent: Level | null,
  arrays: IndexArrays,
  fixed: FixedLevel,
  parentPadding: Uint8Array | null,
): Level {
  const parents = parent?.positions ?? 1
  const bits = indexBits(axis)
  checkFields(axis, extent)
  const make = (positions: number, width: number | null = null, indptr: Int32Array | null = null): Level => {
    if (positions > MAX_POSITIONS) rejectCount(positions, `positions of axis ${axis.name}`)
    return {
      axis,
      extent,
      width,
      positions,
      indptr,
      indices: arrays.indices ?? null,
      ...(bits < 32 && { bits }),
      mask: arrays.mask ?? null,
    }
  }
  if (isDense(axis)) return make(parents * extent)
  const indices = hasIndices(axis) ? required(axis, 'indices', arrays.indices) : null
  let level: Level
  if (hasIndptr(axis)) {
    const isList = bits === 32 && indices !== null && axis.parent === null && arrays.indptr === undefined
    const indptr = isList ? Int32Array.of(0, indices.length) : required(axis, 'indptr', arrays.indptr)
    checkIndptr(axis, indptr, parents, bits < 32 ? null : (indices?.length ?? null))
    if (indices && bits < 32) checkWords(axis, indices, indptr[parents]!)
    if (hasMask(axis)) checkMask(axis, required(axis, 'mask', arrays.mask), indptr, extent, parents)
    else if (!indices) checkLengths(axis.name, axis.parent, indptr, extent)
    level = make(indptr[parents]!, null, indptr)
  } else if (bits < 32) {
    const width = packedWidth(axis, parents, fixed.width)
    checkWords(axis, indices!, parents * width)
    level = make(parents * width, width)
  } else level = make(indices!.length, checkWidth(axis, indices!.length, parents, fixed.width))
  if (hasIndices(axis)) checkIndices(axis, level, parents, fixed.padding)
  checkUnderPadding(level, parentPadding)
  return level
}

function required(axis: StoredAxis, arrayName: keyof IndexArrays, array: Int32Array | undefined): Int32Array {
  if (array === undefined)
    fail({
      code: 'bind/missing-array',
      message: `axis ${axis.name} is ${axis.kind} and needs ${arrayName}`,
      expected: `arrays.${axis.name}.${arrayName}, an Int32Array`,
      hint: 'bind the array, or bind coordinates and let the structure be built',
    })
  if (!(array instanceof Int32Array))
    fail({
      code: 'bind/array-type',
      message: `${arrayName} of axis ${axis.name} is ${Object.prototype.toString.call(array).slice(8, -1)}`,
      expected: 'Int32Array',
      hint: 'copy the array with Int32Array.from; positions above 2^31 - 1 cannot be bound',
    })
  return array
}

function checkIndptr(axis: StoredAxis, indptr: Int32Array, parents: number, count: number | null): void {
  if (indptr.length !== parents + 1)
    fail({
      code: 'bind/indptr-length',
      message: `indptr of axis ${axis.name} has ${indptr.length} elements`,
      expected: `${parents + 1}: one more than the positions of its parent`,
      hint: 'check the sizes and the parent of the axis',
    })
  if (indptr[0] !== 0)
    fail({
      code: 'bind/indptr-start',
      message: `indptr of axis ${axis.name} starts at ${indptr[0]}`,
      expected: '0',
      hint: 'subtract the first element from every element (1-based arrays start at 1)',
    })
  for (let p = 0; p < parents; p++)
    if (indptr[p + 1]! < indptr[p]!)
      fail({
        code: 'bind/indptr-order',
        message: `indptr of axis ${axis.name} falls from ${indptr[p]} to ${indptr[p + 1]} at position ${p + 1}`,
        expected: 'elements that never fall',
        hint:
          indptr[p + 1]! < 0
            ? 'a negative element is a sum that overflowed 32 bits: the tensor is too large'
            : 'indptr holds running sums of segment lengths',
      })
  if (count !== null && indptr[parents] !== count)
    fail({
      code: 'bind/indptr-end',
      message: `indptr of axis ${axis.name} ends at ${indptr[parents]}, and there are ${count} indices`,
      expected: `${count}`,
      hint: 'the last element counts the indices; cut unused tails off',
    })
}

function checkLengths(name: string, parent: string | null, indptr: Int32Array, extent: number): void {
  for (let p = 0; p + 1 < indptr.length; p++)
    if (indptr[p + 1]! - indptr[p]! > extent)
      fail({
        code: 'bind/lengths',
        message: `axis ${name} has the length ${indptr[p + 1]! - indptr[p]!} at position ${p} of ${parent}`,
        expected: `at most ${extent}`,
        hint: 'bind a larger size',
      })
}

function checkWidth(axis: PaddedAxis, count: number, parents: number, declared: number | undefined): number {
  const width = declared ?? (parents === 0 ? 0 : count / parents)
  if (Number.isInteger(width) && width >= 0 && width * parents === count) return width
  return fail({
    code: declared === undefined ? 'bind/indices-length' : 'bind/width',
    message: `axis ${axis.name} has ${count} indices for ${parents} positions of ${axis.parent}`,
    expected:
      declared === undefined
        ? `a multiple of ${parents}`
        : `${declared * parents}: the width ${declared} each`,
    hint: 'every segment has the same width; fill short ones with the extent',
  })
}

/**
 * The width of a packed level, which must be given: the number of words only bounds it. @throws SptError `bind/width`
 */
function packedWidth(axis: PaddedAxis, parents: number, declared: number | undefined): number {
  if (declared !== undefined && Number.isInteger(declared) && declared >= 0) return declared
  if (parents === 0) return 0
  return fail({
    code: 'bind/width',
    message: `axis ${axis.name} is packed, and the width is not known`,
    expected: 'a value for the width',
    hint: 'bind the size that the width is declared with declared with',
  })
}

function checkWords(axis: StoredAxis, words: Int32Array, positions: number): void {
  const bits = indexBits(axis)
  const expected = wordsFor(positions, bits)
  if (words.length !== expected)
    fail({
      code: 'bind/indices-length',
      message: `axis ${axis.name} has ${words.length} words of indices for ${positions} positions of ${bits} bits`,
      expected: `${expected}: ${32 / bits} positions in each`,
      hint: 'packIndices(indices, bits) packs coordinates',
    })
}

/**
 * Checks that descendants of padding are padding: their values would belong to no coordinate. @throws SptError
 * `bind/padding`
 */
function checkUnderPadding(level: Level, parentPadding: Uint8Array | null): void {
  if (!parentPadding) return
  const coordinates = coordinatesOf(level)
  for (let p = 0; p < parentPadding.length; p++) {
    if (parentPadding[p] === 0) continue
    const [lo, hi] = segment(level, p)
    for (let q = lo; q < hi; q++)
      if (coordinates?.[q] !== level.extent || level.width === null)
        fail({
          code: 'bind/padding',
          message: `axis ${level.axis.name} stores position ${q} under the padding at position ${p} of ${parentOf(level.axis)}`,
          expected: 'an empty segment, or padding',
          hint: 'a padded position has no children',
        })
  }
}

/** Checks the length of a mask, that no bit from `extent` on is set, and that indptr counts the bits. */
function checkMask(
  axis: MaskedAxis,
  mask: Int32Array,
  indptr: Int32Array,
  extent: number,
  parents: number,
): void {
  const words = wordsOf(extent)
  if (mask.length !== parents * words)
    fail({
      code: 'bind/mask-length',
      message: `mask of axis ${axis.name} has ${mask.length} words for ${parents} positions of ${axis.parent}`,
      expected: `${parents * words}: ${words} of 32 bits for each`,
      hint: 'every parent position has a whole number of words',
    })
  const tailBits = extent & 31
  for (let p = 0; p < parents; p++) {
    let bits = 0
    for (let w = p * words; w < (p + 1) * words; w++) bits += bitCount(mask[w]!)
    if (tailBits !== 0 && mask[(p + 1) * words - 1]! >>> tailBits !== 0)
      fail({
        code: 'bind/mask-range',
        message: `mask of axis ${axis.name} has bits from ${extent} on at position ${p} of ${axis.parent}, and the extent is ${extent}`,
        expected: `bits 0 to ${extent - 1}`,
        hint: 'clear the unused bits of the last word',
      })
    if (bits !== indptr[p + 1]! - indptr[p]!)
      fail({
        code: 'bind/mask-count',
        message: `mask of axis ${axis.name} has ${bits} bits at position ${p} of ${axis.parent}, where indptr counts ${indptr[p + 1]! - indptr[p]!}`,
        expected: 'as many bits as positions',
        hint: 'indptr holds running sums of the bits of each parent position',
      })
  }
}
