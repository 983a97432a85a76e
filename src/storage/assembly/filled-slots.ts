/**
 * Dense axes that a format claims `full`: if the tensor stores an element, it must store all coordinates on these axes.
 * Coordinates outside the tensor, in blocks at its edges, are exempt.
 */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { type Column, ENTRY, Frame } from '../../columns/column-engine.ts'
import { compressedAxis, denseAxis, type StoredAxis } from '../../ir/coordinates/axis.ts'
import { all, type Expr, eq, ge, int, load, lt, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { type FormatInstance, fullAxes } from '../../ir/formats/format.ts'
import { computeAncestorCoordinates } from '../../levels/index.ts'
import { bindTables, guardLoads, type Tables } from '../remapping/inverse-remapping.ts'
import { pointOf } from '../storage.ts'
import { assembleTrees } from './tree-assembly.ts'

interface Placement<C> {
  readonly instance: FormatInstance
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  readonly coordinates: ReadonlyMap<string, Expr>
  readonly tables: Tables<C>
}

/** Checks the claims. @throws SptError `format/claim` with the first coordinate that is not stored */
export function* checkFilled<C extends Column>(
  frame: Frame<C>,
  { instance, dims, coordinates, tables }: Placement<C>,
): Coroutine<void> {
  const filled = fullAxes(instance)
  if (filled.length === 0 || frame.n === 0) return
  const { engine } = frame
  // Every coordinate on the other axes once, with a slot for each coordinate on the full axes.
  const slotName = (name: string): string => `@slot ${name}`
  const axes: StoredAxis[] = []
  for (const a of [...instance.axes.filter((x) => !filled.includes(x)), ...filled]) {
    const parent = axes.at(-1)?.name ?? null
    axes.push(
      filled.includes(a)
        ? denseAxis(slotName(a.name), a.extent, parent)
        : compressedAxis(slotName(a.name), parent, a.extent),
    )
  }
  const entryCoordinates = new Map([...coordinates].map(([name, e]) => [slotName(name), e]))
  const { levels, position, size } = yield* assembleTrees(frame, axes, entryCoordinates, [])
  const occupied = engine.filled(size, 0, 'held')
  engine.scatter(frame, occupied, position, int(1))
  const slots = new Frame(engine, size, frame.sizes)
  bindTables(slots, tables)
  slots.tables.set('@held', occupied)
  const allocated: C[] = []
  const slotCoordinates = new Map<string, Expr>()
  const chain = axes.map((a) => levels.get(a.name)!)
  computeAncestorCoordinates(slots, chain, variable(ENTRY), slotCoordinates, allocated)
  const axisCoordinates = new Map(instance.axes.map((a) => [a.name, slotCoordinates.get(slotName(a.name))!]))
  const tensorCoordinates = instance.inverse.map((e) =>
    guardLoads(slots, substitute(e, axisCoordinates), tables),
  )
  const withinTensor = tensorCoordinates.flatMap((e, k) => [
    ge(e, int(0)),
    lt(e, slots.bindSize(dims[k]!.extent)),
  ])
  const absent = eq(load('@held', [variable(ENTRY)]), int(0))
  const [slot = -1] = yield* engine.findFirst(slots, [all([absent, ...withinTensor])])
  if (slot >= 0) rejectClaim(instance, filled, dims, yield* engine.valuesAt(slots, tensorCoordinates, slot))
  slots.release()
  engine.release(occupied, ...allocated, ...chain.flatMap((l) => [l.indptr, l.indices]))
}

function rejectClaim(
  instance: FormatInstance,
  filled: readonly StoredAxis[],
  dims: Placement<unknown>['dims'],
  values: readonly number[],
): never {
  const names = filled.map((a) => a.name).join(', ')
  const [first] = filled
  failWith(
    'format/claim',
    `${filled.length > 1 ? `axes ${names} of ${instance.text} are` : `axis ${names} of ${instance.text} is`} claimed full, but the tensor does not hold ${pointOf(
      dims.map((d) => d.name),
      values,
    )}`,
    {
      ...(first?.span ? { span: first.span } : {}),
      expected: 'a tensor with the properties that the format states of the axes',
      hint: 'leave the claim out, or choose a format that fits the tensor',
    },
  )
}
