/** Assembly of one part of a tensor: its arrays, or their sizes only. */

import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Proved } from '../../formats/proof/prove.ts'
import { chainTo } from '../../ir/coordinates/axis.ts'
import type { PartInstance } from '../../ir/formats/format.ts'
import { type Context, type Part, remapCoordinates } from '../remapping/part-assembly.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { maskOf } from './packed-indices.ts'
import { type AssembledTrees, assembleTrees } from './tree-assembly.ts'

interface PartLevels<C> extends AssembledTrees<C> {
  readonly tables: ReadonlyMap<string, C>
}

/** Assembles the levels and tables of a part. `openSizes` are measured and added to the frame. */
function* assemblePartLevels<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
  openSizes: readonly { readonly name: string }[],
): Coroutine<PartLevels<C>> {
  const { instance } = part
  const { coordinates, tables, ...options } = yield* remapCoordinates(frame, part, context, proved)
  for (const { levels } of options.prefixes.values())
    for (const { axis } of levels) frame.drop(`@${axis.name}`)
  const built = yield* assembleTrees(frame, instance.axes, coordinates, openSizes, options)
  const axes = new Map(instance.axes.map((a) => [a.name, a]))
  for (const { axis, claim } of instance.claims)
    yield* checkLevelProperty(
      frame.engine,
      chainTo(axes, axis).map((a) => built.levels.get(a)!),
      claim,
    )
  return { ...built, tables }
}

const openSizesOf = <C extends Column>({ sizes }: Frame<C>, { instance }: PartInstance) =>
  instance.measured.filter((m) => !sizes.has(m.name))

/**
 * Assembles a part; takes ownership of the frame. @throws SptError `bind/width`, `bind/missing-size`, `format/padding`,
 * `format/claim`, and the engine's errors for too many positions or too little memory
 */
export function* assemblePart<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<Part<C>> {
  const openSizes = openSizesOf(frame, part)
  const {
    levels,
    position,
    size,
    tables: inverseTables,
  } = yield* assemblePartLevels(frame, part, context, proved, openSizes)
  const storedValues = frame.engine.storeValues(frame, position, size, context)
  const { mask } = part.instance
  const tables =
    mask === undefined
      ? inverseTables
      : new Map([...inverseTables, [mask, maskOf(frame, position, size, mask)]])
  frame.release()
  const measured = new Map<string, number>()
  for (const { name } of openSizes) {
    const value = frame.sizes.get(name)
    // A measured size may be used by no level.
    if (value !== undefined) measured.set(name, value)
  }
  return { part, levels, size, ...storedValues, tables, measured }
}

/** The number of values of the part, on the host; takes ownership of the frame. @throws SptError as `assemblePart` */
export function* sizeOfPart<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<Pick<Part<C>, 'size' | 'tables'>> {
  // Arrays of levels may belong to the tensor, so they are not released.
  const { size, tables } = yield* assemblePartLevels(frame, part, context, proved, openSizesOf(frame, part))
  frame.release()
  return { size, tables }
}
