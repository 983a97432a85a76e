/** Bringing coordinates into a format: map them, measure what the format leaves open, build. */
import { fail } from '../ast/diagnostic.ts'
import type { StoredAxis } from '../ir/axis.ts'
import { evaluate } from '../ir/evaluate.ts'
import { type Expr, freeVars } from '../ir/expr.ts'
import { buildStorage } from './build.ts'
import { checkCoords } from './check.ts'
import { applyMap, type Component } from './coordmap.ts'
import { checkMap } from './mapcheck.ts'
import type { Storage } from './storage.ts'

export interface ReformatInput {
  /** Names of the old axes with their extents: the variables of `map`, in the order of `coords`. */
  readonly from: readonly Component[]
  /** New axes in the order of `map`. */
  readonly to: readonly StoredAxis[]
  readonly map: readonly Expr[]
  readonly inverse: readonly Expr[]
  readonly sizes: ReadonlyMap<string, number>
  /** Names of sizes to be measured: unknown extents become 1 + the largest coordinate. */
  readonly measured?: ReadonlySet<string> | undefined
}

/**
 * New coordinates, one array for each new axis, after a check that the inverse undoes the map.
 * @throws SptError as `applyMap` and `checkMap`, and `bind/missing-size`, `bind/coordinates`, `bind/coordinate-range`
 */
export function reformatCoords(input: ReformatInput, coords: readonly Int32Array[]): Int32Array[] {
  const { from, map, inverse, sizes } = input
  const inputs = from.map((f) => f.name)
  checkCoords(from, new Map(from.map((f) => [f.name, f.extent])), coords)
  const mapped = applyMap({ map, inputs, sizes }, coords)
  const { extents } = measureExtents(input.to, sizes, input.measured ?? new Set(), mapped)
  const to = input.to.map((a) => ({ name: a.name, extent: extents.get(a.name)! }))
  checkMap({ map, inverse, from, to, sizes, data: coords })
  return mapped
}

export interface MeasuredStorage {
  readonly storage: Storage
  /** Values of the measured sizes: the widths and extents that were left open. */
  readonly measured: ReadonlyMap<string, number>
}

/**
 * `buildStorage` over axes whose extents and widths are expressions over `sizes` and `measured`. A measured size
 * is the width of a sparse_fixed axis (the longest segment of all that share it) or an extent (1 + the largest
 * coordinate).
 * @throws SptError `bind/missing-size`, and as `buildStorage`
 */
export function buildMeasured(
  axes: readonly StoredAxis[],
  sizes: ReadonlyMap<string, number>,
  measured: ReadonlySet<string>,
  coords: readonly Int32Array[],
): MeasuredStorage {
  const { extents, found } = measureExtents(axes, sizes, measured, coords)
  const known = new Map([...sizes, ...found])
  const widths = new Map<string, number>()
  const open = new Map<string, string>()
  for (const a of axes) {
    if (a.kind !== 'sparse_fixed') continue
    if (isKnown(a.width, known)) widths.set(a.name, evaluate(a.width, known))
    else open.set(a.name, measuredName(a, 'width', a.width, known, measured))
  }
  const storage = buildStorage({ axes, extents, widths, coords })
  for (const [axis, name] of open)
    found.set(name, Math.max(found.get(name) ?? 0, storage.levels.get(axis)!.width!))
  const even = [...open].every(([axis, name]) => storage.levels.get(axis)!.width === found.get(name))
  if (even) return { storage, measured: found }
  for (const [axis, name] of open) widths.set(axis, found.get(name)!)
  return { storage: buildStorage({ axes, extents, widths, coords }), measured: found }
}

function measureExtents(
  axes: readonly StoredAxis[],
  sizes: ReadonlyMap<string, number>,
  measured: ReadonlySet<string>,
  coords: readonly Int32Array[],
) {
  const found = new Map<string, number>()
  axes.forEach((a, k) => {
    // A width that is measured too is no extent: it stays open here.
    if (isKnown(a.extent, sizes) || a.extent.kind !== 'var' || !measured.has(a.extent.name)) return
    let n = found.get(a.extent.name) ?? 0
    const c = coords[k] ?? new Int32Array(0)
    for (let e = 0; e < c.length; e++) if (c[e]! >= n) n = c[e]! + 1
    found.set(a.extent.name, n)
  })
  const known = new Map([...sizes, ...found])
  const extents = new Map<string, number>()
  for (const a of axes) {
    if (!isKnown(a.extent, known)) measuredName(a, 'extent', a.extent, known, new Set())
    extents.set(a.name, evaluate(a.extent, known))
  }
  return { extents, found }
}

const isKnown = (e: Expr, sizes: ReadonlyMap<string, number>): boolean =>
  [...freeVars(e)].every((v) => sizes.has(v))

function measuredName(
  axis: StoredAxis,
  what: 'width' | 'extent',
  e: Expr,
  sizes: ReadonlyMap<string, number>,
  measured: ReadonlySet<string>,
): string {
  if (e.kind === 'var' && measured.has(e.name)) return e.name
  const missing = [...freeVars(e)].filter((v) => !sizes.has(v))
  return fail({
    code: 'bind/missing-size',
    message: `the ${what} of axis ${axis.name} needs ${missing.join(', ')}`,
    ...(axis.span ? { span: axis.span } : {}),
    lookup: { name: missing[0]!, candidates: [...sizes.keys()] },
    expected: `a value for ${missing.join(', ')}`,
    hint: 'bind the size; a measured one can only be a whole width or a whole extent',
  })
}
