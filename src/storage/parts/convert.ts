/**
 * Tensors into formats and compositions, and back: coordinates are the common ground. Entries in an order that a
 * format keeps are not ordered again. Arrays of the input are never written, and may be arrays of the result.
 */
import { fail, invariant } from '../../ast/diagnostic.ts'
import { allocate, gather, gatherInto } from '../../columns/allocate.ts'
import { applyMap } from '../../columns/coordmap.ts'
import { ascends } from '../../columns/keys.ts'
import { renewed, reusing } from '../../columns/scratch.ts'
import { hasIndices, isPadded } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import type { Instance, PartInstance } from '../../ir/format.ts'
import { checkCoords } from '../check.ts'
import type { EntryValues, Given } from '../given.ts'
import { buildMeasured } from '../levels/reformat.ts'
import { giveBackOf } from '../queries/queries.ts'
import { toCoords } from '../read/coords.ts'
import { scatterValues } from '../read/scatter.ts'
import type { Storage } from '../storage.ts'
import { listsOf, withSegments } from '../tables.ts'
import type { CoordTensor, ValueArray } from '../tensor.ts'
import { gatherValues, newValues } from '../values.ts'
import { splitEntries } from './compose.ts'
import { placeEntries } from './place.ts'

/** One part of a tensor: a buffer over the axes of its format. */
export interface StoredPart {
  readonly part: PartInstance
  readonly storage: Storage
  /** In position order; `fill` where nothing is stored. */
  readonly values: ValueArray
  /** Arrays that the inverse map loads, by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
  /** Values of the part's measured sizes. */
  readonly measured: ReadonlyMap<string, number>
  /** Positions that hold a coordinate of the tensor; `null` where only the arrays are known. */
  readonly held: number | null
}

/** A tensor in a format or composition. */
export interface StoredParts {
  readonly kind: 'parts'
  readonly instance: Instance
  readonly shape: readonly number[]
  readonly dtype: CoordTensor['dtype']
  readonly fill: number
  readonly parts: readonly StoredPart[]
  /** What came with the data: sizes and lists that the formats mention. */
  readonly given: Given
}

/**
 * Brings a tensor into a format or composition. Values at equal coordinates add up. O(entries × axes + positions).
 *
 * @param fill what positions without an entry hold
 * @throws SptError `format/overlap`, `format/leak`, `format/not-inverse`, `format/map-range`, `format/claim`,
 * `bind/shape`, `bind/coordinate-range`, and as `buildStorage` and `scatterValues`
 */
export function convertTensor(
  tensor: CoordTensor | StoredParts,
  to: Instance,
  given: Given,
  fill = 0,
): StoredParts {
  const from = tensor.kind === 'parts' ? partsToCoords(tensor) : tensor
  checkRank(from.shape, to)
  checkCoords(to.over, new Map(to.over.map((a, k) => [a.name, from.shape[k]!])), from.coords)
  const values = from.values ? { values: from.values, dtype: from.dtype } : null
  // Parts of entries that ascend ascend; others may too.
  const ascending = ascends(from.coords) || undefined
  const parts = reusing(() => {
    const split = splitEntries(to, from.coords, values, given, ascending)
    return to.parts.map((part, k) => {
      const { entries } = split[k]!
      const coords = entries
        ? from.coords.map((c) => gatherInto(renewed(entries.length, 'coordinates'), c, entries))
        : from.coords
      const own = entries && values ? { ...values, values: gatherValues(values, entries) } : values
      const made = storePart(part, to, coords, own, from.dtype, given, fill, ascending)
      giveBackOf(coords, [...from.coords, ...(made.storage.entries?.coords ?? [])])
      return made
    })
  })
  return { kind: 'parts', instance: to, shape: from.shape, dtype: from.dtype, fill, parts, given }
}

function storePart(
  part: PartInstance,
  to: Instance,
  coords: readonly Int32Array[],
  values: EntryValues | null,
  dtype: CoordTensor['dtype'],
  given: Given,
  fill: number,
  ascending: boolean | undefined,
): StoredPart {
  const { instance } = part
  const { columns, tables, distinct } = placeEntries(part, to.over, coords, values, given, {
    ascending,
    inRange: true,
  })
  const byAxis = new Map(instance.order.map((name, k) => [name, columns[k]!]))
  const own = instance.axes.map((a) => byAxis.get(a.name)!)
  const { storage, measured } = buildMeasured(
    instance.axes,
    withSegments(given).sizes,
    new Set(instance.measured.map((m) => m.name)),
    own,
    { duplicates: 'share', distinct, inRange: true, claims: instance.claims },
  )
  const stored = scatterValues(storage, { coords: own, values: values?.values ?? null, dtype }, dtype, fill)
  return { part, storage, values: stored, tables, measured, held: held(storage) }
}

/** Different positions among those of the entries. */
function held(storage: Storage): number {
  const { positions, coords, distinct } = storage.entries!
  if (!positions || distinct) return coords[0]!.length
  const seen = new Uint8Array(storage.size)
  let n = 0
  for (let e = 0; e < positions.length; e++) {
    n += 1 - seen[positions[e]!]!
    seen[positions[e]!] = 1
  }
  return n
}

