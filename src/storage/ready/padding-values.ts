/** Values of ready-made arrays at positions that store no element: each must be the fill value, because it would be dropped. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { runSync } from '../../columns/coroutines.ts'
import { hasWidth, isPadded } from '../../ir/coordinates/axis.ts'
import { all, not } from '../../ir/expressions/expr.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { isElement } from '../assembly/packed-indices.ts'
import { HOST } from '../engines/host/engine.ts'
import { type StoredLevels, slotsOf, valueDiffers } from '../entries/entry-enumeration.ts'
import type { Inverse } from '../remapping/inverse-remapping.ts'
import { pointOf } from '../storage.ts'
import { decoder, type ValueArray } from '../tensor.ts'

/**
 * Padding of levels, and coordinates outside of the tensor, have the fill value. Positions that a mask leaves out may have any value.
 * O(positions), or O(1) if every position of the axes stores an element.
 *
 * @param inverse its first `order` dimensions are the tensor's @throws SptError `bind/padding-values`
 */
export function checkPaddingValues(
  name: string | undefined,
  stored: StoredLevels<TypedArray>,
  inverse: Inverse<TypedArray>,
  fill: number,
  order = inverse.dims.length,
): void {
  const { values, dtype, mask, trees } = stored
  const hasPadding = trees.flat().some(({ axis }) => hasWidth(axis) && !isPadded(axis))
  if (!values || !(hasPadding || inverse.exprs.some((e) => e.kind !== 'var'))) return
  const { positions, levelPositions, allocated, dims, held, within } = slotsOf<TypedArray>(
    HOST,
    stored,
    inverse,
  )
  const conditions = [...held, ...within]
  if (conditions.length > 0) {
    const isStored = mask ? [isElement(positions, mask, trees, levelPositions)] : []
    const lost = all([valueDiffers(positions, values, dtype, fill), ...isStored, not(all(conditions))])
    const [at = -1] = runSync(HOST.findFirst(positions, [lost]))

    if (at >= 0) {
      const axes = inverse.dims.slice(0, order)
      const point = runSync(
        HOST.valuesAt(
          positions,
          axes.map((d) => dims.get(d.name)!),
          at,
        ),
      )
      const isOutside = point.some((c, d) => c < 0 || c >= axes[d]!.extent)
      const value = decoder(dtype)?.((values as ValueArray)[at]!) ?? values[at]
      const where = isOutside
        ? `${pointOf(
            axes.map((d) => d.name),
            point,
          )} is outside of the shape [${axes.map((d) => d.extent).join(', ')}]`
        : 'it is padding'
      failWith(
        'bind/padding-values',
        `the value at position ${at}${name === undefined ? '' : ` of ${name}`} is ${value}, and the position stores no element: ${where}`,
        { expected: `${fill}, the fill value`, hint: `set values[${at}] = ${fill}` },
      )
    }
  }
  HOST.release(...allocated)
}
