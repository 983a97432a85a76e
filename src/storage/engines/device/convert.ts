/** From a resident tensor to a resident tensor in another format. */
import { fail, invariant, SptError } from '../../../ast/diagnostic.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import { isNonunique, type StoredAxis } from '../../../ir/axis.ts'
import { add, int, load, variable } from '../../../ir/expr.ts'
import type { Instance, PartTree, Query } from '../../../ir/format.ts'
import type { Device } from '../../../runtime/device.ts'
import type { Given } from '../../given.ts'
import { buildStorage } from '../../levels/build.ts'
import { convertTensor } from '../../parts/convert.ts'
import { treesOf } from '../../storage.ts'
import { type Column, natural, read, update } from './column-types.ts'
import { Frame } from './frame.ts'
import { type Inverse, inverseTables } from './inverse.ts'
import { get, store } from './kernel.ts'
import { type Context, type DevicePart, sizesOf, storePart } from './place.ts'
import type { Queue } from './queue.ts'
import { type ResidentParts as Parts, queueOf, type Resident, ResidentParts } from './resident.ts'
import { entriesOf } from './source.ts'
import { split } from './split.ts'
import { sumsOfEqual } from './values.ts'

/** A conversion to be run many times: its kernels are compiled in the first run. */
export interface ConvertPlan {
  /** @throws SptError as `convert` */
  run(tensor: Resident, given: Given): Promise<ResidentParts>
}

/** `fill`: what positions without an entry hold. */
export function convertPlan(device: Device, to: Instance, fill = 0): ConvertPlan {
  const proofs = provenance(to).parts
  const checked = proofs.map((p) => p.inverse !== 'checked' && p.range !== 'checked')
  const queue = queueOf(device)
  return {
    async run(tensor, given) {
      check(tensor, to, queue)
      const before = queue.live
      try {
        return await run(queue, tensor, to, given, fill, checked)
      } catch (e) {
        queue.rollback(before)
        if (e instanceof SptError && OF_COORDINATES.has(e.diagnostics[0]?.code ?? ''))
          await refuseAsHost(queue, tensor, to, given).finally(() => queue.rollback(before))
        throw e
      }
    },
  }
}

/** What is refused for a coordinate. */
const OF_COORDINATES: ReadonlySet<string> = new Set([
  'format/overlap',
  'format/leak',
  'format/map-range',
  'format/not-inverse',
])

/** The host finds the same, and says more of it: the first coordinate, the parts that hold it, where it goes. */
async function refuseAsHost(q: Queue, tensor: Resident, to: Instance, given: Given): Promise<void> {
  const dims = to.over.map((a, k) => ({ name: a.name, extent: tensor.shape[k]! }))
  const { frame, values } = await sourceOf(q, tensor, dims, sizesOf(given))
  const coords: Int32Array[] = []
  for (const d of dims) {
    const column = await q.download(frame.columns.get(d.name)!)
    invariant(column instanceof Int32Array, 'coordinates are of i32')
    coords.push(column)
  }
  const stored = values && (await q.download(values))
  const entry = frame.entry && (await q.download(frame.entry))
  const own = stored && (entry ? stored.slice(0, frame.n).map((_, e) => stored[entry[e]!]!) : stored)
  convertTensor({ kind: 'coords', shape: tensor.shape, coords, values: own, dtype: tensor.dtype }, to, given)
}

function check(tensor: Resident, to: Instance, queue: Queue): void {
  if (tensor.queue !== queue)
    fail({
      code: 'device/foreign-buffer',
      message: 'the tensor lives on another device',
      expected: `a tensor on ${queue.device.name}`,
      hint: 'download it there and upload it here',
    })
  if (tensor.shape.length !== to.over.length)
    fail({
      code: 'bind/shape',
      message: `a tensor of ${tensor.shape.length} dimensions is brought into ${to.text}, which is over ${to.over.length}`,
      expected: `a tensor over ${to.over.map((a) => a.name).join(', ')}`,
      hint: 'choose a format over as many dimensions',
    })
}

async function run(
  q: Queue,
  tensor: Resident,
  to: Instance,
  given: Given,
  fill: number,
  checked: readonly boolean[],
): Promise<ResidentParts> {
  const dims = to.over.map((a, k) => ({ name: a.name, extent: tensor.shape[k]! }))
  const sizes = sizesOf(given)
  const lists = new Map<string, Column>()
  for (const [name, list] of given.lists) lists.set(name, await q.upload(list, 'i32', name))
  const source = await sourceOf(q, tensor, dims, sizes)
  const { frame } = source
  for (const [name, list] of lists) frame.tables.set(name, list)
  const asked =
    !source.distinct && source.values && asksForValues(to)
      ? await sumsOfEqual(frame, source.values, dims)
      : { sums: source.values, distinct: source.distinct }
  const context: Context = {
    queue: q,
    given,
    dims,
    stored: source.values,
    values: asked.sums,
    distinct: asked.distinct,
    lists,
    sets: await uploadSets(q, given, dims),
    dtype: tensor.dtype,
    fill,
  }
  const parts: DevicePart[] = []
  await split(frame, to, context, async (k, f) => {
    parts[k] = await storePart(f, to.parts[k]!, context, checked[k] ?? false)
  })
  await q.flush()
  if (source.owned) q.release(source.values)
  if (asked.sums !== source.values) q.release(asked.sums)
  for (const levels of context.sets.values()) for (const l of levels) q.release(l.indptr, l.indices)
  const used = new Set(parts.flatMap((p) => [...p.tables.values()]))
  q.release(...[...lists.values()].filter((l) => !used.has(l)))
  return new ResidentParts({
    queue: q,
    instance: to,
    shape: tensor.shape,
    dtype: tensor.dtype,
    fill,
    parts,
    given,
  })
}

