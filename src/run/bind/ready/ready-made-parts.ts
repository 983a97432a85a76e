/** Tensors that are bound as ready-made parts: validated, not rebuilt. Their coordinates follow from the inverse maps of the formats. */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { runSync } from '../../../ast/work.ts'
import { ascending, concat } from '../../../columns/allocate.ts'
import { isDense, isPadded, isSparse, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { CoordinateList } from '../../../ir/coordinates/derived-names.ts'
import type { Buffer1, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { substitute } from '../../../ir/expressions/expr-tree.ts'
import { fullAxes } from '../../../ir/formats/format.ts'
import { conditionsOf } from '../../../ir/formats/part-tree.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import { evaluate } from '../../../ir/values/evaluate.ts'
import { checkFilled } from '../../../storage/assembly/filled-slots.ts'
import { sizesOfAxes } from '../../../storage/build-storage.ts'
import { bindLists } from '../../../storage/convert.ts'
import { HOST } from '../../../storage/engines/host/engine.ts'
import { entriesOf, isExact } from '../../../storage/entries/entry-enumeration.ts'
import { type FormatOperands, givenList } from '../../../storage/format-operands.ts'
import { checkDisjoint, levelsAreUnique } from '../../../storage/ready/elements.ts'
import { checkPlacement, type Placement } from '../../../storage/ready/ready-parts.ts'
import {
  checkLists,
  checkMask,
  checkMaskAgrees,
  storedValues,
  validateStored,
} from '../../../storage/ready/validate.ts'
import { bindTables, type FilledTable, guardLoads } from '../../../storage/remapping/inverse-remapping.ts'
import { type Storage, separatesDuplicates } from '../../../storage/storage.ts'
import type { StoredTensor, Tensor, ValueArray } from '../../../storage/tensor.ts'
import { convertValues, gatherValues, newValues } from '../../../storage/tensor.ts'
import { bindPlan, callerTensors, maskOver, storedAxis } from '../bind-plan.ts'
import { bindingOf } from '../binding-names.ts'
import { EntryList } from '../sources/entry-list.ts'
import { type ReadyTensor, tablesOf } from './ready-made-tables.ts'

interface ReadyParts {
  readonly sources: readonly EntryList[]
  readonly lists: readonly EntryList[]
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Binds ready-made parts. Throws SptError `bind/part` (no arrays, or the whole tensor too), `bind/missing-part`,
 * `bind/missing-table`, `bind/table`, `bind/part-shared`, `format/overlap`, `format/not-inverse`, `bind/duplicate`, and as
 * `validateStored`.
 */
export function bindReady(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  sources: readonly EntryList[],
  known: FormatOperands,
): ReadyParts {
  const tables = new Map<string, Int32Array>()
  const made: { source: EntryList; lists: EntryList[] }[] = []
  for (const t of callerTensors(kernel)) {
    const brought = t.buffers.filter((b) => isPart(kernel, b.name, tensors.get(b.name)))
    if (brought.length === 0) continue
    const ready = { kernel, t, tensors, known }
    checkParts(ready, brought)
    checkShared(ready, sources)
    for (const [name, table] of tablesOf(ready)) tables.set(name, table)
    made.push(fromParts(ready, tables))
  }
  for (const [name, tensor] of tensors)
    if (bindingOf(kernel, name, tensor).kind === 'table' && !tables.has(name))
      failWith('bind/table', `${name} is a table of a format, which is computed during conversion`, {
        expected: 'tables only with ready-made parts',
        hint: `leave ${name} out, or bind every part of the tensor`,
      })
  return { sources: made.map((m) => m.source), lists: made.flatMap((m) => m.lists), tables }
}

export const isPart = (kernel: Kernel1, name: string, tensor: Tensor | undefined): boolean =>
  tensor !== undefined && bindingOf(kernel, name, tensor).kind === 'part'

function checkParts({ t, tensors }: ReadyTensor, brought: readonly Buffer1[]): void {
  for (const b of brought) {
    const { kind } = tensors.get(b.name)!
    if (kind !== 'stored')
      failWith('bind/part', `${b.name} is a part of ${t.name}, and is bound to a ${kind} tensor`, {
        expected: `ready-made arrays over [${b.axes.join(', ')}]`,
        hint: `bind ${t.name} by coordinates, which are then converted to parts`,
      })
  }
  if (tensors.has(t.name) && t.first.name !== t.name)
    failWith('bind/part', `both ${t.name} and its part ${brought[0]!.name} are bound`, {
      expected: `${t.name}, or ${t.buffers.map((b) => b.name).join(', ')}`,
      hint: 'remove one of the two',
    })
  const missing = t.buffers.filter((b) => !brought.includes(b))
  if (missing.length > 0)
    failWith(
      'bind/missing-part',
      `${brought.map((b) => b.name).join(', ')} of ${t.name} ${brought.length > 1 ? 'are' : 'is'} bound, and ${missing.map((b) => b.name).join(', ')} not`,
      {
        expected: `all parts of ${t.name}, or ${t.name} itself`,
        hint: `bind ${missing[0]!.name} too (empty arrays where it holds nothing), or bind ${t.name}`,
      },
    )
}

/** Tensors of the structure of a ready-made one must be ready-made, too, or outputs over the same axes. */
function checkShared({ kernel, t, tensors }: ReadyTensor, sources: readonly EntryList[]): void {
  const { structured } = t
  const shares = (over: readonly string[]): boolean =>
    structured.length > 0 && structured.every((a) => over.includes(a))
  const source = sources.find((s) => shares(s.axes))
  const refuse = (name: string): never =>
    failWith('bind/part-shared', `${name} has the structure of ${t.name}, whose parts are ready-made`, {
      expected: `ready-made parts of ${name} as well, over the same axes`,
      hint: `bind ${t.name} by coordinates, or all parts of ${name}`,
    })
  if (source) refuse(source.name)
  for (const other of callerTensors(kernel)) {
    if (other.name === t.name || !shares(other.axes)) continue
    const ready = other.buffers.every((b) => isPart(kernel, b.name, tensors.get(b.name)))
    const output = other.first.role !== 'in'
    if (!ready && !(output && other.axes.join() === t.axes.join())) refuse(other.name)
  }
}

function fromParts(
  ready: ReadyTensor,
  tables: ReadonlyMap<string, Int32Array>,
): { source: EntryList; lists: EntryList[] } {
  const { kernel, t, tensors, known } = ready
  const { axes } = bindPlan(kernel)
  const parts = t.buffers.map((b) => {
    const tensor = tensors.get(b.name) as StoredTensor
    const own = b.axes.map((a) => storedAxis(axes, a))
    const storage = validateStored(own, sizesOfAxes(own, known), tensor, { part: true })
    return partEntries(ready, b, storage, tensor, tables)
  })
  const columns = t.axes.map((_, d) => concat(parts.map((p) => p.columns[d]!)))
  const total = parts.reduce((n, p) => n + p.values.length, 0)
  const values = newValues(t.first.dtype, total)
  const shape = t.axes.map((a) => known.extents.get(a)!)
  const tensor = { kind: 'coords', shape, coords: columns, values, dtype: t.first.dtype } as const
  const source = new EntryList(t.name, t.axes, () => ({ columns, tensor }))
  let at = 0
  const lists = parts.map((p) => {
    values.set(p.values, at)
    const entries = ascending(p.values.length, 'entries', at)
    at += entries.length
    return source.part(p.stored, entries)
  })
  const declared = t.axes.map((a) => storedAxis(axes, a))
  checkDisjoint({
    axes: declared,
    shape,
    separateDuplicates: separatesDuplicates(declared),
    parts: t.buffers.map(({ name }, k) => ({ name, columns: parts[k]!.columns, unique: parts[k]!.unique })),
    hint: `remove the coordinate from one part, or bind ${t.name} by coordinates`,
  })
  return { source, lists }
}

/** The elements of one part, with coordinates on the declared axes (`columns`) and the stored axes (`stored`). */
function partEntries(
  { kernel, t, known }: ReadyTensor,
  b: Buffer1,
  storage: Storage,
  tensor: StoredTensor,
  tables: ReadonlyMap<string, Int32Array>,
): { columns: Int32Array[]; stored: Map<string, Int32Array>; values: ValueArray; unique: boolean } {
  let now: ReadonlyMap<string, Expr> = new Map(b.axes.map((a) => [a, variable(a)]))
  const loads = new Map<string, FilledTable<TypedArray>>()
  const lists: CoordinateList[] = []
  const placed: (Pick<Placement<TypedArray>, 'instance' | 'coordinates' | 'conditions'> & {
    dims: string[]
  })[] = []
  for (const r of kernel.reformats.toReversed()) {
    const part = r.instance.parts.find((p) => p.instance.order.every((a) => now.has(a)))
    if (!part) continue
    const { order, inverse } = part.instance
    for (const { name, kind: of, source, fill } of part.instance.tables) {
      const list = of === 'list' ? givenList(known, source) : undefined
      loads.set(name, { column: tables.get(name)!, fill: evaluate(fill, known.sizes), list })
    }
    checkLists(part.instance, storage, tables, known.sizes)
    lists.push(...part.instance.lists)
    const old = r.from.map((a, d) => [a.name, substitute(inverse[d]!, now)] as const)
    const coordinates = new Map(order.map((a) => [a, now.get(a)!]))
    const conditions = conditionsOf(r.instance.tree, r.instance.parts.indexOf(part))
    placed.push({ instance: part.instance, dims: r.from.map((a) => a.name), coordinates, conditions })
    now = new Map([...[...now].filter(([a]) => !order.includes(a)), ...old])
  }
  const { dtype, fill } = t.first
  const values = convertValues(
    storedValues(storage, tensor, fill),
    tensor.dtype,
    dtype,
    (at) => `element ${at} of ${t.name}`,
  )
  // Fill in blocks and padding of levels are not elements of the tensor.
  const bits = maskOver(kernel, b)
  const mask = bits && {
    words: checkMask(bits.name, bits.axes, storage, tables.get(bits.name)),
    axes: bits.axes,
  }
  // Dense axes of the tensor itself, which no format made, contain all their coordinates.
  const isOwn = (a: StoredAxis): boolean => !placed.some((p) => p.instance.order.includes(a.name))
  const filled = [
    ...placed.flatMap((p) => fullAxes(p.instance)),
    ...storage.axes.filter((a) => isDense(a) && isOwn(a)),
  ]
  const { trees } = storage
  const hasPadding = storage.axes.some(isPadded) || trees.some((tree) => !isSparse(tree.at(-1)!.axis))
  const dims = [
    ...t.axes.map((name) => ({ name, extent: known.extents.get(name)!, of: now.get(name)! })),
    ...b.axes.map((a) => ({ name: `@${a}`, extent: storage.levels.get(a)!.extent, of: variable(a) })),
  ]
  const drop = hasPadding && !isExact(trees, filled) && !mask ? fill : null
  const stored = { trees, size: storage.size, values, dtype, drop, mask: mask ?? null }
  const inverse = { dims, exprs: dims.map((d) => d.of), sizes: known.sizes, tables: loads, lists }
  if (bits) checkMaskAgrees(bits.name, stored, inverse, { filled, order: t.axes.length })
  const frame = runSync(entriesOf<TypedArray>(HOST, stored, inverse))
  bindLists(frame, known.lists, known)
  bindTables(frame, loads)
  const there = new Map(b.axes.map((a) => [a, variable(`@${a}`)]))
  for (const { instance, dims: of, coordinates: over, conditions } of placed) {
    const dims = of.map((name) => ({ name, extent: known.extents.get(name)! }))
    const coordinates = new Map(
      [...over].map(([a, e]) => [a, guardLoads(frame, substitute(e, there), loads)]),
    )
    runSync(
      checkPlacement<TypedArray>(frame, { instance, dims, coordinates, conditions, lists: known.lists }),
    )
    runSync(checkFilled<TypedArray>(frame, { instance, dims, coordinates, tables: loads }))
  }
  const column = (name: string): Int32Array => frame.column(name) as Int32Array
  const entry = frame.entry as Int32Array | null
  return {
    columns: t.axes.map(column),
    stored: new Map(b.axes.map((a) => [a, column(`@${a}`)])),
    values: entry ? gatherValues({ values, dtype }, entry) : values,
    unique: levelsAreUnique(storage.axes, placed),
  }
}
