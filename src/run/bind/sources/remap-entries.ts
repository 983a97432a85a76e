/**
 * Coordinate remapping: from the caller's coordinates to those of the stored axes, one format after the other. The part and position of a
 * coordinate are determined by all sources over the replaced axes together, so tensors of one structure are split identically.
 */
import { failWith } from '../../../ast/diagnostics/diagnostic.ts'
import { type Coroutine, within } from '../../../ast/work.ts'
import { allocate, concat, gather, withScratchPool } from '../../../columns/allocate.ts'
import { isDense } from '../../../ir/coordinates/axis.ts'
import type { Kernel1, Reformat } from '../../../ir/coordinates/stage1.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import { setTrees } from '../../../storage/build-storage.ts'
import { dependsOnValues, forEachPart } from '../../../storage/convert.ts'
import { HOST } from '../../../storage/engines/host/engine.ts'
import { valuesOf } from '../../../storage/engines/host/map-reduce.ts'
import type { FormatOperands } from '../../../storage/format-operands.ts'
import { remapCoordinates } from '../../../storage/remapping/part-assembly.ts'
import { type EntryValues, filledArray, newValues } from '../../../storage/tensor.ts'
import { bindPlan } from '../bind-plan.ts'
import { distinctLists, type EntryList } from './entry-list.ts'

interface Remapped {
  /** The entries of all sources, on stored axes. */
  readonly lists: readonly EntryList[]
  readonly tables: ReadonlyMap<string, Int32Array>
  /** Milliseconds per format, for reports. */
  readonly times: ReadonlyMap<Reformat, number>
}

/** Measures the open extents of some axes. */
export type Measure = (axes: ReadonlySet<string>, lists: readonly EntryList[]) => void

/**
 * Remaps all sources. `ready`: axes of ready-made parts, and axes whose arrays are elsewhere. Throws SptError `format/…` if a format is
 * wrong: a coordinate in two parts, in no part, or out of range.
 */
export function* remapSources(
  kernel: Kernel1,
  sources: readonly EntryList[],
  known: FormatOperands,
  measure: Measure = () => {},
  ready: readonly Part[] = [],
): Coroutine<Remapped> {
  let lists = sources
  const tables = new Map<string, Int32Array>()
  const times = new Map<Reformat, number>()
  for (const r of kernel.reformats) {
    const start = performance.now()
    const from = r.from.map((a) => a.name)
    // Extents that an earlier format left open.
    measure(new Set(from), lists)
    const mine = lists.filter((p) => p.isOver(from))
    // All parts of this format are ready-made. Continuing would build an empty tensor, which not every format permits.
    if (mine.length === 0 && ready.some((p) => isPartOf(p, r))) continue
    checkPrefixes(r, lists, mine)
    yield
    const fresh = yield* reformat(kernel, r, mine, known, tables)
    lists = [...lists.filter((p) => !mine.includes(p)), ...fresh]
    times.set(r, performance.now() - start)
  }
  return { lists, tables, times }
}

type Part = Pick<EntryList, 'axes'>

const isPartOf = ({ axes }: Part, { instance }: Reformat): boolean =>
  instance.parts.some((p) => p.instance.order.every((a) => axes.includes(a)))

/** Structure on only the first replaced axes must be that of elements. Throws SptError `bind/structure-format`. */
function checkPrefixes(r: Reformat, lists: readonly EntryList[], mine: readonly EntryList[]): void {
  const from = r.from.map((a) => a.name)
  const leaving = r.from.filter((a) => !isDense(a)).map((a) => a.name)
  for (const p of lists) {
    if (mine.includes(p) || !leaving.some((a) => p.axes.includes(a))) continue
    const own = from.filter((a) => p.axes.includes(a))
    const at = (q: EntryList, e: number): string =>
      q
        .over(own)
        .map((c) => c[e])
        .join(', ')
    const held = new Set<string>()
    for (const q of mine) for (let e = 0; e < q.count; e++) held.add(at(q, e))
    for (let e = 0; e < p.count; e++) {
      if (held.has(at(p, e))) continue
      failWith(
        'bind/structure-format',
        `${p.name} is bound to structure with (${own.join(', ')}) = (${at(p, e)}), where nothing is stored over ${from.join(', ')}, and ${r.format} holds coordinates of elements only`,
        {
          expected: `structure on the whole chain, or coordinates that a tensor over ${from.join(', ')} has`,
          hint: `bind structure to ${from[from.length - 1]}, or leave the axes as declared`,
        },
      )
    }
  }
}

