/** Ready-made arrays: used without a copy, after every property that kernels rely on has been checked. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import { runSync } from '../../ast/work.ts'
import type { Frame } from '../../columns/column-engine.ts'
import type { Level } from '../../columns/stored-level.ts'
import { arraysOfAxis, hasIndptr, isPadded, parentOf, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { FormatInstance, Table } from '../../ir/formats/format.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { MASK_BITS, wordsFor } from '../../ir/values/packed-fields.ts'
import { bindLevel } from '../../levels/index.ts'
import { checkLevelProperty } from '../assembly/level-property-checks.ts'
import type { AxisSizes } from '../build-storage.ts'
import { HOST } from '../engines/host/engine.ts'
import { entriesOf, isExact, type StoredLevels } from '../entries/entry-enumeration.ts'
import type { Inverse } from '../remapping/inverse-remapping.ts'
import { extentOf, makeStorage, markPadding, paddedPositions, type Storage, treesOf } from '../storage.ts'
import { checkValueArray, filledArray, type StoredTensor, type ValueArray } from '../tensor.ts'
import { checkElements } from './elements.ts'

export interface ValidateOptions {
  /** The name of the input, for messages about its values. */
  readonly name?: string | undefined
  /** The value of coordinates that are not stored; default 0. */
  readonly fill?: number | undefined
  /** True for a part of a tensor in a format: duplicates are then checked on the tensor's axes (`checkDisjoint`). */
  readonly part?: boolean | undefined
}

/**
 * Binds arrays to the axes of a buffer without copying them. The `indptr` of a root may be left out.
 *
 * @throws SptError `bind/shape`, `bind/missing-array`, `bind/extra-array`, `bind/array-type`, `bind/values-length`,
 * `bind/value-type`, `bind/too-large`, `bind/extent`, `bind/axis-order`, `bind/branching`, `bind/width`, and the errors of
 * levels: `bind/indptr-…`, `bind/indices-length`, `bind/index-range`, `bind/lengths`, `bind/unsorted`, `bind/duplicate`,
 * `bind/padding`, `bind/mask-…`, `bind/starts-length`, `bind/runs`
 */
export function validateStored(
  axes: readonly StoredAxis[],
  { extents, widths, paddings }: AxisSizes,
  tensor: StoredTensor,
  options: ValidateOptions = {},
): Storage {
  // Rejects axes out of order before levels are bound to their parents.
  treesOf(axes)
  checkShape(axes, extents, tensor.shape)
  checkNames(axes, tensor.arrays)
  const levels = new Map<string, Level>()
  const padding = new Map<string, Uint8Array | null>()
  for (const axis of axes) {
    const parent = parentOf(axis)
    const parentPadding = (parent !== null && padding.get(parent)) || null
    const level = bindLevel(
      axis,
      extentOf(extents, axis.name),
      parent === null ? null : levels.get(parent)!,
      tensor.arrays[axis.name] ?? {},
      { width: widths?.get(axis.name), padding: paddings?.get(axis.name) },
      parentPadding,
    )
    levels.set(axis.name, level)
    padding.set(axis.name, markPadding(level, parentPadding))
  }
  const storage = makeStorage(axes, levels)
  if (tensor.values) checkValues(storage, tensor.values, tensor.dtype, options.name)
  if (!options.part) checkElements(storage, tensor, options)
  return storage
}

/** The values of a validated tensor; for a pattern, 1 at stored elements and `fill` in padding. */
export function storedValues(storage: Storage, tensor: StoredTensor, fill: number): ValueArray {
  if (tensor.values) return tensor.values
  const paddedAxis = storage.axes.find(isPadded)
  if (paddedAxis)
    failWith(
      'bind/padding-values',
      `axis ${paddedAxis.name} is padded with a coordinate, and the arrays have no values that mark padding`,
      { expected: 'values: the fill value in padding' },
    )
  const ones = filledArray(tensor.dtype, storage.size, 1)
  const [fillValue] = filledArray(tensor.dtype, 1, fill)
  let size = storage.size
  for (const tree of storage.trees) {
    const last = tree.at(-1)!
    size = last.positions === 0 ? 0 : size / last.positions
    const padding = paddedPositions(tree).at(-1)
    if (!padding) continue
    for (let k = 0; k < ones.length; k++)
      if (padding[Math.floor(k / size) % last.positions] === 1) ones[k] = fillValue!
  }
  return ones
}

