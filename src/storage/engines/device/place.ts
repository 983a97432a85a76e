/** One part of a tensor on a device: its entries into the arrays of its format. */
import { fail, invariant } from '../../../ast/diagnostic.ts'
import type { StoredAxis } from '../../../ir/axis.ts'
import type { Dtype } from '../../../ir/dtype.ts'
import { add, cast, constant, type Expr, load, mul, variable } from '../../../ir/expr.ts'
import { freeVars } from '../../../ir/expr-tree.ts'
import type { FormatInstance, PartInstance } from '../../../ir/format.ts'
import type { Given } from '../../given.ts'
import { segmentsOf } from '../../parts/tables.ts'
import { treesOf } from '../../storage.ts'
import { checkClaimOn } from './claims.ts'
import { type Column, natural, read, update, write } from './column-types.ts'
import type { Frame } from './frame.ts'
import { bindTables, checkMap, inverseTables } from './inverse.ts'
import { atomic, get, next, store, zero } from './kernel.ts'
import { measure, type Scope } from './keys.ts'
import type { DeviceLevel, Dimension } from './level.ts'
import { buildTree } from './levels.ts'
import { evaluateQueries } from './queries.ts'
import type { Queue } from './queue.ts'
import { evaluateSort } from './sorts.ts'

/** A part as it lies on the device: like `StoredPart` of `storage/parts/convert.ts`. */
export interface DevicePart {
  readonly part: PartInstance
  readonly levels: ReadonlyMap<string, DeviceLevel>
  /** Elements of a buffer over all axes. */
  readonly size: number
  /** In position order. */
  readonly values: Column
  readonly tables: ReadonlyMap<string, Column>
  readonly measured: ReadonlyMap<string, number>
}

/** What a conversion knows beside the entries. */
export interface Context extends Omit<Scope, 'places'> {
  readonly queue: Queue
  /** Values that are stored, by entry of the source; `null` in a pattern. */
  readonly stored: Column | null
  readonly given: Given
  readonly dtype: Dtype
  readonly fill: number
}

/**
 * Takes the frame over.
 * @param checked whether map and inverse are known to fit: otherwise every entry is tried
 * @throws SptError `format/not-inverse`, `format/map-range`, `format/claim`, `bind/width`, `bind/missing-size`, `convert/…`
 */
export async function storePart(
  frame: Frame,
  part: PartInstance,
  context: Context,
  checked: boolean,
): Promise<DevicePart> {
  const { instance } = part
  const places = new Map<string, Column>()
  const tables = new Map<string, Column>()
  for (const table of instance.tables) {
    const list = table.of === 'list' ? context.lists.get(table.source) : undefined
    if (list) tables.set(table.name, list)
  }
  for (const sort of instance.sorts) {
    const { place, at } = await evaluateSort(frame, sort, { ...context, places })
    places.set(sort.place, place)
    tables.set(sort.at, at)
  }
  await evaluateQueries(frame, instance.queries, { ...context, places })
  const loads = inverseTables(instance, tables, frame)
  bindTables(frame, loads)
  const measured = await measureExtents(frame, instance)
  if (!checked) await checkMap(frame, part, context.dims, loads)
  let built = await buildLevels(frame, instance)
  for (const [name, width] of built.widths) {
    measured.set(name, Math.max(measured.get(name) ?? 0, width))
    frame.sizes.set(name, measured.get(name)!)
  }
  if (built.uneven) {
    // A width that several axes share is that of the widest.
    for (const l of built.levels.values()) context.queue.release(l.indptr, l.indices, l.mask)
    built = await buildLevels(frame, instance)
  }
  const { levels, at, size } = built
  for (const { axis, claim } of instance.claims) {
    const tree = treesOf(instance.axes).find((t) => t.some((a) => a.name === axis))
    invariant(tree, `no axis ${axis}`)
    const chain = tree.slice(0, tree.findIndex((a) => a.name === axis) + 1)
    await checkClaimOn(
      context.queue,
      chain.map((a) => levels.get(a.name)!),
      claim,
    )
  }
  const values = scatter(frame, at, size, context)
  context.queue.release(...places.values())
  frame.release()
  return { part, levels, size, values, tables, measured }
}

/** Lists on the device, and their numbers of segments among the sizes. */
export function sizesOf(given: Given): Map<string, number> {
  const sizes = new Map(given.sizes)
  for (const [name, list] of given.lists) sizes.set(segmentsOf(name), list.length - 1)
  return sizes
}

/** Extents that are sizes to be measured: 1 + the largest coordinate. */
async function measureExtents(frame: Frame, instance: FormatInstance): Promise<Map<string, number>> {
  const open = new Set(instance.measured.map((m) => m.name))
  const found = new Map<string, number>()
  for (const [k, name] of instance.order.entries()) {
    const axis = instance.axes.find((a) => a.name === name)
    if (axis?.extent.kind !== 'var' || frame.isKnown(axis.extent)) continue
    if (!open.has(axis.extent.name)) continue
    const [, hi] = await measure(frame, next(instance.map[k]!))
    found.set(axis.extent.name, Math.max(found.get(axis.extent.name) ?? 0, hi))
  }
  for (const [name, value] of found) frame.sizes.set(name, value)
  return found
}