/**
 * All that is stored, with its coordinates; part after part, each in position order. Padding is left out, and so are
 * elements of dense levels that equal the fill.
 * @throws SptError as `toCoords` and `applyMap`
 */
export function partsToCoords(stored: StoredParts): CoordTensor {
  const { shape, dtype } = stored
  const found = stored.parts.map((p) => partToCoords(p, stored))
  const [only] = found
  if (only && found.length === 1) return { kind: 'coords', shape, dtype, ...only }
  const n = found.reduce((sum, f) => sum + f.values.length, 0)
  const coords = shape.map(() => allocate(n, 'entries'))
  const values = newValues(dtype, n)
  let at = 0
  for (const f of found) {
    for (const [k, c] of f.coords.entries()) coords[k]!.set(c, at)
    values.set(f.values, at)
    at += f.values.length
  }
  return { kind: 'coords', shape, coords, values, dtype }
}

/** What a part holds, with its coordinates in the tensor. */
export function partToCoords(
  p: StoredPart,
  stored: StoredParts,
): { readonly coords: readonly Int32Array[]; readonly values: ValueArray } {
  const { storage, values } = p
  const elements = toCoords(storage, values, stored.dtype, isExact(storage) ? {} : { drop: stored.fill })
  const coords = originalCoords(p, stored, elements.coords)
  const kept = within(coords, stored.shape)
  const held = { values: elements.values!, dtype: stored.dtype }
  return kept
    ? { coords: coords.map((c) => gather(c, kept)), values: gatherValues(held, kept) }
    : { coords, values: held.values }
}

/**
 * Coordinates on a part's axes, one array for each axis of its storage, as coordinates of the tensor; those of
 * padding may be outside of it.
 */
export function originalCoords(
  { part, storage, tables }: StoredPart,
  stored: StoredParts,
  coords: readonly Int32Array[],
): Int32Array[] {
  const { instance } = part
  const byAxis = new Map(storage.axes.map((a, k) => [a.name, coords[k]!]))
  const { sizes } = withSegments(stored.given)
  const own = instance.tables.map(({ name, fill }) => {
    const values = tables.get(name)
    invariant(values, `no table ${name}`)
    return [name, { values, fill: evaluate(fill, sizes) }] as const
  })
  const loads = new Map([...listsOf(stored.given), ...own])
  return applyMap(
    { map: instance.inverse, inputs: instance.order, sizes, tables: loads },
    instance.order.map((name) => byAxis.get(name)!),
  )
}

/** What a part holds: where, and the coordinates in the tensor; each position once. O(entries). */
export function heldEntries(p: StoredPart, stored: StoredParts): HeldEntries {
  const { entries, size } = p.storage
  if (!entries) return { positions: null, coords: partToCoords(p, stored).coords }
  const { positions, distinct } = entries
  const n = entries.coords[0]!.length
  if (!positions || distinct || p.held === n)
    return {
      positions: positions ?? counting(n),
      coords: originalCoords(p, stored, entries.coords),
    }
  const seen = new Uint8Array(size)
  const first = allocate(p.held!, 'entries')
  let k = 0
  for (let e = 0; e < n; e++) {
    if (seen[positions[e]!] === 0) first[k++] = e
    seen[positions[e]!] = 1
  }
  const coords = entries.coords.map((c) => gather(c, first))
  return { positions: gather(positions, first), coords: originalCoords(p, stored, coords) }
}

function counting(n: number): Int32Array {
  const out = allocate(n, 'positions')
  for (let e = 0; e < n; e++) out[e] = e
  return out
}

export interface HeldEntries {
  /** `null` where only the arrays are known: those are the elements that differ from the fill. */
  readonly positions: Int32Array | null
  readonly coords: readonly Int32Array[]
}

/** Whether every position that is no padding holds an entry. */
function isExact(storage: Storage): boolean {
  const [tree] = storage.trees
  const last = tree && storage.levels.get(tree[tree.length - 1]!)!.axis
  if (storage.axes.some(isPadded)) return false
  return storage.trees.length === 1 && last !== undefined && (hasIndices(last) || last.kind === 'bitmap')
}

/** The entries inside of the tensor; `null`: all. */
function within(coords: readonly Int32Array[], shape: readonly number[]): Int32Array | null {
  const n = coords[0]?.length ?? 0
  const inside = (e: number): boolean => {
    for (let k = 0; k < coords.length; k++)
      if (coords[k]![e]! < 0 || coords[k]![e]! >= shape[k]!) return false
    return true
  }
  let count = 0
  for (let e = 0; e < n; e++) if (inside(e)) count++
  if (count === n) return null
  const out = allocate(count, 'entries')
  let k = 0
  for (let e = 0; e < n; e++) if (inside(e)) out[k++] = e
  return out
}

function checkRank(shape: readonly number[], to: Instance): void {
  if (shape.length === to.over.length) return
  fail({
    code: 'bind/shape',
    message: `a tensor of ${shape.length} dimensions is brought into ${to.text}, which is over ${to.over.length}`,
    expected: `a tensor over ${to.over.map((a) => a.name).join(', ')}`,
    hint: 'choose a format over as many dimensions',
  })
}
