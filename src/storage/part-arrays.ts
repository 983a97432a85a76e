/** One part of a tensor as arrays, or how large they would be. */
import type { Proved } from '../formats/proof/proved.ts'
import { chainTo } from '../ir/axis.ts'
import type { PartInstance } from '../ir/format.ts'
import type { Column, Frame } from './column-engine.ts'
import type { Coroutine } from './coroutines.ts'
import { maskOf } from './element-masks.ts'
import { checkLevelProperty } from './level-property-checks.ts'
import { type Context, type Part, remapCoordinates } from './part-assembly.ts'
import { assembleTrees, type Built } from './tree-assembly.ts'

/** Levels of a part, and its tables. */
interface Placed<C> extends Built<C> {
  readonly tables: ReadonlyMap<string, C>
}

/** @param open sizes to be measured, which the frame knows then */
function* placed<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
  open: readonly { readonly name: string }[],
): Coroutine<Placed<C>> {
  const { instance } = part
  const { coordinates, tables, ...known } = yield* remapCoordinates(frame, part, context, proved)
  for (const { levels } of known.begun.values()) for (const { axis } of levels) frame.drop(`@${axis.name}`)
  const built = yield* assembleTrees(frame, instance.axes, coordinates, open, known)
  const axes = new Map(instance.axes.map((a) => [a.name, a]))
  for (const { axis, claim } of instance.claims)
    yield* checkLevelProperty(
      frame.engine,
      chainTo(axes, axis).map((a) => built.levels.get(a)!),
      claim,
    )
  return { ...built, tables }
}

const openIn = <C extends Column>({ sizes }: Frame<C>, { instance }: PartInstance) =>
  instance.measured.filter((m) => !sizes.has(m.name))

/**
 * Takes the frame over.
 * @throws SptError `bind/width`, `bind/missing-size`, `format/padding`, `format/claim`, and what positions and memory
 * are too few for, as the engine says it
 */
export function* assemblePart<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<Part<C>> {
  const open = openIn(frame, part)
  const { levels, at, size, tables: loaded } = yield* placed(frame, part, context, proved, open)
  const stored = frame.engine.storeValues(frame, at, size, context)
  const { mask } = part.instance
  const tables = mask === undefined ? loaded : new Map([...loaded, [mask, maskOf(frame, at, size, mask)]])
  frame.release()
  const measured = new Map<string, number>()
  for (const { name } of open) {
    const value = frame.sizes.get(name)
    // No axis may be as long or as wide.
    if (value !== undefined) measured.set(name, value)
  }
  return { part, levels, size, ...stored, tables, measured }
}

/**
 * How many values the part would have, on the host; the frame is taken over, as by `assemblePart`.
 * @throws SptError as `assemblePart`
 */
export function* sizeOfPart<C extends Column>(
  frame: Frame<C>,
  part: PartInstance,
  context: Context<C>,
  proved: Proved,
): Coroutine<Pick<Part<C>, 'size' | 'tables'>> {
  // Arrays of levels may be those of the tensor, and are not given back.
  const { size, tables } = yield* placed(frame, part, context, proved, openIn(frame, part))
  frame.release()
  return { size, tables }
}
