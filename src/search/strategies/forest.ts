/** Regression by a random forest (Breiman, 2001) with its uncertainty (Hutter et al., 2014), for hundreds of rows. */
import type { Random } from '../spaces/points.ts'
import type { DecisionValue, Point } from '../types.ts'

interface Prediction {
  readonly mean: number
  readonly deviation: number
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
/** Fraction of the columns that a split considers. */
const COLUMN_FRACTION = 0.7
const SMALLEST_SPLIT = 3
const MAX_DEPTH = 24

export class Forest {
  private constructor(private readonly trees: readonly Tree[]) {}

  /**
   * @param rows - As many as `targets`, at least one; missing values at the end of a row are `ABSENT`
   * @param isNominal - True for columns of names, which are split by equality with one name
   */
  static fit(
    rows: readonly (readonly number[])[],
    targets: readonly number[],
    random: Random,
    isNominal: TrainingData['isNominal'] = () => false,
  ): Forest {
    const n = rows.length
    const width = rows.reduce((w, r) => Math.max(w, r.length), 0)
    const data = { rows, width, targets, random, isNominal }
    const fittedTrees = Array.from({ length: TREES }, () =>
      grow(
        data,
        Array.from({ length: n }, () => Math.floor(random() * n)),
        0,
      ),
    )
    return new Forest(fittedTrees)
  }

  /** Prediction for a row, which may be longer than those of the fit. */
  predict(row: readonly number[]): Prediction {
    let [sum, squares, leafVariance] = [0, 0, 0]
    for (const tree of this.trees) {
      const { mean, variance } = leafOf(tree, row)
      sum += mean
      squares += mean * mean
      leafVariance += variance
    }
    const n = this.trees.length
    const mean = sum / n
    // The law of total variance: between the trees, and within their leaves.
    return { mean, deviation: Math.sqrt(Math.max(0, squares / n - mean * mean + leafVariance / n)) }
  }
}

function leafOf(tree: Tree, row: readonly number[]): Tree & { kind: 'leaf' } {
  let node = tree
  while (node.kind === 'split') {
    const value = row[node.column] ?? ABSENT
    node = (node.isEqual ? value === node.at : value <= node.at) ? node.left : node.right
  }
  return node
}

interface TrainingData {
  readonly rows: readonly (readonly number[])[]
  readonly width: number
  readonly targets: readonly number[]
  readonly random: Random
  readonly isNominal: (column: number) => boolean
}

function grow(data: TrainingData, rowIds: readonly number[], depth: number): Tree {
  const split = rowIds.length >= SMALLEST_SPLIT && depth < MAX_DEPTH ? bestSplit(data, rowIds) : null
  if (!split) return leaf(rowIds.map((k) => data.targets[k]!))
  const { column, at, isEqual } = split
  const goesLeft = (k: number): boolean => {
    const value = data.rows[k]![column] ?? ABSENT
    return isEqual ? value === at : value <= at
  }
  return {
    kind: 'split',
    column,
    at,
    isEqual,
    left: grow(data, rowIds.filter(goesLeft), depth + 1),
    right: grow(
      data,
      rowIds.filter((k) => !goesLeft(k)),
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

/** The split with the least variance among random columns; `null` if no column separates the rows. */
function bestSplit(data: TrainingData, rowIds: readonly number[]): Split | null {
  let best: (Split & { readonly gain: number }) | null = null
  const total = rowIds.reduce((a, k) => a + data.targets[k]!, 0)
  const base = (total * total) / rowIds.length
  for (let column = 0; column < data.width; column++) {
    if (data.random() > COLUMN_FRACTION) continue
    const groups = new Map<number, { n: number; sum: number }>()
    for (const k of rowIds) {
      const value = data.rows[k]![column] ?? ABSENT
      const group = groups.get(value) ?? { n: 0, sum: 0 }
      group.n++
      group.sum += data.targets[k]!
      groups.set(value, group)
    }
    if (groups.size < 2) continue
    const isEqual = data.isNominal(column)
    const values = [...groups.keys()].sort((a, b) => a - b)
    let [n, sum] = [0, 0]
    for (const [j, at] of values.entries()) {
      const group = groups.get(at)!
      if (isEqual) [n, sum] = [0, 0]
      else if (j === values.length - 1) break
      n += group.n
      sum += group.sum
      const gain = (sum * sum) / n + (total - sum) ** 2 / (rowIds.length - n) - base
      if (gain > 1e-12 && (!best || gain > best.gain)) best = { column, at, isEqual, gain }
    }
  }
  // Midpoint to the next greater value.
  return best && (best.isEqual ? best : { ...best, at: midpoint(data, rowIds, best) })
}

function midpoint({ rows }: TrainingData, rowIds: readonly number[], { column, at }: Split): number {
  const above = rowIds.map((k) => rows[k]![column] ?? ABSENT).filter((v) => v > at)
  const next = above.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY)
  return at === ABSENT || !Number.isFinite(next) ? at : (at + next) / 2
}

// Feature rows of points for learning. A decision is a column; numbers within a text (`sell(8, 64)`) are
// columns of their own, so that models generalise to neighbouring values.

/** Feature value of decisions that a point does not reach. */
const ABSENT = Number.NEGATIVE_INFINITY

const NUMBER = /(?<![\w.])-?\d+(?:\.\d+)?/g

export class Columns {
  readonly #columns = new Map<string, number>()
  /** Indices of the texts of a column, which are names without an order. */
  readonly #names: Map<string, number>[] = []

  get size(): number {
    return this.#names.length
  }

  isNominal(column: number): boolean {
    return this.#names[column]!.size > 0
  }

  /** Feature row of a point. New columns are added; earlier rows are `ABSENT` there. */
  row(point: Point): number[] {
    const out: number[] = []
    const set = (name: string, value: DecisionValue): void => {
      out[this.#column(typeof value === 'number' ? name : `${name}:`)] =
        typeof value === 'number' ? value : this.#name(`${name}:`, value)
    }
    for (const [name, value] of Object.entries(point)) {
      if (typeof value === 'number') set(name, value)
      else {
        const numbers = value.match(NUMBER) ?? []
        const shape = value.replace(NUMBER, '#')
        set(name, shape)
        for (const [k, n] of numbers.entries()) set(`${name}:${shape}:${k}`, Number(n))
      }
    }
    return Array.from({ length: this.size }, (_, c) => out[c] ?? ABSENT)
  }

  #column(name: string): number {
    const known = this.#columns.get(name)
    if (known !== undefined) return known
    this.#columns.set(name, this.size)
    this.#names.push(new Map())
    return this.size - 1
  }

  #name(column: string, text: string): number {
    const names = this.#names[this.#column(column)]!
    const known = names.get(text) ?? names.size
    names.set(text, known)
    return known
  }
}
