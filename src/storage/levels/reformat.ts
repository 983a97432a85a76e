/** Building what a format describes: measures what it leaves open first. */
import { fail } from '../../ast/diagnostic.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Storage } from '../storage.ts'
import { type BuildInput, buildStorage } from './build.ts'

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
  options: Pick<BuildInput, 'duplicates' | 'distinct' | 'inRange' | 'claims'> = {},
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
  const paddings = paddingsOf(axes, known)
  const storage = buildStorage({ axes, extents, widths, paddings, coords, ...options })
  for (const [axis, name] of open)
    found.set(name, Math.max(found.get(name) ?? 0, storage.levels.get(axis)!.width!))
  const even = [...open].every(([axis, name]) => storage.levels.get(axis)!.width === found.get(name))
  if (even) return { storage, measured: found }
  for (const [axis, name] of open) widths.set(axis, found.get(name)!)
  return { storage: buildStorage({ axes, extents, widths, paddings, coords, ...options }), measured: found }
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
    extents.set(a.name, Math.max(0, evaluate(a.extent, known)))
  }
  return { extents, found }
}

/** Values of what axes are padded with. @throws SptError `bind/missing-size` */
export function paddingsOf(
  axes: readonly StoredAxis[],
  sizes: ReadonlyMap<string, number>,
): ReadonlyMap<string, number> {
  const out = new Map<string, number>()
  for (const a of axes) {
    if (a.kind !== 'sparse_fixed' || !a.padding) continue
    if (!isKnown(a.padding, sizes)) measuredName(a, 'padding', a.padding, sizes, new Set())
    out.set(a.name, evaluate(a.padding, sizes))
  }
  return out
}

/** Widths of sparse_fixed axes that `sizes` say. */
export const widthsOf = (
  axes: readonly StoredAxis[],
  sizes: ReadonlyMap<string, number>,
): Map<string, number> =>
  new Map(
    axes.flatMap((a) =>
      a.kind === 'sparse_fixed' && isKnown(a.width, sizes)
        ? [[a.name, evaluate(a.width, sizes)] as const]
        : [],
    ),
  )

export const isKnown = (e: Expr, sizes: ReadonlyMap<string, number>): boolean =>
  [...freeVars(e)].every((v) => sizes.has(v))

function measuredName(
  axis: StoredAxis,
  what: 'width' | 'extent' | 'padding',
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
