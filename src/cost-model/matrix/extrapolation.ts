/** Extrapolates the index facts of strata to the whole matrix. */
import {
  countOf,
  hasIndices,
  hasIndptr,
  indptrOf,
  isStored,
  parentOf,
  type StoredAxis,
  segmentSize,
} from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Kernel2 } from '../../ir/statements/loops.ts'
import { elementsOf, expectedValue } from '../work/estimates.ts'
import {
  type CoordinateRecurrence,
  type Distribution,
  GROUP_SIZES,
  type IndexFacts,
  mixture,
  type Ratio,
  type Recurrence,
  type Structure,
  weightedRecurrence,
} from './index-facts.ts'

export const shareOf = ({ total: all, count: filled }: Ratio): number => (all === 0 ? 1 : filled / all)

function scaleSegments(d: Distribution, count: number): Distribution {
  // Extrapolated counts are rounded, so a difference of 1 is none.
  if (!(count > 0) || d.sum === 0 || Math.abs(d.count - count) <= 1) return d
  const factor = d.count / count
  return {
    count,
    sum: d.sum,
    longest: Math.max(d.longest, d.longest * factor),
    bins: d.bins.map(({ length, share: shareOf }) => ({ length: length * factor, share: shareOf })),
  }
}

/** Limits counts of unique coordinates to the possible ones: strata may contain the same coordinates. */
function clampCounts(kernel: Kernel1, params: Map<string, number>): void {
  const axes = new Map(kernel.axes.filter(isStored).map((a) => [a.name, a]))
  const known = { params, ranges: new Map(), lengths: new Map(), filled: new Map() }
  const positions = (a: StoredAxis | undefined): number => {
    if (!a) return 1
    const size = segmentSize(a)
    const parents = positions(axes.get(parentOf(a) ?? ''))
    if (size) return parents * expectedValue(size, known)
    const count = params.get(countOf(a.name)) ?? Number.NaN
    if (!hasIndptr(a) || !hasIndices(a) || !a.unique) return count
    const max = parents * expectedValue(a.extent, known)
    if (count > max) params.set(countOf(a.name), max)
    return count > max ? max : count
  }
  for (const a of axes.values()) positions(a)
}

/**
 * Combines strata: counts and segments add up by weight, widths are the maximum, and sizes are given. If strata have
 * the same segments, such as all columns in samples of rows, their lengths add up instead.
 * @param ordinals - Axes whose coordinates are the same in all strata; the stratum with the most has all of them
 */
export function combineStrata(
  kernel: Kernel1,
  loops: Kernel2,
  parts: readonly { readonly facts: IndexFacts; readonly weight: number }[],
  sizes: ReadonlyMap<string, number>,
  ordinals: ReadonlySet<string>,
): Omit<Structure, 'counts'> {
  const params = new Map<string, number>()
  const ordinalCounts = new Set([...ordinals].map(countOf))
  const measured = new Set(kernel.params.filter((p) => p.measured).map((p) => p.name))
  for (const name of new Set(parts.flatMap((p) => [...p.facts.params.keys()]))) {
    const values = parts.map((p) => p.facts.params.get(name) ?? 0)
    const known = sizes.get(name)
    const isSize = kernel.params.some((p) => p.name === name && p.kind === 'size' && !p.measured)
    params.set(
      name,
      known ??
        (measured.has(name) || isSize || ordinalCounts.has(name)
          ? Math.max(...values)
          : Math.round(parts.reduce((n, p, k) => n + p.weight * values[k]!, 0))),
    )
  }
  clampCounts(kernel, params)
  const buffers = new Map(loops.buffers.map((b) => [b.name, b]))
  const sizeOf = (name: string): number => elementsOf(buffers.get(name)!, { params })
  const names = (select: (f: IndexFacts) => ReadonlyMap<string, unknown>): string[] => [
    ...new Set(parts.flatMap((p) => [...select(p.facts).keys()])),
  ]
  const offsets = new Map([...ordinals].map((axis) => [indptrOf(axis), countOf(axis)]))
  /** For an ordinal axis, the stratum with the most coordinates; otherwise all strata. */
  const strataOf = (name: string): typeof parts => {
    const count = offsets.get(name)
    if (count === undefined) return parts
    const [largest] = parts.toSorted(
      (a, b) => (b.facts.params.get(count) ?? 0) - (a.facts.params.get(count) ?? 0),
    )
    return largest ? [{ ...largest, weight: 1 }] : []
  }
  const lengths = new Map(
    names((f) => f.lengths).map((name) => [
      name,
      scaleSegments(
        mixture(
          strataOf(name).flatMap((p) => {
            const distribution = p.facts.lengths.get(name)
            return distribution ? [{ distribution, weight: p.weight }] : []
          }),
        ),
        sizeOf(name) - 1,
      ),
    ]),
  )
  const shares = (
    select: (f: IndexFacts) => ReadonlyMap<string, Ratio>,
    totalOf: (name: string, extrapolated: number) => number = (_, extrapolated) => extrapolated,
  ): Map<string, number> =>
    new Map(
      names(select).map((name) => {
        let [total, count] = [0, 0]
        for (const p of parts) {
          const c = select(p.facts).get(name)
          total += p.weight * (c?.total ?? 0)
          count += p.weight * (c?.count ?? 0)
        }
        return [
          name,
          count === total ? 1 : Math.min(1, shareOf({ total: totalOf(name, total), count: count })),
        ]
      }),
    )
  const recurrence = new Map(
    names((f) => f.recurrence).map((name) => {
      const combine = (key: keyof CoordinateRecurrence): Recurrence =>
        weightedRecurrence(
          parts.flatMap((p) => {
            const c = p.facts.recurrence.get(name)
            return c ? [{ recurrence: c[key], weight: p.weight }] : []
          }),
        )
      return [name, { each: combine('each'), sectors: combine('sectors') }]
    }),
  )
  const longestOf = new Map(
    names((f) => f.meanMaxima).map((name) => {
      const sums = new Array<number>(GROUP_SIZES).fill(0)
      let count = 0
      for (const p of parts) {
        const n = p.weight * (p.facts.lengths.get(name)?.count ?? 0)
        count += n
        p.facts.meanMaxima.get(name)?.forEach((x, k) => {
          sums[k]! += n * x
        })
      }
      return [name, sums.map((x) => x / Math.max(1, count))]
    }),
  )
  return {
    params,
    lengths,
    changes: shares((f) => f.changes),
    // Each stratum has its own width; the whole is padded to the maximum.
    filled: shares(
      (f) => f.filled,
      (name, extrapolated) => sizeOf(name) || extrapolated,
    ),
    recurrence,
    meanMaxima: longestOf,
  }
}