/** Whether it matters to the format which values there are. */
function asksForValues({ tree, parts }: Instance): boolean {
  const asks = (queries: readonly Query[]): boolean =>
    queries.some((x) => x.kind === 'value' || x.kind === 'largest')
  const inTree = (t: PartTree): boolean =>
    t.kind !== 'leaf' &&
    (asks(t.queries) || (t.kind === 'index' ? t.children : t.cases.map((c) => c.child)).some(inTree))
  return inTree(tree) || parts.some((p) => asks(p.instance.queries))
}

interface Source {
  readonly frame: Frame
  readonly values: Column | null
  /** Whether `values` were made for this conversion. */
  readonly owned: boolean
  /** Whether no two entries have the same coordinates. */
  readonly distinct: boolean
}

async function sourceOf(
  q: Queue,
  tensor: Resident,
  dims: Context['dims'],
  sizes: ReadonlyMap<string, number>,
): Promise<Source> {
  if (tensor.kind === 'coords') {
    const frame = new Frame(q, tensor.coords[0]?.length ?? 0, sizes, new Map())
    for (const [k, d] of dims.entries()) {
      frame.set(d.name, tensor.coords[k]!, false)
      frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
    }
    return { frame, values: tensor.values, owned: false, distinct: false }
  }
  if (tensor.kind === 'stored') {
    const { axes, levels, dtype, size, values } = tensor
    const stored = { trees: chains(axes, levels), size, values, dtype, fill: 0 }
    const exprs = axes.map((a) => variable(a.name))
    const frame = await entriesOf(q, stored, { dims, exprs, sizes, tables: new Map() })
    return { frame, values, owned: false, distinct: !axes.some(isNonunique) }
  }
  return together(q, tensor, dims)
}

const chains = (axes: readonly StoredAxis[], levels: DevicePart['levels']) =>
  treesOf(axes).map((tree) => tree.map((a) => levels.get(a.name)!))

/** The entries of all parts, one part after the other. */
async function together(q: Queue, tensor: Parts, dims: Context['dims']): Promise<Source> {
  const sizes = sizesOf(tensor.given)
  const found = await Promise.all(
    tensor.parts.map(async (p) => {
      const own = new Map([...sizes, ...p.measured])
      const stored = {
        trees: chains(p.part.instance.axes, p.levels),
        size: p.size,
        values: p.values,
        dtype: tensor.dtype,
        fill: tensor.fill,
      }
      const inverse: Inverse = {
        dims,
        exprs: p.part.instance.inverse,
        sizes: own,
        tables: inverseTables(p.part.instance, p.tables, { sizes: own }),
      }
      return { frame: await entriesOf(q, stored, inverse), values: p.values }
    }),
  )
  const n = found.reduce((sum, f) => sum + f.frame.n, 0)
  const all = new Frame(q, n, sizes, new Map())
  for (const d of dims) {
    const column = all.make(d.name)
    let at = 0
    for (const { frame } of found) {
      append(q, frame.columns.get(d.name)!, null, column, at)
      at += frame.n
    }
    all.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  }
  const values = q.column(n, tensor.dtype, 'values')
  let at = 0
  for (const f of found) {
    append(q, f.values, f.frame.entry, values, at, f.frame.n)
    at += f.frame.n
    f.frame.release()
  }
  const [only, ...others] = found
  if (only && others.length === 0) all.sortedBy = only.frame.sortedBy
  // Every coordinate is in one part, once.
  return { frame: all, values, owned: true, distinct: true }
}

/** `to[at + e] = from[entry[e]]`. */
function append(q: Queue, from: Column, entry: Column | null, to: Column, at: number, n = from.length): void {
  q.launch({
    key: `append ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_from: read(from), ...(entry ? { x_entry: natural(entry) } : {}), x_to: update(to) },
    sizes: { x_at: at },
    body: (e) => [
      store('x_to', add(e, variable('x_at')), load('x_from', [entry ? get('x_entry', e) : e], from.dtype)),
    ],
  })
}

/** Sets as trees, made on the host: segments of each coordinate of the first dimension, then level by level. */
async function uploadSets(q: Queue, given: Given, dims: Context['dims']): Promise<Context['sets']> {
  const out = new Map<string, { readonly indptr: Column; readonly indices: Column }[]>()
  for (const [name, coords] of given.sets) {
    const axes = dims.map((d, k): StoredAxis => {
      const parent = dims[k - 1]?.name ?? null
      return parent === null
        ? { kind: 'dense_fixed', name: d.name, parent, extent: int(d.extent) }
        : {
            kind: 'sparse_variable',
            name: d.name,
            parent,
            extent: int(d.extent),
            ordered: true,
            unique: true,
          }
    })
    const { levels } = buildStorage({
      axes,
      extents: new Map(dims.map((d) => [d.name, d.extent])),
      coords: inside(coords, dims),
    })
    const uploaded = []
    for (const d of dims.slice(1)) {
      const level = levels.get(d.name)!
      uploaded.push({
        indptr: await q.upload(level.indptr!, 'i32', name),
        indices: await q.upload(level.indices!, 'i32', name),
      })
    }
    out.set(name, uploaded)
  }
  return out
}

/** The coordinates of a set that a tensor can have. */
function inside(coords: readonly Int32Array[], dims: Context['dims']): readonly Int32Array[] {
  const kept = new Uint8Array(coords[0]?.length ?? 0).fill(1)
  for (const [k, c] of coords.entries())
    for (let e = 0; e < kept.length; e++) if (c[e]! < 0 || c[e]! >= dims[k]!.extent) kept[e] = 0
  return kept.includes(0) ? coords.map((c) => c.filter((_, e) => kept[e] === 1)) : coords
}
