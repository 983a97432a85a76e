/** The buffers of a kernel over positions: declared buffers, tables and masks of formats, and index arrays of axes. */
import { arrayName, isStored } from '../../ir/coordinates/axis.ts'
import type { Buffer1, Kernel1 } from '../../ir/coordinates/stage1.ts'
import { readsIn } from '../../ir/coordinates/stage1-tree.ts'
import { type Expr, int } from '../../ir/expressions/expr.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import { MASK_BITS } from '../../ir/values/packed-fields.ts'
import { formatOf } from '../../levels/index.ts'
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
  for (const a of kernel.axes) {
    if (!isStored(a)) continue
    for (const { array, length, values } of formatOf(a).indexArrays(a, levels))
      out.push({
        ...values,
        name: arrayName(a.name, array),
        dtype: 'i32',
        scope: 'global',
        role: 'index',
        shape: [length],
        fill: 0,
        accumulate: 'i32',
      })
  }
  return out
}
