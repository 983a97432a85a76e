/** The entries of one part of a tensor in a format. */

import type { Column, Engine, Frame } from '../../columns/column-engine.ts'
import type { Coroutine } from '../../columns/coroutines.ts'
import type { Level } from '../../columns/stored-level.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import { fullAxes } from '../../ir/formats/format.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { type FormatOperands, withSegments } from '../format-operands.ts'
import { type Inverse, inverseTables } from '../remapping/inverse-remapping.ts'
import type { Context, Part } from '../remapping/part-assembly.ts'
import { treesOf } from '../storage.ts'
import { entriesOf, isExact, type StoredLevels } from './entry-enumeration.ts'

/** Properties of a part that its tensor determines. */
interface TensorProperties {
  readonly dtype: Dtype
  readonly fill: number
  readonly given: FormatOperands
}

/** The levels of each tree, root first. */
export const levelChains = <C>(axes: readonly StoredAxis[], levels: ReadonlyMap<string, Level<C>>) =>
  treesOf(axes).map((tree) => tree.map((a) => levels.get(a.name)!))

/** The entries of one part of a tensor, in a frame with the given `sizes`. */
export function* entriesOfPart<C extends Column>(
  engine: Engine<C>,
  part: Part<C>,
  tensor: TensorProperties,
  dims: Context<C>['dims'],
  sizes: ReadonlyMap<string, number>,
): Coroutine<Frame<C>> {
  const { stored, inverse } = levelsOfPart(part, tensor, dims)
  return yield* entriesOf(engine, stored, inverse, sizes)
}

/** The levels and the inverse map by which a part's entries are enumerated. */
export function levelsOfPart<C extends Column>(
  { part: { instance }, levels, size, values, tables, measured }: Part<C>,
  tensor: TensorProperties,
  dims: Context<C>['dims'],
): { readonly stored: StoredLevels<C>; readonly inverse: Inverse<C> } {
  const partSizes = new Map([...withSegments(tensor.given).sizes, ...measured])
  const inverse: Inverse<C> = {
    dims,
    exprs: instance.inverse,
    sizes: partSizes,
    tables: inverseTables(instance, tables, partSizes, tensor.given),
    lists: instance.lists,
  }
  const trees = levelChains(instance.axes, levels)
  const mask =
    instance.mask === undefined ? null : { words: tables.get(instance.mask)!, axes: instance.order }
  const drop = isExact(trees, fullAxes(instance)) || mask ? null : tensor.fill
  return { stored: { trees, size, values, dtype: tensor.dtype, drop, mask }, inverse }
}