function* reformat(
  kernel: Kernel1,
  r: Reformat,
  mine: readonly EntryList[],
  known: FormatOperands,
  tables: Map<string, Int32Array>,
): Coroutine<EntryList[]> {
  const from = r.from.map((a) => a.name)
  const { members, first } = distinctLists(mine, from)
  const union = from.map((_, d) => concat(members.map((p) => p.over(from)[d]!)))
  const values = dependsOnValues(r.instance) ? entryValuesOf(kernel, r, mine, members, first) : null
  const out: EntryList[] = []
  const [alone] = members.length === 1 ? members : []
  const asBound = alone?.order === 'ascending' && alone.axes.join() === from.join()
  const remapped = yield* remapping(r, union, values, known, asBound)
  remapped.forEach((placed, k) => {
    const { entries } = placed
    for (const [name, table] of placed.tables) tables.set(name, table)
    const { order } = r.instance.parts[k]!.instance
    const own = new Map<EntryList, { entries: Int32Array | null; columns: readonly Int32Array[] }>()
    let lo = 0
    let before = 0
    for (const p of members) {
      const n = p.count
      const hi = entries ? lowerBound(entries, before + n, lo) : lo + n
      const whole = lo === 0 && hi === placed.columns[0]!.length
      own.set(p, {
        entries: entries ? shifted(entries, lo, hi, before) : null,
        columns: whole ? placed.columns : placed.columns.map((c) => c.subarray(lo, hi)),
      })
      lo = hi
      before += n
    }
    for (const p of mine) {
      const held = own.get(first.get(p)!)!
      const columns = new Map<string, Int32Array>()
      for (const [d, c] of p.columns.entries())
        if (!from.includes(p.axes[d]!)) columns.set(p.axes[d]!, held.entries ? gather(c, held.entries) : c)
      order.forEach((a, d) => {
        columns.set(a, held.columns[d]!)
      })
      const all = held.entries && p.entries ? gather(p.entries, held.entries) : (held.entries ?? p.entries)
      // Invertible maps keep distinct coordinates distinct.
      out.push(p.part(columns, all, p.order === 'unknown' ? 'unknown' : 'distinct'))
    }
  })
  return out
}

function lowerBound(ascending: Int32Array, bound: number, from: number): number {
  let lo = from
  let hi = ascending.length
  while (lo < hi) {
    const middle = (lo + hi) >>> 1
    if (ascending[middle]! < bound) lo = middle + 1
    else hi = middle
  }
  return lo
}

function shifted(entries: Int32Array, lo: number, hi: number, by: number): Int32Array {
  const own = lo === 0 && hi === entries.length ? entries : entries.subarray(lo, hi)
  if (by === 0) return own
  const out = allocate(own.length, 'entries')
  for (let s = 0; s < own.length; s++) out[s] = own[s]! - by
  return out
}

/** Values of the tensor that the format is for, or 1; entries of other tensors have 0. `null` without lists. */
function entryValuesOf(
  kernel: Kernel1,
  r: Reformat,
  mine: readonly EntryList[],
  members: readonly EntryList[],
  first: ReadonlyMap<EntryList, EntryList>,
): EntryValues | null {
  const buffer = r.source ?? r.buffers[0]!.name
  const name = bindPlan(kernel).owners.get(buffer) ?? buffer
  const named = mine.find((p) => p.name === name && p.tensor)
  const own = named ?? mine[0]
  const tensor = named?.tensor
  const values = tensor?.values ?? null
  if (!own) return null
  const dtype = tensor && values ? tensor.dtype : 'u8'
  const parts = members.map((p) => {
    const n = p.count
    if (p !== first.get(own)) return { column: newValues(dtype, n), entry: null, n }
    return { column: values ?? filledArray('u8', n, 1), entry: values && own.entries, n }
  })
  return { values: HOST.concatenate(parts, dtype), dtype }
}

// Coordinate remapping alone, on the host: the coordinates of entries in a format or composition, without
// building arrays.

interface RemappedPart {
  /** In input order; `null`: all entries. */
  readonly entries: Int32Array | null
  /** An array for each axis of the part's `order`; may share memory with the input. */
  readonly columns: readonly Int32Array[]
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Each entry in its part, with coordinates there.
 * @param coords within `given.extents`: an array for each axis of the instance's `over`; only read
 * @param entryValues `null`: a pattern, whose values are all 1
 * @param ascending entries are known to ascend, so that no two are equal
 * @throws SptError `format/overlap`, `format/leak`, `format/map-range`, `format/not-inverse`, `format/map-overflow`
 */
export function remapping(
  { instance: to, proved }: Pick<Reformat, 'instance' | 'proved'>,
  coords: readonly Int32Array[],
  entryValues: EntryValues | null,
  given: FormatOperands,
  ascending = false,
): Coroutine<readonly RemappedPart[]> {
  const shape = to.over.map((a) => given.extents.get(a.name) ?? 0)
  const { values = null, dtype = 'f32' } = entryValues ?? {}
  const tensor = { kind: 'coords', shape, coords, values, dtype, ascending } as const
  const options = { given, fill: 0, sets: setTrees(given, to, shape) }
  const steps = forEachPart<TypedArray, RemappedPart>(
    HOST,
    tensor,
    to,
    options,
    function* (part, k, frame, context) {
      const { instance } = part
      const { coordinates, tables } = yield* remapCoordinates(frame, part, context, proved[k])
      const columns = instance.order.map((name) => valuesOf(frame, coordinates.get(name)!))
      for (const c of columns) frame.keep(c)
      const entries = frame.entry as Int32Array | null
      frame.release()
      return { entries, columns, tables: tables as RemappedPart['tables'] }
    },
  )
  return within(steps, withScratchPool)
}
