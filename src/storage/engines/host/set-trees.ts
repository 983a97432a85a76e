/** Sets of coordinates as trees, in which queries search. */
import { compressedAxis, denseAxis, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import { int } from '../../../ir/expressions/expr.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import { buildStorage } from '../../build-storage.ts'
import type { SetTrees } from '../../convert.ts'
import type { FormatOperands } from '../../format-operands.ts'

/**
 * The format's sets as trees: segments under each coordinate of the first dimension, then level by level. Coordinates
 * outside the tensor are omitted. Other formats may use sets over other dimensions.
 */
export function setTrees(
  given: FormatOperands,
  to: Pick<Instance, 'over' | 'given'>,
  shape: readonly number[],
): SetTrees {
  const out = new Map<string, { readonly indptr: Int32Array; readonly indices: Int32Array }[]>()
  const { over } = to
  for (const { name } of to.given) {
    const coords = given.sets.get(name)
    if (!coords) continue
    const axes = over.map((a, k): StoredAxis => {
      const extent = int(shape[k]!)
      return k === 0 && over.length > 1
        ? denseAxis(a.name, extent)
        : compressedAxis(a.name, over[k - 1]?.name ?? null, extent)
    })
    const inside = (e: number): boolean => coords.every((c, k) => c[e]! >= 0 && c[e]! < shape[k]!)
    const { levels } = buildStorage({
      axes,
      extents: new Map(over.map((a, k) => [a.name, shape[k]!])),
      coords: coords.map((c) => c.filter((_, e) => inside(e))),
    })
    out.set(
      name,
      axes.flatMap((a) => {
        const { indptr, indices } = levels.get(a.name)!
        return indptr && indices ? [{ indptr, indices }] : []
      }),
    )
  }
  return out
}
