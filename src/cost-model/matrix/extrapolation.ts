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
import { getOrAdd } from '../../ir/memoize.ts'
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
  type Weighted,
  weightedRecurrence,
} from './index-facts.ts'

export const shareOf = ({ total, count }: Ratio): number => (total === 0 ? 1 : count / total)

function scaleSegments(d: Distribution, count: number): Distribution {
  // Extrapolated counts are rounded, so a difference of 1 is none.
  if (!(count > 0) || d.sum === 0 || Math.abs(d.count - count) <= 1) return d
  const factor = d.count / count
  return {
    count,
    sum: d.sum,
    longest: Math.max(d.longest, d.longest * factor),
    bins: d.bins.map(({ length, share }) => ({ length: length * factor, share })),
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

interface SampledFacts {
  readonly facts: IndexFacts
  readonly weight: number
}

/** Combines, for each buffer, what the strata know about it. */
function combineEach<T, R>(
  strata: readonly SampledFacts[],
  select: (f: IndexFacts) => ReadonlyMap<string, T>,
  combine: (known: readonly (SampledFacts & Weighted<T>)[], name: string) => R,
): Map<string, R> {
  const byName = new Map<string, (SampledFacts & Weighted<T>)[]>()
  for (const s of strata)
    for (const [name, value] of select(s.facts)) getOrAdd(byName, name, () => []).push({ ...s, value })
  return new Map([...byName].map(([name, known]) => [name, combine(known, name)]))
}

/**
 * Combines strata: counts and segments add up by weight, widths are the maximum, and sizes are given. If strata have
 * the same segments, such as all columns in samples of rows, their lengths add up instead.
 * @param ordinals - Axes whose coordinates are the same in all strata; the stratum with the most has all of them
 */
export function combineStrata(
  kernel: Kernel1,
  loops: Kernel2,
  strata: readonly SampledFacts[],
  sizes: ReadonlyMap<string, number>,
  ordinals: ReadonlySet<string>,
): Omit<Structure, 'counts'> {
  const ordinalCounts = new Set([...ordinals].map(countOf))
  const widths = new Set(kernel.params.filter((p) => p.measured || p.kind === 'size').map((p) => p.name))
  const names = new Set(strata.flatMap((s) => [...s.facts.params.keys()]))
  const params = new Map(
    [...names].map((name) => {
      const values = strata.map((s) => s.facts.params.get(name) ?? 0)
      const known = sizes.get(name)
      if (known !== undefined) return [name, known]
      if (widths.has(name) || ordinalCounts.has(name)) return [name, Math.max(...values)]
      return [name, Math.round(strata.reduce((n, s, k) => n + s.weight * values[k]!, 0))]
    }),
  )
  clampCounts(kernel, params)
  const buffers = new Map(loops.buffers.map((b) => [b.name, b]))
  const sizeOf = (name: string): number => elementsOf(buffers.get(name)!, { params })
  const offsets = new Map([...ordinals].map((axis) => [indptrOf(axis), countOf(axis)]))
  const shares = (
    select: (f: IndexFacts) => ReadonlyMap<string, Ratio>,
    totalOf: (name: string, extrapolated: number) => number,
  ): Map<string, number> =>
    combineEach(strata, select, (known, name) => {
      const sum = (field: keyof Ratio): number => known.reduce((n, s) => n + s.weight * s.value[field], 0)
      const [total, count] = [sum('total'), sum('count')]
      return count === total ? 1 : Math.min(1, shareOf({ total: totalOf(name, total), count }))
    })
  return {
    params,
    lengths: combineEach(
      strata,
      (f) => f.lengths,
      (known, name) => {
        const count = offsets.get(name)
        if (count === undefined) return scaleSegments(mixture(known), sizeOf(name) - 1)
        const countIn = ({ facts }: SampledFacts): number => facts.params.get(count) ?? 0
        const largest = known.reduce((a, b) => (countIn(b) > countIn(a) ? b : a))
        return scaleSegments(mixture([{ ...largest, weight: 1 }]), sizeOf(name) - 1)
      },
    ),
    changes: shares(
      (f) => f.changes,
      (_, extrapolated) => extrapolated,
    ),
    // Each stratum has its own width; the whole is padded to the maximum.
    filled: shares(
      (f) => f.filled,
      (name, extrapolated) => sizeOf(name) || extrapolated,
    ),
    recurrence: combineEach(
      strata,
      (f) => f.recurrence,
      (known) => {
        const combine = (key: keyof CoordinateRecurrence): Recurrence =>
          weightedRecurrence(known.map(({ value, weight }) => ({ value: value[key], weight })))
        return { each: combine('each'), sectors: combine('sectors') }
      },
    ),
    meanMaxima: combineEach(
      strata,
      (f) => f.meanMaxima,
      (known, name) => {
        const counts = known.map((s) => s.weight * (s.facts.lengths.get(name)?.count ?? 0))
        const total = Math.max(
          1,
          counts.reduce((a, b) => a + b, 0),
        )
        return Array.from(
          { length: GROUP_SIZES },
          (_, k) => known.reduce((n, s, i) => n + counts[i]! * s.value[k]!, 0) / total,
        )
      },
    ),
  }
}
