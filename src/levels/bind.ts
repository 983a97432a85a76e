/** Validation of one level's ready-made arrays; each failure names the axis, the position and the value. */

import { failWith } from '../ast/diagnostics/diagnostic.ts'
import type { LevelArray } from '../ast/nodes/axis-kinds.ts'
import type { Level } from '../columns/stored-level.ts'
import { indexBits, type StoredAxis } from '../ir/coordinates/axis.ts'
import { wordsFor } from '../ir/values/packed-fields.ts'

export type IndexArrays = { readonly [A in LevelArray]?: Int32Array }

/** Known sizes of a level. */
export interface FixedLevel {
  readonly width?: number | undefined
  /** The coordinate that pads it, if it is one of the tensor. */
  readonly padding?: number | undefined
  /** Capacity in positions of a dense level, if it is less than the maximum. */
  readonly capacity?: number | undefined
}

export interface BoundLevel {
  readonly extent: number
  /** Positions of the parent; 1 for a root. */
  readonly parents: number
  readonly arrays: IndexArrays
  readonly fixed: FixedLevel
  /** Bits of each index. */
  readonly bits: number
  readonly make: (positions: number, own?: Partial<Pick<Level, 'width' | 'indptr'>>) => Level
}

export function required(
  axis: StoredAxis,
  arrayName: keyof IndexArrays,
  array: Int32Array | undefined,
): Int32Array {
  if (array === undefined)
    failWith('bind/missing-array', `axis ${axis.name} is ${axis.kind} and needs ${arrayName}`, {
      expected: `arrays.${axis.name}.${arrayName}, an Int32Array`,
      hint: 'bind the array, or bind coordinates and let the structure be built',
    })
  if (!(array instanceof Int32Array))
    failWith(
      'bind/array-type',
      `${arrayName} of axis ${axis.name} is ${Object.prototype.toString.call(array).slice(8, -1)}`,
      {
        expected: 'Int32Array',
        hint: 'copy the array with Int32Array.from; positions above 2^31 - 1 cannot be bound',
      },
    )
  return array
}

export function checkIndptr(
  axis: Pick<StoredAxis, 'name'>,
  indptr: Int32Array,
  parents: number,
  count: number | null,
): void {
  if (indptr.length !== parents + 1)
    failWith('bind/indptr-length', `indptr of axis ${axis.name} has ${indptr.length} elements`, {
      expected: `${parents + 1}: one more than the positions of its parent`,
      hint: 'check the sizes and the parent of the axis',
    })
  if (indptr[0] !== 0)
    failWith('bind/indptr-start', `indptr of axis ${axis.name} starts at ${indptr[0]}`, {
      expected: '0',
      hint: 'subtract the first element from every element (1-based arrays start at 1)',
    })
  for (let p = 0; p < parents; p++)
    if (indptr[p + 1]! < indptr[p]!)
      failWith(
        'bind/indptr-order',
        `indptr of axis ${axis.name} falls from ${indptr[p]} to ${indptr[p + 1]} at position ${p + 1}`,
        {
          expected: 'elements that never fall',
          hint:
            indptr[p + 1]! < 0
              ? 'a negative element is a sum that overflowed 32 bits: the tensor is too large'
              : 'indptr holds running sums of segment lengths',
        },
      )
  if (count !== null && indptr[parents] !== count)
    failWith(
      'bind/indptr-end',
      `indptr of axis ${axis.name} ends at ${indptr[parents]}, and there are ${count} indices`,
      { expected: `${count}`, hint: 'the last element counts the indices; cut unused tails off' },
    )
}

export function checkWords(axis: StoredAxis, words: Int32Array, positions: number): void {
  const bits = indexBits(axis)
  const expected = wordsFor(positions, bits)
  if (words.length !== expected)
    failWith(
      'bind/indices-length',
      `axis ${axis.name} has ${words.length} words of indices for ${positions} positions of ${bits} bits`,
      {
        expected: `${expected}: ${32 / bits} positions in each`,
        hint: 'packIndices(indices, bits) packs coordinates',
      },
    )
}
