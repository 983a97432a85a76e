/** Does a format's inverse undo its map? Tried on coordinates: all of a small box, else the data and a sample. */
import { fail } from '../ast/diagnostic.ts'
import type { Expr } from '../ir/expr.ts'
import { applyMap, type Component, point } from './coordmap.ts'

/** A box of at most this many coordinates is checked whole. */
const EXHAUSTIVE = 2 ** 18
const SAMPLE = 2 ** 15

export interface MapCheck {
  /** Over the names of `from`, one expression for each of `to`. */
  readonly map: readonly Expr[]
  /** Over the names of `to`, one expression for each of `from`. */
  readonly inverse: readonly Expr[]
  readonly from: readonly Component[]
  readonly to: readonly Component[]
  /** Values of the other variables. */
  readonly sizes?: ReadonlyMap<string, number> | undefined
  /** Coordinates that will be mapped, one array for each of `from`; all are checked. */
  readonly data?: readonly Int32Array[] | undefined
}

/**
 * Checks `inverse(map(x)) = x`, that map and inverse stay in range, and that 32 bits hold every intermediate.
 * @returns how many coordinates were tried, and whether these were all of the box.
 * @throws SptError `format/not-inverse`, `format/map-range`, `format/map-overflow`, `format/map-expression`,
 * `format/unknown-name`, `format/components`, each with a coordinate where it fails
 */
export function checkMap(check: MapCheck): { readonly tried: number; readonly exhaustive: boolean } {
  checkComponents(check)
  const box = check.from.reduce((size, { extent }) => size * extent, 1)
  if (box <= EXHAUSTIVE) {
    tryAll(check, wholeBox(check.from, box))
    return { tried: box, exhaustive: true }
  }
  const sample = sampleBox(check.from)
  tryAll(check, sample)
  const data = check.data
  if (data) tryAll(check, data)
  return { tried: sample[0]!.length + (data?.[0]?.length ?? 0), exhaustive: false }
}

function checkComponents({ map, inverse, from, to }: MapCheck): void {
  if (map.length === to.length && inverse.length === from.length) return
  const [what, found, wanted] =
    map.length !== to.length
      ? (['map', map.length, to] as const)
      : (['inverse', inverse.length, from] as const)
  fail({
    code: 'format/components',
    message: `the ${what} has ${found} components for ${wanted.length} axes`,
    expected: `one component for each of ${wanted.map((w) => w.name).join(', ')}`,
    hint: 'components stand in the order of the axes',
  })
}

/** In slices, so that a check needs little memory next to the data. */
function tryAll(check: MapCheck, coords: readonly Int32Array[]): void {
  const slice = 2 ** 16
  const n = coords[0]?.length ?? 0
  const names = check.from.map((f) => f.name)
  const newNames = check.to.map((t) => t.name)
  for (let lo = 0; lo < n; lo += slice) {
    const old = coords.map((c) => c.subarray(lo, lo + slice))
    const mapped = applyMap(
      { map: check.map, inputs: names, sizes: check.sizes, outputs: check.to, strict: true },
      old,
    )
    const back = applyMap({ map: check.inverse, inputs: newNames, sizes: check.sizes, strict: true }, mapped)
    for (let k = 0; k < old.length; k++)
      for (let e = 0; e < old[k]!.length; e++)
        if (back[k]![e] !== old[k]![e])
          fail({
            code: 'format/not-inverse',
            message: `the inverse does not undo the map: ${point(names, old, e)} goes to ${point(newNames, mapped, e)}, and that back to (${back.map((c) => c[e]).join(', ')})`,
            expected: 'the coordinate it came from',
            hint: 'the map must keep different coordinates apart, and the inverse must name the old ones in order',
          })
  }
}

function wholeBox(from: readonly Component[], size: number): Int32Array[] {
  let after = size
  return from.map(({ extent }) => {
    after = extent === 0 ? 0 : after / extent
    const step = after
    return Int32Array.from({ length: size }, (_, e) => Math.floor(e / step) % extent)
  })
}

/** The corners of the box and points drawn from it, the same in every run. */
function sampleBox(from: readonly Component[]): Int32Array[] {
  const corners = 2 ** Math.min(from.length, 10)
  let state = 1
  const random = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  return from.map(({ extent }, k) =>
    Int32Array.from({ length: corners + SAMPLE }, (_, e) =>
      e < corners ? ((e >> k) & 1) * (extent - 1) : Math.floor(random() * extent),
    ),
  )
}
