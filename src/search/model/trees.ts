/** Sums of regression trees, as boosting makes them: small to keep, and microseconds to ask. */

/**
 * Trees one after the other in flat arrays. Node n of a tree whose nodes begin at `roots[t]`: where `feature[n]` is negative
 * it is a leaf with `value[n]`; otherwise, features below or at `value[n]` go to node `n + 1`, others to `right[n]`.
 */
export interface Trees {
  readonly roots: readonly number[]
  readonly feature: readonly number[]
  readonly value: readonly number[]
  readonly right: readonly number[]
}

export function treesAt({ roots, feature, value, right }: Trees, x: ArrayLike<number>): number {
  let sum = 0
  for (const root of roots) {
    let n = root
    while (feature[n]! >= 0) n = x[feature[n]!]! <= value[n]! ? n + 1 : right[n]!
    sum += value[n]!
  }
  return sum
}
