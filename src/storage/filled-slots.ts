/**
 * Dense axes that a format claims `full`: if the tensor stores an element, it must store all coordinates on these axes.
 * Coordinates outside the tensor, in blocks at its edges, are exempt.
 */
import { fail } from '../ast/diagnostic.ts'
import { compressedAxis, denseAxis, type StoredAxis } from '../ir/axis.ts'
import { all, type Expr, eq, ge, int, load, lt, variable } from '../ir/expr.ts'
import { substitute } from '../ir/expr-tree.ts'
import { type FormatInstance, filledAxes } from '../ir/format.ts'
import { ancestorCoordinates } from './ancestor-coordinates.ts'
import { type Column, ENTRY, Frame } from './column-engine.ts'
import { pointOf } from './coordinate-text.ts'
import type { Coroutine } from './coroutines.ts'
import { bindTables, guarded, type Tables } from './inverse-remapping.ts'
import { assembleTrees } from './tree-assembly.ts'

/** The placement of a frame's entries in a format. */
interface Placed<C> {
  readonly instance: FormatInstance
  /** The tensor's dimensions. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** The coordinate on each axis of the format, by name. */
  readonly coordinates: ReadonlyMap<string, Expr>
  /** The tables that the inverse map loads. */
  readonly tables: Tables<C>
}

/** Checks the claims. @throws SptError `format/claim` with the first coordinate that is not stored */
export function* checkFilled<C extends Column>(
  frame: Frame<C>,
  { instance, dims, coordinates, tables }: Placed<C>,
): Coroutine<void> {
  const filled = filledAxes(instance)
  if (filled.length === 0 || frame.n === 0) return
  const { engine } = frame
  // Every coordinate on the other axes once, with a slot for each coordinate on the full axes.
  const own = (name: string): string => `@slot ${name}`
  const axes: StoredAxis[] = []
  for (const a of [...instance.axes.filter((x) => !filled.includes(x)), ...filled]) {
    const parent = axes.at(-1)?.name ?? null
    axes.push(
      filled.includes(a)
        ? denseAxis(own(a.name), a.extent, parent)
        : compressedAxis(own(a.name), parent, a.extent),
    )
  }
  const standing = new Map([...coordinates].map(([name, e]) => [own(name), e]))
  const { levels, at, size } = yield* assembleTrees(frame, axes, standing, [])
  const held = engine.filled(size, 0, 'held')
  engine.scatter(frame, held, at, int(1))
  const slots = new Frame(engine, size, frame.sizes)
  bindTables(slots, tables)
  slots.tables.set('@held', held)
  const made: C[] = []
  const places = new Map<string, Expr>()
  const chain = axes.map((a) => levels.get(a.name)!)
  ancestorCoordinates(slots, chain, variable(ENTRY), places, made)
  const here = new Map(instance.axes.map((a) => [a.name, places.get(own(a.name))!]))
  const back = instance.inverse.map((e) => guarded(slots, substitute(e, here), tables))
  const inside = back.flatMap((e, k) => [ge(e, int(0)), lt(e, slots.sized(dims[k]!.extent))])
  const absent = eq(load('@held', [variable(ENTRY)], 'i32'), int(0))
  const [slot = -1] = yield* engine.first(slots, [all([absent, ...inside])])
  if (slot >= 0) refuse(instance, filled, dims, yield* engine.valuesAt(slots, back, slot))
  slots.release()
  engine.release(held, ...made, ...chain.flatMap((l) => [l.indptr, l.indices]))
}

function refuse(
  instance: FormatInstance,
  filled: readonly StoredAxis[],
  dims: Placed<unknown>['dims'],
  values: readonly number[],
): never {
  const names = filled.map((a) => a.name).join(', ')
  const [first] = filled
  fail({
    code: 'format/claim',
    message: `${filled.length > 1 ? `axes ${names} of ${instance.text} are` : `axis ${names} of ${instance.text} is`} claimed full, but the tensor does not hold ${pointOf(
      dims.map((d) => d.name),
      values,
    )}`,
    ...(first?.span ? { span: first.span } : {}),
    expected: 'a tensor with the properties that the format states of its axes',
    hint: 'leave the claim out, or choose a format that fits the tensor',
  })
}
