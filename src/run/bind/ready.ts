/**
 * Tensors whose parts are brought ready-made: validated, not rebuilt. Their coordinates follow through the
 * inverse maps.
 */
import { fail } from '../../ast/diagnostic.ts'
import { allocate, gather } from '../../columns/allocate.ts'
import { applyMap } from '../../columns/coordmap.ts'
import { isPadded } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import type { Buffer1, Kernel1 } from '../../ir/stage1.ts'
import { paddingsOf, widthsOf } from '../../storage/levels/reformat.ts'
import { expandTree } from '../../storage/read/expand.ts'
import { checkDisjoint } from '../../storage/ready/disjoint.ts'
import { storedValues, validateStored } from '../../storage/ready/validate.ts'
import type { Storage } from '../../storage/storage.ts'
import type { StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import { convert, filled, gatherValues, newValues } from '../../storage/values.ts'
import { allAxesOf, type CallerTensor, callerTensors, isStructured, storedAxis } from './axes.ts'
import { bindingOf } from './names.ts'
import { tablesOf } from './ready-tables.ts'
import { concat, type Known } from './split-entries.ts'
import type { Piece, Source } from './types.ts'

export interface ReadyParts {
  readonly sources: readonly Source[]
  readonly pieces: readonly Piece[]
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * @throws SptError `bind/part` (something else than arrays, or the whole tensor too), `bind/missing-part`,
 * `bind/missing-table`, `bind/table`, `bind/part-shared`, `format/overlap`, and as `validateStored`
 */
export function bindReady(
  kernel: Kernel1,
  tensors: ReadonlyMap<string, Tensor>,
  sources: readonly Source[],
  known: Known,
): ReadyParts {
  const tables = new Map<string, Int32Array>()
  const made: { source: Source; pieces: Piece[] }[] = []
  for (const t of callerTensors(kernel)) {
    const brought = t.buffers.filter((b) => isPart(kernel, b.name, tensors.get(b.name)))
    if (brought.length === 0) continue
    checkParts(t, brought, tensors)
    checkShared(kernel, t, sources, tensors)
    for (const [name, table] of tablesOf(kernel, t, tensors, known)) tables.set(name, table)
    made.push(fromParts(kernel, t, tensors, tables, known))
  }
  for (const [name, tensor] of tensors)
    if (bindingOf(kernel, name, tensor).kind === 'table' && !tables.has(name))
      fail({
        code: 'bind/table',
        message: `${name} is a table of a format, which is made while a tensor is brought into it`,
        expected: 'tables only with ready-made parts',
        hint: `leave ${name} out, or bind all parts of the tensor`,
      })
  return { sources: made.map((m) => m.source), pieces: made.flatMap((m) => m.pieces), tables }
}

export const isPart = (kernel: Kernel1, name: string, tensor: Tensor | undefined): boolean =>
  tensor !== undefined && bindingOf(kernel, name, tensor).kind === 'part'

function checkParts(
  t: CallerTensor,
  brought: readonly Buffer1[],
  tensors: ReadonlyMap<string, Tensor>,
): void {
  for (const b of brought) {
    const { kind } = tensors.get(b.name)!
    if (kind !== 'stored')
      fail({
        code: 'bind/part',
        message: `${b.name} is a part of ${t.name}, and is bound to a ${kind} tensor`,
        expected: `ready-made arrays over [${b.axes.join(', ')}]`,
        hint: `bind ${t.name} by its coordinates, and it is brought into its parts`,
      })
  }
  if (tensors.has(t.name) && t.first.name !== t.name)
    fail({
      code: 'bind/part',
      message: `both ${t.name} and its part ${brought[0]!.name} are bound`,
      expected: `${t.name}, or ${t.buffers.map((b) => b.name).join(', ')}`,
      hint: 'leave one of them out',
    })
  const missing = t.buffers.filter((b) => !brought.includes(b))
  if (missing.length > 0)
    fail({
      code: 'bind/missing-part',
      message: `${brought.map((b) => b.name).join(', ')} of ${t.name} ${brought.length > 1 ? 'are' : 'is'} bound, and ${missing.map((b) => b.name).join(', ')} not`,
      expected: `all parts of ${t.name}, or ${t.name} itself`,
      hint: `bind ${missing[0]!.name} too (empty arrays where it holds nothing), or bind ${t.name}`,
    })
}

/** What has the structure of ready-made parts is ready-made, or an output over the same axes. */
function checkShared(
  kernel: Kernel1,
  t: CallerTensor,
  sources: readonly Source[],
  tensors: ReadonlyMap<string, Tensor>,
): void {
  const axes = allAxesOf(kernel)
  const structured = t.axes.filter((a) => isStructured(axes, a))
  const shares = (over: readonly string[]): boolean =>
    structured.length > 0 && structured.every((a) => over.includes(a))
  const source = sources.find((s) => shares(s.axes))
  const refuse = (name: string): never =>
    fail({
      code: 'bind/part-shared',
      message: `${name} has the structure of ${t.name}, whose parts are ready-made`,
      expected: `ready-made parts of ${name} as well, over the same axes`,
      hint: `bind ${t.name} by its coordinates, or all parts of ${name}`,
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
  kernel: Kernel1,
  t: CallerTensor,
  tensors: ReadonlyMap<string, Tensor>,
  tables: ReadonlyMap<string, Int32Array>,
  known: Known,
): { source: Source; pieces: Piece[] } {
  const axes = allAxesOf(kernel)
  const parts = t.buffers.map((b) => {
    const tensor = tensors.get(b.name) as StoredTensor
    const own = b.axes.map((a) => storedAxis(axes, a))
    const storage = validateStored(own, known.extents, tensor, {
      widths: widthsOf(own, known.params),
      paddings: paddingsOf(own, known.params),
    })
    return partEntries(kernel, t, b, storage, tensor, tables, known)
  })
  const columns = t.axes.map((_, d) => concat(parts.map((p) => p.columns[d]!)))
  const total = parts.reduce((n, p) => n + p.values.length, 0)
  const values = newValues(t.first.dtype, total)
  const shape = t.axes.map((a) => known.extents.get(a)!)
  const source: Source = {
    name: t.name,
    axes: t.axes,
    columns,
    tensor: { kind: 'coords', shape, coords: columns, values, dtype: t.first.dtype },
  }
  let at = 0
  const begins: number[] = []
  const pieces = parts.map((p): Piece => {
    begins.push(at)
    values.set(p.values, at)
    const entries = allocate(p.values.length, 'entries')
    for (let e = 0; e < entries.length; e++) entries[e] = at + e
    at += entries.length
    return { source, entries, columns: p.stored, order: 'unknown' }
  })
  checkDisjoint({
    axes: t.axes,
    shape,
    columns,
    parts: t.buffers.map((b, k) => ({ name: b.name, begin: begins[k]! })),
    hint: `take it out of one of them, or bind ${t.name} by its coordinates`,
  })
  return { source, pieces }
}

/** The elements of one part that lie in the tensor, with their coordinates there and on the stored axes. */
function partEntries(
  kernel: Kernel1,
  t: CallerTensor,
  b: Buffer1,
  storage: Storage,
  tensor: StoredTensor,
  tables: ReadonlyMap<string, Int32Array>,
  known: Known,
): { columns: Int32Array[]; stored: Map<string, Int32Array>; values: ValueArray } {
  const held = elements(storage, b.axes)
  let stored = held.columns
  let now = new Map(stored)
  for (const r of kernel.reformats.toReversed()) {
    const part = r.instance.parts.find((p) => p.instance.order.every((a) => now.has(a)))
    if (!part) continue
    const { order, inverse } = part.instance
    const loads = new Map(
      part.instance.tables.map((table) => [
        table.name,
        { values: tables.get(table.name)!, fill: evaluate(table.fill, known.params) },
      ]),
    )
    const old = applyMap(
      { map: inverse, inputs: order, sizes: known.params, tables: loads },
      order.map((a) => now.get(a)!),
    )
    now = new Map([...now].filter(([a]) => !order.includes(a)))
    r.from.forEach((a, d) => {
      now.set(a.name, old[d]!)
    })
  }
  const { dtype, fill } = t.first
  const all = convert(
    storedValues(storage, tensor, fill),
    tensor.dtype,
    dtype,
    (at) => `element ${at} of ${t.name}`,
  )
  let values = gatherValues({ values: all, dtype }, held.positions)
  let columns = t.axes.map((a) => now.get(a)!)
  const extents = t.axes.map((a) => known.extents.get(a)!)
  // What a block has as fill is nothing that the tensor holds; nor what a level is padded with.
  const last = storage.trees.map((tree) => storage.levels.get(tree[tree.length - 1]!)!.axis.kind)
  const blocks =
    storage.axes.some(isPadded) || last.some((kind) => kind === 'dense_fixed' || kind === 'dense_variable')
  const kept = inside(columns, extents, blocks ? { values, fill: filled(dtype, 1, fill)[0]! } : null)
  if (kept) {
    columns = columns.map((c) => gather(c, kept))
    stored = new Map([...stored].map(([a, c]) => [a, gather(c, kept)]))
    values = gatherValues({ values, dtype }, kept)
  }
  return { columns, stored, values }
}

/** Elements of a storage that are no padding: their positions and coordinates. */
function elements(
  storage: Storage,
  axes: readonly string[],
): { positions: Int32Array; columns: Map<string, Int32Array> } {
  const columns = new Map<string, Int32Array>()
  let positions: Int32Array = new Int32Array(1)
  for (const tree of storage.trees) {
    const own = expandTree(storage, tree)
    const size = storage.levels.get(tree[tree.length - 1]!)!.positions
    const n = positions.length * own.positions.length
    const next = allocate(n, 'elements')
    const inner = own.positions.length
    for (let e = 0; e < n; e++) next[e] = positions[Math.floor(e / inner)]! * size + own.positions[e % inner]!
    for (const [a, c] of columns) {
      const to = allocate(n, 'elements')
      for (let e = 0; e < n; e++) to[e] = c[Math.floor(e / inner)]!
      columns.set(a, to)
    }
    tree.forEach((a, d) => {
      const to = allocate(n, 'elements')
      for (let e = 0; e < n; e++) to[e] = own.coords[d]![e % inner]!
      columns.set(a, to)
    })
    positions = next
  }
  return { positions, columns: new Map(axes.map((a) => [a, columns.get(a)!])) }
}

/** Places within the extents whose value is not fill; `null`: all are. */
function inside(
  columns: readonly Int32Array[],
  extents: readonly number[],
  blocks: { readonly values: ValueArray; readonly fill: number } | null,
): Int32Array | null {
  const n = columns[0]!.length
  const out = allocate(n, 'entries')
  let count = 0
  for (let e = 0; e < n; e++) {
    let within = blocks === null || !Object.is(blocks.values[e], blocks.fill)
    for (let d = 0; within && d < columns.length; d++) {
      const c = columns[d]![e]!
      within = c >= 0 && c < extents[d]!
    }
    if (within) out[count++] = e
  }
  return count === n ? null : out.subarray(0, count)
}
