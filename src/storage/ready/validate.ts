/** Ready-made arrays: used without a copy, after every property that kernels rely on has been checked. */

import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { LEVEL_ARRAYS } from '../../ast/nodes/axis-kinds.ts'
import type { Level } from '../../columns/stored-level.ts'
import { arraysOfAxis, hasIndptr, isPadded, parentOf, type StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { bindLevel } from '../../levels/index.ts'
import { chainOf, markPadding, paddedPositions } from '../assembly/padding-positions.ts'
import { extentOf, makeStorage, type Storage, treesOf } from '../storage.ts'
import type { StoredTensor, ValueArray } from '../tensor.ts'
import { checkValueArray, filledArray } from '../values.ts'
import { checkElements } from './elements.ts'

export interface ValidateOptions {
  /** The name of the input, for messages about its values. */
  readonly name?: string | undefined
  /** Given widths of sparse_fixed axes; others are derived from the length of `indices`. */
  readonly widths?: ReadonlyMap<string, number> | undefined
  /** Padding coordinates of the axes that declare one. */
  readonly paddings?: ReadonlyMap<string, number> | undefined
  /** The buffer's type, if it must match. */
  readonly dtype?: Dtype | undefined
  /** The value of coordinates that are not stored; default 0. */
  readonly fill?: number | undefined
  /** True for a part of a tensor in a format: duplicates are then checked on the tensor's axes (`checkDisjoint`). */
  readonly part?: boolean | undefined
}

/**
 * Binds arrays to the axes of a buffer without copying them. The `indptr` of a root may be left out.
 *
 * @throws SptError `bind/shape`, `bind/missing-array`, `bind/extra-array`, `bind/array-type`, `bind/indptr-length`,
 * `bind/indptr-start`, `bind/indptr-order`, `bind/indptr-end`, `bind/lengths`, `bind/indices-length`,
 * `bind/index-range`, `bind/unsorted`, `bind/duplicate`, `bind/padding`, `bind/mask-length`, `bind/mask-range`,
 * `bind/mask-count`, `bind/starts-length`, `bind/runs`, `bind/width`, `bind/values-length`, `bind/value-type`, `bind/too-large`, `bind/extent`, `bind/axis-order`, `bind/branching`
 */
export function validateStored(
  axes: readonly StoredAxis[],
  extents: ReadonlyMap<string, number>,
  tensor: StoredTensor,
  options: ValidateOptions = {},
): Storage {
  const trees = treesOf(axes)
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
      { width: options.widths?.get(axis.name), padding: options.paddings?.get(axis.name) },
      parentPadding,
    )
    levels.set(axis.name, level)
    padding.set(axis.name, markPadding(level, parentPadding))
  }
  const storage = makeStorage(axes, trees, levels, null)
  if (options.dtype !== undefined && options.dtype !== tensor.dtype)
    fail({
      code: 'bind/value-type',
      message: `the values are ${tensor.dtype}, the buffer is ${options.dtype}`,
      expected: `values of type ${options.dtype}`,
      hint: 'convert the values, or declare the buffer with their type',
    })
  if (tensor.values) checkValues(storage, tensor.values, tensor.dtype, options.name)
  if (!options.part) checkElements(storage, tensor, options)
  return storage
}

/** The values of a validated tensor; for a pattern, 1 at stored elements and `fill` in padding. */
export function storedValues(storage: Storage, tensor: StoredTensor, fill: number): ValueArray {
  if (tensor.values) return tensor.values
  const paddedAxis = storage.axes.find(isPadded)
  if (paddedAxis)
    fail({
      code: 'bind/padding-values',
      message: `axis ${paddedAxis.name} is padded with a coordinate, and the arrays have no values that mark padding`,
      expected: 'values: the fill value in padding',
    })
  const ones = filledArray(tensor.dtype, storage.size, 1)
  const [fillValue] = filledArray(tensor.dtype, 1, fill)
  let size = storage.size
  for (const tree of storage.trees) {
    const last = storage.levels.get(tree[tree.length - 1]!)!
    size = last.positions === 0 ? 0 : size / last.positions
    const padding = paddedPositions(chainOf(storage, tree)).at(-1)
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
  fail({
    code: 'bind/shape',
    message: `a tensor of shape [${shape.join(', ')}] is bound to axes [${axes.map((a) => a.name).join(', ')}]`,
    expected: `the shape [${expected.join(', ')}]`,
    hint: 'bind other sizes, or another tensor',
  })
}

function checkNames(axes: readonly StoredAxis[], arrays: StoredTensor['arrays']): void {
  for (const [name, axisArrays] of Object.entries(arrays)) {
    const axis = axes.find((a) => a.name === name)
    if (!axis)
      fail({
        code: 'bind/extra-array',
        message: `arrays for ${name}, which is not an axis of the buffer`,
        lookup: { name, candidates: axes.map((a) => a.name) },
        expected: `arrays for some of ${axes.map((a) => a.name).join(', ')}`,
        hint: 'name the arrays by the axis they belong to',
      })
    const own = arraysOfAxis(axis)
    const extra = LEVEL_ARRAYS.filter((a) => axisArrays[a] && !own.includes(a))
    if (extra.length > 0)
      fail({
        code: 'bind/extra-array',
        message: `axis ${name} is ${axis.kind} and has no ${extra.join(' and no ')}`,
        expected: own.length > 0 ? own.join(' and ') : 'no arrays',
        hint: 'leave the array out, or declare the axis with the kind that the arrays have',
      })
  }
}

function checkValues(storage: Storage, values: ValueArray, dtype: Dtype, name: string | undefined): void {
  checkValueArray(values, dtype)
  if (values.length === storage.size) return
  const sparseAxis = storage.trees.map((t) => t.at(-1)!).find((a) => hasIndptr(storage.levels.get(a)!.axis))
  const parts = storage.trees.map((t) => {
    const last = t[t.length - 1]!
    return `${storage.levels.get(last)!.positions} of ${last}`
  })
  fail({
    code: 'bind/values-length',
    message: `${name === undefined ? '' : `${name} has `}${values.length} values for ${storage.size} positions (${parts.join(' × ')})`,
    expected: `${storage.size} values`,
    hint: `give a value for each position, padding included${sparseAxis ? `; their number is the last offset (indptr) of ${sparseAxis}` : ''}`,
  })
}