function dimensionOf(frame: Frame, instance: FormatInstance, axis: StoredAxis): Dimension {
  const open = new Set(instance.measured.map((m) => m.name))
  const value = (what: string, e: Expr): number | null => {
    if (frame.isKnown(e)) return frame.size(e)
    if (what === 'width' && e.kind === 'var' && open.has(e.name)) return null
    return fail({
      code: 'bind/missing-size',
      message: `the ${what} of axis ${axis.name} needs ${[...freeVars(e)].filter((v) => !frame.sizes.has(v)).join(', ')}`,
      ...(axis.span ? { span: axis.span } : {}),
      expected: 'a value for every size',
      hint: 'give the size; a measured one can only be a whole width or a whole extent',
    })
  }
  const coordinate = instance.map[instance.order.indexOf(axis.name)]
  invariant(coordinate, `no coordinate on ${axis.name}`)
  const extent = value('extent', axis.extent) ?? 0
  const padding = axis.kind === 'sparse_fixed' && axis.padding ? value('padding', axis.padding) : null
  return {
    axis,
    coordinate,
    extent,
    padding: padding ?? extent,
    width: axis.kind === 'sparse_fixed' ? value('width', axis.width) : null,
  }
}

interface Built {
  readonly levels: ReadonlyMap<string, DeviceLevel>
  /** Position of an entry in a buffer over all axes. */
  readonly at: Expr
  readonly size: number
  /** Widths that were measured by name, and whether axes that share one measured different ones. */
  readonly widths: ReadonlyMap<string, number>
  readonly uneven: boolean
}

async function buildLevels(frame: Frame, instance: FormatInstance): Promise<Built> {
  const dimensions = new Map(instance.axes.map((a) => [a.name, dimensionOf(frame, instance, a)]))
  const levels = new Map<string, DeviceLevel>()
  const widths = new Map<string, number>()
  let uneven = false
  let at: Expr | null = null
  let size = 1
  for (const tree of treesOf(instance.axes)) {
    const chain = tree.map((a) => dimensions.get(a.name)!)
    const built = await buildTree(frame, chain)
    for (const [k, level] of built.levels.entries()) {
      const { axis, width } = chain[k]!
      levels.set(axis.name, level)
      if (axis.kind !== 'sparse_fixed' || width !== null || axis.width.kind !== 'var') continue
      const known = widths.get(axis.width.name)
      uneven ||= known !== undefined && known !== level.width
      widths.set(axis.width.name, Math.max(known ?? 0, level.width ?? 0))
    }
    frame.sizes.set(`@positions ${tree[0]!.name}`, built.positions)
    at = at ? add(mul(at, variable(`@positions ${tree[0]!.name}`)), built.at) : built.at
    size *= built.positions
  }
  invariant(at, `${instance.text} has axes`)
  return { levels, at, size, widths, uneven }
}

/** Values where their entries stand, the fill elsewhere; values at one position add up. */
function scatter(frame: Frame, at: Expr, size: number, context: Context): Column {
  const { queue: q, stored: values, dtype, fill, distinct } = context
  const out = q.column(size, dtype, 'values')
  const t = frame.terms([at])
  const entry = frame.entry
  const source = {
    ...t.columns,
    ...(values ? { x_values: read(values) } : {}),
    ...(values && entry ? { x_entry: natural(entry) } : {}),
  }
  const value = (e: Expr): Expr =>
    values
      ? load('x_values', [entry ? get('x_entry', e) : e], dtype)
      : cast(constant(1, dtype === 'bool' ? 'i32' : dtype), dtype)
  if (Object.is(fill, 0)) q.clear(out)
  else
    q.launch({
      key: `fill ${fill}`,
      threads: size,
      columns: { x_to: write(out) },
      body: (e) => [store('x_to', e, cast(constant(fill, dtype === 'bool' ? 'i32' : dtype), dtype))],
    })
  const assign = distinct || dtype === 'bool'
  const put = (
    key: string,
    access: typeof write,
    body: (to: Expr, e: Expr) => ReturnType<typeof store>,
  ): void =>
    q.launch({
      ...t,
      key: `${key} ${values ? 'values' : 'ones'} ${entry ? 'entry' : ''} ${t.key}`,
      threads: frame.n,
      columns: { ...source, x_to: access(out) },
      body: (e) => [body(t.at(e)[0]!, e)],
    })
  if (assign) put('scatter', write, (to, e) => store('x_to', to, value(e)))
  else {
    if (!Object.is(fill, 0)) put('start sums', write, (to) => store('x_to', to, zero(dtype)))
    put('sum', update, (to, e) => atomic('+', 'x_to', to, value(e)))
  }
  return out
}