function checkShape(
  axes: readonly StoredAxis[],
  extents: ReadonlyMap<string, number>,
  shape: readonly number[],
): void {
  const expected = axes.map((a) => extentOf(extents, a.name))
  if (shape.length === expected.length && shape.every((n, k) => n === expected[k])) return
  failWith(
    'bind/shape',
    `a tensor of shape [${shape.join(', ')}] is bound to axes [${axes.map((a) => a.name).join(', ')}]`,
    { expected: `the shape [${expected.join(', ')}]`, hint: 'bind other sizes, or another tensor' },
  )
}

function checkNames(axes: readonly StoredAxis[], arrays: StoredTensor['arrays']): void {
  for (const [name, axisArrays] of Object.entries(arrays)) {
    const axis = axes.find((a) => a.name === name)
    if (!axis)
      failWith('bind/extra-array', `arrays for ${name}, which is not an axis of the buffer`, {
        lookup: { name, candidates: axes.map((a) => a.name) },
        expected: `arrays for some of ${axes.map((a) => a.name).join(', ')}`,
        hint: 'name the arrays by the axis they belong to',
      })
    const own = arraysOfAxis(axis)
    const extra = LEVEL_ARRAYS.filter((a) => axisArrays[a] && !own.includes(a))
    if (extra.length > 0)
      failWith('bind/extra-array', `axis ${name} is ${axis.kind} and has no ${extra.join(' and no ')}`, {
        expected: own.length > 0 ? own.join(' and ') : 'no arrays',
        hint: 'leave the array out, or declare the axis with the kind that the arrays have',
      })
  }
}

function checkValues(storage: Storage, values: ValueArray, dtype: Dtype, name: string | undefined): void {
  checkValueArray(values, dtype)
  if (values.length === storage.size) return
  const leaves = storage.trees.map((t) => t.at(-1)!)
  const sparseAxis = leaves.find((l) => hasIndptr(l.axis))?.axis.name
  const parts = leaves.map((l) => `${l.positions} of ${l.axis.name}`)
  failWith(
    'bind/values-length',
    `${name === undefined ? '' : `${name} has `}${values.length} values for ${storage.size} positions (${parts.join(' × ')})`,
    {
      expected: `${storage.size} values`,
      hint: `give a value for each position, padding included${sparseAxis ? `; their number is the last offset (indptr) of ${sparseAxis}` : ''}`,
    },
  )
}

// Tables given with ready-made arrays: permutations and lists that inverse maps load, and masks.

/** The permutation of a sort has each coordinate once, then fill values. @throws `bind/missing-table`, `bind/table` */
export function checkPermutation(
  table: Table,
  values: Int32Array | undefined,
  sizes: ReadonlyMap<string, number>,
): Int32Array {
  const { name } = table
  const n = Math.max(0, evaluate(table.fill, sizes))
  const length = Math.max(0, evaluate(table.length, sizes))
  if (!values)
    return failWith(
      'bind/missing-table',
      `ready-made parts come without the order that goes with them, ${name}`,
      { expected: `an Int32Array of ${length} places: a permutation`, hint: `give ${name} with the parts` },
    )
  const seen = new Uint8Array(n)
  for (let p = 0; p < values.length; p++) {
    const c = values[p]!
    // Places beyond the extent are padding.
    if (p >= n ? c === n : c >= 0 && c < n && seen[c] === 0) {
      if (c < n) seen[c] = 1
      continue
    }
    failWith('bind/table', `place ${p} of ${name} is ${c}`, {
      expected: p >= n ? `${n}, which is padding` : `each of 0 to ${n - 1} once`,
      hint: 'give the coordinate of each rank',
    })
  }
  if (values.length !== length)
    failWith('bind/table', `${name} has ${values.length} places`, {
      expected: `${length} places`,
      hint: 'give the coordinate of each rank, and the extent for the others',
    })
  return values
}

