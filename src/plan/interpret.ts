/** Interpretation of a plan for the sizes of a run, which every runtime shares: lengths, checks of sizes, bases and grids. */
import { evaluateSize } from '../ir/expressions/size-expressions.ts'
import type { Expression, PackedArray, PlanBuffer, PlanCheck, PlanFact, PlanLaunch } from './schema.ts'

export type Sizes = ReadonlyMap<string, number>

/** The value of an expression; undefined if a size is unknown. */
export const valueIn = evaluateSize as (e: Expression, sizes: Sizes) => number | undefined

/** Number of elements; undefined if a size is unknown. */
export function lengthOf({ length }: Pick<PlanBuffer, 'length'>, sizes: Sizes): number | undefined {
  const n = valueIn(length, sizes)
  return n && Math.max(0, n)
}

/** Adds the first elements of packed arrays to the sizes. */
export function addBases(packed: readonly PackedArray[] = [], sizes: Map<string, number>): void {
  for (const p of packed) sizes.set(p.base, valueIn(p.at, sizes)!)
}

/** Number of blocks in each dimension; undefined if a launch is empty. */
export function blocksOf({ grid }: PlanLaunch, sizes: Sizes): [number, number, number] | undefined {
  const blocks = grid.map((e) => valueIn(e, sizes)!) as [number, number, number]
  return blocks.every((n) => n > 0) ? blocks : undefined
}

/** The first constraint that the sizes violate. An unknown size violates none, because comparisons with NaN are false. */
export const brokenFact = <F extends PlanFact>(facts: readonly F[] = [], sizes: Sizes): F | undefined =>
  facts.find(({ size, relation, by }) => {
    const value = sizes.get(size)!
    return (relation === 'equal' ? Math.abs(value - by) : value % by) > 0
  })

/** The first index expression that exceeds its range, with its value. `isBeyond` is false for undefined, the value of an unknown size. */
export function brokenCheck<C extends PlanCheck>(
  checks: readonly C[],
  sizes: Sizes,
  isBeyond: (value: number, check: C) => boolean,
): { readonly check: C; readonly value: number } | undefined {
  for (const check of checks)
    for (const e of [check.most, check.least]) {
      const value = valueIn(e ?? 0, sizes)!
      if (isBeyond(value, check) && !check.when?.some((w) => valueIn(w, sizes)! <= 0)) return { check, value }
    }
  return undefined
}
