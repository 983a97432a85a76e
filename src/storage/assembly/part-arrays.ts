/** Assembly of one part of a tensor: its arrays, or their sizes only. */

import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import { chainTo } from '../../ir/coordinates/axis.ts'
import type { PartInstance, Proved } from '../../ir/formats/format.ts'
import { type Context, type Part, remapCoordinates } from '../remapping/part-assembly.ts'
import { makeStorage } from '../storage.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { maskOf } from './packed-indices.ts'
import { type AssembledTrees, assembleTrees } from './tree-assembly.ts'

interface PartLevels<C> extends AssembledTrees<C> {
  readonly tables: ReadonlyMap<string, C>
  readonly measured: ReadonlyMap<string, number>
}

/** Assembles the levels and tables of a part; open sizes are measured and added to the frame. @throws as `assemblePart` */
export function* assemblePartLevels<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<PartLevels<C>> {
  const { instance } = part
  const openSizes = instance.measured.filter((m) => !frame.sizes.has(m.name))
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
  // A measured size may be used by no level.
  const measured = openSizes.flatMap(({ name }) => {
    const value = frame.sizes.get(name)
    return value === undefined ? [] : [[name, value] as const]
  })
  return { ...built, tables, measured: new Map(measured) }
}

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
  const { levels, position, size, measured, ...built } = yield* assemblePartLevels(
    frame,
    part,
    context,
    proved,
  )
  const { axes, mask } = part.instance
  const storedValues = frame.engine.storeValues(frame, position, size, context)
  const tables =
    mask === undefined
      ? built.tables
      : new Map([...built.tables, [mask, maskOf(frame, position, size, mask)]])
  frame.release()
  return { part, storage: makeStorage(axes, levels), ...storedValues, tables, measured }
}
