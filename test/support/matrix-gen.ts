/** Sizes and sparse tensors of every awkward shape, with values that all types hold exactly. */
import type { Dtype } from '../../src/ir/values/dtype.ts'
import type { Choices } from './choices.ts'

export interface Entries {
  /** One column for each dimension. */
  readonly coords: readonly (readonly number[])[]
  readonly count: number
}

/** 0, 1 and sizes that no tile divides. */
export const size = (c: Choices): number => c.pick([3, 4, 5, 1, 0, 6, 2, 7])

const MAX_ENTRIES = 14

/** Coordinates of at most 14 elements: scattered, one dense row, one entry, all, none; with repeats if asked. */
export function entries(c: Choices, shape: readonly number[], repeats: boolean): Entries {
  const rows: number[][] = []
  const total = shape.reduce((n, e) => n * e, 1)
  const at = (k: number): number[] => {
    const out: number[] = []
    let rest = k
    for (let d = shape.length - 1; d >= 0; d--) {
      out.unshift(rest % shape[d]!)
      rest = Math.floor(rest / shape[d]!)
    }
    return out
  }
  if (total > 0) {
    const kind = c.pick(['scattered', 'row', 'one', 'all', 'none', 'scattered', 'scattered'] as const)
    if (kind === 'scattered') for (let n = 2 + c.below(11); n > 0; n--) rows.push(at(c.below(total)))
    if (kind === 'one') rows.push(at(c.below(total)))
    if (kind === 'all') for (let k = 0; k < Math.min(total, MAX_ENTRIES); k++) rows.push(at(k))
    if (kind === 'row') {
      const last = shape.at(-1)!
      const row = c.below(total / last)
      for (let k = 0; k < last; k++) rows.push(at(row * last + k))
    }
  }
  const seen = new Set<string>()
  const kept = rows.filter((r) => {
    const again = seen.has(r.join())
    seen.add(r.join())
    return repeats || !again
  })
  return { coords: shape.map((_, d) => kept.map((r) => r[d]!)), count: kept.length }
}

/** Small integers of the type; `narrow`: so small that 16-bit sums and f32 products stay exact. */
export function values(c: Choices, dtype: Dtype, count: number, narrow: boolean): number[] {
  const one = (): number => {
    if (dtype === 'bool') return c.below(2)
    if (dtype === 'u32' || dtype === 'u8') return c.below(narrow ? 2 : 4)
    return narrow ? c.pick([1, 0, -1]) : c.pick([1, 2, -1, 0, 3, -2, -3])
  }
  return Array.from({ length: count }, one)
}