/**
 * Validates lists that are given with ready-made arrays, as levels under their ancestor axes. @throws SptError
 * `bind/missing-table`, `format/claim`, and as `validateStored`
 */
export function checkLists(
  { lists, tables }: FormatInstance,
  { levels, trees }: Storage,
  arrays: ReadonlyMap<string, Int32Array>,
  sizes: ReadonlyMap<string, number>,
): void {
  for (const { axis, under } of lists) {
    const { name, fill, length } = tables.find((t) => t.name === axis.name)!
    const innermost = under.at(-1)!
    const parent = levels.get(innermost)!
    const width = Math.max(0, evaluate(length, sizes))
    const indices = arrays.get(name)
    if (!indices)
      failWith('bind/missing-table', `ready-made parts come without the list that goes with them, ${name}`, {
        expected: `an Int32Array of ${parent.positions * width} coordinates, ${width} for each position of ${innermost}`,
        hint: `give ${name} with the parts`,
      })
    const tree = trees.find((t) => t.includes(parent))!
    const chain = tree.slice(0, tree.indexOf(parent) + 1)
    const padding = paddedPositions(chain).at(-1) ?? null
    const level = bindLevel(axis, Math.max(0, evaluate(fill, sizes)), parent, { indices }, { width }, padding)
    if (axis.compact) runSync(checkLevelProperty(HOST, [...chain, level], 'compact'))
  }
}

/** A mask has one bit per position on its axes, in whole words. @throws SptError `bind/missing-table`, `bind/table` */
export function checkMask(
  name: string,
  axes: readonly string[],
  { trees }: Storage,
  words: Int32Array | undefined,
): Int32Array {
  const innermost = trees.flatMap((tree) => tree.findLast((l) => axes.includes(l.axis.name)) ?? [])
  const positions = innermost.reduce((n, l) => n * l.positions, 1)
  const length = wordsFor(positions, MASK_BITS)
  if (words?.length === length) return words
  return failWith(
    words ? 'bind/table' : 'bind/missing-table',
    words
      ? `${name} has ${words.length} words`
      : `ready-made parts come without the mask that goes with them, ${name}`,
    {
      expected: `an Int32Array of ${length} words: a bit for each of ${positions} positions, the first in the lowest`,
      hint: words ? 'give a bit for each position of the values' : `give ${name} with the parts`,
    },
  )
}

/**
 * Kernels visit the positions of levels that distinguish elements from padding; a mask must agree with them. The first
 * `order` dimensions of `inverse` are the tensor's. @throws SptError `bind/table`
 */
export function checkMaskAgrees(
  name: string,
  stored: StoredLevels<TypedArray>,
  inverse: Inverse<TypedArray>,
  { filled, order }: { readonly filled: readonly StoredAxis[]; readonly order: number },
): void {
  if (!stored.mask || !isExact(stored.trees, filled)) return
  const entries = (mask: StoredLevels<TypedArray>['mask']) =>
    runSync(entriesOf<TypedArray>(HOST, { ...stored, drop: null, mask: mask ?? null }, inverse))
  const masked = entries(stored.mask)
  const unmasked = entries(null)
  if (masked.n === unmasked.n) return
  const positionOf = (frame: Frame<TypedArray>, e: number): number => frame.entry?.[e] ?? e
  let e = 0
  while (e < masked.n && positionOf(masked, e) === positionOf(unmasked, e)) e++
  const point = inverse.dims.slice(0, order).map((d) => unmasked.column(d.name)![e])
  failWith(
    'bind/table',
    `${name} has no bit for (${point.join(', ')}), which is stored at position ${positionOf(unmasked, e)}`,
    {
      expected: 'a bit for every element: the coordinates that axes store are those of elements',
      hint: 'give it a bit, or leave the coordinate out of the arrays',
    },
  )
}
