/** The buffers of a kernel over positions: declared buffers, tables and masks of formats, and index arrays of axes. */
import {
  countOf,
  hasHoles,
  hasIndices,
  hasIndptr,
  hasMask,
  hasWidth,
  indexBits,
  indicesOf,
  indptrOf,
  isStored,
  maskOf,
  repeatsCoordinates,
} from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { readsIn } from '../../ir/coordinates/stage1-tree.ts'
import { add, type Expr, int, mul, variable } from '../../ir/expressions/expr.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { MASK_BITS } from '../../ir/values/packed-fields.ts'
import { wordsOf } from './bitmap.ts'
import type { Levels } from './level-positions.ts'

/** The length of a table: the extent of its dimension other than 1. */
export const tableLength = (shape: readonly Expr[]): Expr =>
  shape.reduce((a, c) => (a.kind === 'const' && a.value === 1 ? c : a), int(1))

/** Exclusive upper bound on the values of a table; for a permutation, its length. Undefined if unknown. */
export const valuesBelow = (
  b: Pick<Buffer1, 'distinct' | 'below'>,
  shape: readonly Expr[],
): Expr | undefined => (b.distinct ? tableLength(shape) : b.below)

/** Returns the declared buffers of a kernel and the index arrays of its axes. */
export function buffersOf(kernel: Kernel1, levels: Levels): Buffer[] {
  // Masks that no statement reads are omitted.
  const read = new Set(readsIn(kernel.body).map((l) => l.buffer))
  const out: Buffer[] = kernel.buffers.flatMap(
    ({ name, dtype, axes, role, fill, accumulate, ascending, positions, mask, span, ...b }) => {
      if (mask !== undefined && !read.has(name)) return []
      const shape = levels.shape(axes)
      const bits = mask === undefined ? {} : { packed: MASK_BITS }
      const known = { below: valuesBelow(b, shape), ascending, positions, ...bits }
      return { name, dtype, scope: 'global', role, shape, fill, accumulate, span, ...known }
    },
  )
  const index = (
    name: string,
    length: Expr,
    values: Pick<Buffer, 'below' | 'ascending' | 'packed' | 'positions'> = {},
  ): Buffer => ({
    ...values,
    name,
    dtype: 'i32',
    scope: 'global',
    role: 'index',
    shape: [length],
    fill: 0,
    accumulate: 'i32',
  })
  for (const a of kernel.axes) {
    if (!isStored(a)) continue
    if (hasIndptr(a))
      out.push(
        index(indptrOf(a.name), add(a.parent === null ? int(1) : levels.positions(a.parent), int(1)), {
          positions: variable(countOf(a.name)),
        }),
      )
    if (hasMask(a)) out.push(index(maskOf(a.name), mul(levels.positions(a.parent), int(wordsOf(a)))))
    if (hasIndices(a)) {
      const below = hasHoles(a) ? {} : { below: a.extent }
      const packed = a.packed ? { packed: indexBits(a) } : {}
      const width = hasWidth(a) && !hasHoles(a) && !repeatsCoordinates(a) && a.ordered ? a.width : undefined
      const ascending = width?.kind === 'const' ? { ascending: width.value } : {}
      out.push(index(indicesOf(a.name), levels.positions(a.name), { ...below, ...ascending, ...packed }))
    }
  }
  return out
}
