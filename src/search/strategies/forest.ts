/** Regression by a random forest (Breiman, 2001), with how sure it is (Hutter et al., 2014): small, for hundreds of rows. */
import type { Random } from '../points.ts'
import { ABSENT } from './features.ts'

export interface Prediction {
  readonly mean: number
  readonly deviation: number
}

export interface ForestOptions {
  readonly trees?: number
  /** Columns of names, which are split by being one of them or not. */
  readonly isNominal?: (column: number) => boolean
}

type Tree =
  | { readonly kind: 'leaf'; readonly mean: number; readonly variance: number }
  | {
      readonly kind: 'split'
      readonly column: number
      readonly at: number
      /** True if only values equal to `at` go left; otherwise all values up to it. */
      readonly isEqual: boolean
      readonly left: Tree
      readonly right: Tree
    }

const TREES = 24
/** Share of the columns that a split looks at. */
const COLUMNS = 0.7
const SMALLEST_SPLIT = 3
const DEPTH = 24

export class Forest {
  readonly #trees: readonly Tree[]

  private constructor(trees: readonly Tree[]) {
    this.#trees = trees
  }

  /** @param rows as many as `targets`, at least one; a shorter one ends in `ABSENT` */
  static fit(
    rows: readonly (readonly number[])[],
    targets: readonly number[],
    random: Random,
    { trees = TREES, isNominal = () => false }: ForestOptions = {},
  ): Forest {
    const n = rows.length
    const width = rows.reduce((w, r) => Math.max(w, r.length), 0)
    const growing = { rows, width, targets, random, isNominal }
    const grown = Array.from({ length: trees }, () =>
      grow(
        growing,
        Array.from({ length: n }, () => Math.floor(random() * n)),
        0,
      ),
    )
    return new Forest(grown)
  }

  /** Rows may be longer than those it was fitted to. */
  predict(row: readonly number[]): Prediction {
    let [sum, squares, within] = [0, 0, 0]
    for (const tree of this.#trees) {
      const { mean, variance } = leafOf(tree, row)
      sum += mean
      squares += mean * mean
      within += variance
    }
    const n = this.#trees.length
    const mean = sum / n
    // The law of total variance: between the trees, and within their leaves.
    return { mean, deviation: Math.sqrt(Math.max(0, squares / n - mean * mean + within / n)) }
  }
}

function leafOf(tree: Tree, row: readonly number[]): Tree & { kind: 'leaf' } {
  let at = tree
  while (at.kind === 'split') {
    const value = row[at.column] ?? ABSENT
    at = (at.isEqual ? value === at.at : value <= at.at) ? at.left : at.right
  }
  return at
}

interface Growing {
  readonly rows: readonly (readonly number[])[]
  readonly width: number
  readonly targets: readonly number[]
  readonly random: Random
  readonly isNominal: (column: number) => boolean
}

function grow(of: Growing, chosen: readonly number[], depth: number): Tree {
  const split = chosen.length >= SMALLEST_SPLIT && depth < DEPTH ? bestSplit(of, chosen) : null
  if (!split) return leaf(chosen.map((k) => of.targets[k]!))
  const { column, at, isEqual } = split
  const goesLeft = (k: number): boolean => {
    const value = of.rows[k]![column] ?? ABSENT
    return isEqual ? value === at : value <= at
  }
  return {
    kind: 'split',
    column,
    at,
    isEqual,
    left: grow(of, chosen.filter(goesLeft), depth + 1),
    right: grow(
      of,
      chosen.filter((k) => !goesLeft(k)),
      depth + 1,
    ),
  }
}

function leaf(targets: readonly number[]): Tree {
  const mean = targets.reduce((a, b) => a + b, 0) / targets.length
  const variance = targets.reduce((a, t) => a + (t - mean) ** 2, 0) / targets.length
  return { kind: 'leaf', mean, variance }
}

interface Split {
  readonly column: number
  readonly at: number
  readonly isEqual: boolean
}

/** The split that leaves the least variance, among some columns; `null` where none tells rows apart. */
function bestSplit(of: Growing, chosen: readonly number[]): Split | null {
  let best: (Split & { readonly gain: number }) | null = null
  const total = chosen.reduce((a, k) => a + of.targets[k]!, 0)
  const base = (total * total) / chosen.length
  for (let column = 0; column < of.width; column++) {
    if (of.random() > COLUMNS) continue
    const groups = new Map<number, { n: number; sum: number }>()
    for (const k of chosen) {
      const value = of.rows[k]![column] ?? ABSENT
      const group = groups.get(value) ?? { n: 0, sum: 0 }
      group.n++
      group.sum += of.targets[k]!
      groups.set(value, group)
    }
    if (groups.size < 2) continue
    const isEqual = of.isNominal(column)
    const values = [...groups.keys()].sort((a, b) => a - b)
    let [n, sum] = [0, 0]
    for (const [j, at] of values.entries()) {
      const group = groups.get(at)!
      if (isEqual) [n, sum] = [0, 0]
      else if (j === values.length - 1) break
      n += group.n
      sum += group.sum
      const gain = (sum * sum) / n + (total - sum) ** 2 / (chosen.length - n) - base
      if (gain > 1e-12 && (!best || gain > best.gain)) best = { column, at, isEqual, gain }
    }
  }
  // Halfway to the next value above, so that what lies between is not all on one side.
  return best && (best.isEqual ? best : { ...best, at: between(of, chosen, best) })
}

function between({ rows }: Growing, chosen: readonly number[], { column, at }: Split): number {
  const above = chosen.map((k) => rows[k]![column] ?? ABSENT).filter((v) => v > at)
  const next = above.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  return at === ABSENT || !Number.isFinite(next) ? at : (at + next) / 2
}
