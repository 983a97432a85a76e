/** Extrapolates from samples of a matrix to the whole. */
import {
  countOf,
  hasIndices,
  hasIndptr,
  indptrOf,
  isStored,
  parentOf,
  type StoredAxis,
  segmentSize,
} from '../../ir/axis.ts'
import type { Kernel2 } from '../../ir/loops.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { type Distribution, mixture } from './distribution.ts'
import { elementsOf } from './elements.ts'
import { expected } from './estimates.ts'
import { type Coordinates, type Found, GROUPS, type Share, type Structure } from './index-facts.ts'
import { type Recurrence, weightedRecurrence } from './recurrence.ts'

export const share = ({ all, filled }: Share): number => (all === 0 ? 1 : filled / all)

/** Scales a distribution to the given number of segments. */
function ofSegments(d: Distribution, count: number): Distribution {
  // Counts are rounded.
  if (!(count > 0) || d.sum === 0 || Math.abs(d.count - count) <= 1) return d
  const by = d.count / count
  return {
    count,
    sum: d.sum,
    longest: Math.max(d.longest, d.longest * by),
    bins: d.bins.map(({ length, share }) => ({ length: length * by, share })),
  }
}

/** Coordinates that are all different are no more than there could be: samples may have the same ones. */
function atMostExtents(kernel: Kernel1, params: Map<string, number>): void {
  const axes = new Map(kernel.axes.filter(isStored).map((a) => [a.name, a]))
  const known = { params, ranges: new Map(), lengths: new Map(), filled: new Map() }
  const positions = (a: StoredAxis | undefined): number => {
    if (!a) return 1
    const size = segmentSize(a)
    const above = positions(axes.get(parentOf(a) ?? ''))
    if (size) return above * expected(size, known)
    const count = params.get(countOf(a.name)) ?? Number.NaN
    if (!hasIndptr(a) || !hasIndices(a) || !a.unique) return count
    const most = above * expected(a.extent, known)
    if (count > most) params.set(countOf(a.name), most)
    return count > most ? most : count
  }
  for (const a of axes.values()) positions(a)
}

/**
 * Counts and segments add up, by weight; widths are the greatest, and sizes what they are. Where strata have the same
 * segments, as all columns are there in samples of rows, it is their lengths that add up.
 * @param numbers - Axes that have the same coordinates in all strata, the most in one of them
 */
export function together(
  kernel: Kernel1,
  loops: Kernel2,
  parts: readonly { readonly of: Found; readonly weight: number }[],
  sizes: ReadonlyMap<string, number>,
  numbers: ReadonlySet<string>,
): Omit<Structure, 'counts'> {
  const params = new Map<string, number>()
  const counted = new Set([...numbers].map(countOf))
  const measured = new Set(kernel.params.filter((p) => p.measured).map((p) => p.name))
  for (const name of new Set(parts.flatMap((p) => [...p.of.params.keys()]))) {
    const values = parts.map((p) => p.of.params.get(name) ?? 0)
    const known = sizes.get(name)
    const same = kernel.params.some((p) => p.name === name && p.kind === 'size' && !p.measured)
    params.set(
      name,
      known ??
        (measured.has(name) || same || counted.has(name)
          ? Math.max(...values)
          : Math.round(parts.reduce((n, p, k) => n + p.weight * values[k]!, 0))),
    )
  }
  atMostExtents(kernel, params)
  const buffers = new Map(loops.buffers.map((b) => [b.name, b]))
  const sizeOf = (name: string): number => elementsOf(buffers.get(name)!, { params })
  const names = (of: (f: Found) => ReadonlyMap<string, unknown>): string[] => [
    ...new Set(parts.flatMap((p) => [...of(p.of).keys()])),
  ]
  const offsets = new Map([...numbers].map((axis) => [indptrOf(axis), countOf(axis)]))
  /** Of numbers, the one stratum that has the most. */
  const strataFor = (name: string): typeof parts => {
    const count = offsets.get(name)
    if (count === undefined) return parts
    const [most] = parts.toSorted((a, b) => (b.of.params.get(count) ?? 0) - (a.of.params.get(count) ?? 0))
    return most ? [{ ...most, weight: 1 }] : []
  }
  const lengths = new Map(
    names((f) => f.offsets).map((name) => [
      name,
      ofSegments(
        mixture(
          strataFor(name).flatMap((p) => {
            const of = p.of.offsets.get(name)
            return of ? [{ of, weight: p.weight }] : []
          }),
        ),
        sizeOf(name) - 1,
      ),
    ]),
  )
  const shares = (
    of: (f: Found) => ReadonlyMap<string, Share>,
    among: (name: string, counted: number) => number = (_, counted) => counted,
  ): Map<string, number> =>
    new Map(
      names(of).map((name) => {
        let [all, those] = [0, 0]
        for (const p of parts) {
          const c = of(p.of).get(name)
          all += p.weight * (c?.all ?? 0)
          those += p.weight * (c?.filled ?? 0)
        }
        return [name, those === all ? 1 : Math.min(1, share({ all: among(name, all), filled: those }))]
      }),
    )
  const recurrence = new Map(
    names((f) => f.recurrence).map((name) => {
      const of = (which: keyof Coordinates): Recurrence =>
        weightedRecurrence(
          parts.flatMap((p) => {
            const c = p.of.recurrence.get(name)
            return c ? [{ of: c[which], weight: p.weight }] : []
          }),
        )
      return [name, { each: of('each'), sectors: of('sectors') }]
    }),
  )
  const longestOf = new Map(
    names((f) => f.longestOf).map((name) => {
      const out = new Array<number>(GROUPS).fill(0)
      let all = 0
      for (const p of parts) {
        const n = p.weight * (p.of.offsets.get(name)?.count ?? 0)
        all += n
        p.of.longestOf.get(name)?.forEach((x, k) => {
          out[k]! += n * x
        })
      }
      return [name, out.map((x) => x / Math.max(1, all))]
    }),
  )
  return {
    params,
    lengths,
    changes: shares((f) => f.changes),
    // A stratum is as wide as it has to be, and padded to the width of all.
    filled: shares(
      (f) => f.coordinates,
      (name, counted) => sizeOf(name) || counted,
    ),
    recurrence,
    longestOf,
  }
}
