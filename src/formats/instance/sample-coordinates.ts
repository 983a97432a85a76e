/** Coordinates of small tensors, and of the corners of blocks in larger ones. */

import { applyMap } from '../../columns/coordmap.ts'
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import { evaluate } from '../../ir/values/evaluate.ts'

/** Largest size for which every combination is tested, by the number of sizes. */
const SMALL = [1, 6, 5, 4, 3, 2]
/** Maximum number of sampled coordinates per dimension, by the number of dimensions. */
const COORDINATES = [1, 40, 12, 7, 4, 3]
const MAX_ROWS = 8192

/** Sample rows: a coordinate on each axis, and the sizes of the tensor. */
export class Samples {
  /** @param names old axes, then sizes */
  constructor(
    readonly names: readonly string[],
    readonly columns: readonly Int32Array[],
    private readonly extents: readonly Int32Array[],
  ) {}

  get rows(): number {
    return this.columns[0]?.length ?? 0
  }

  evaluate(e: Expr): Int32Array {
    return applyMap({ map: [e], inputs: this.names }, this.columns)[0]!
  }

  where(test: (row: number) => boolean): Samples {
    const rows: number[] = []
    for (let e = 0; e < this.rows; e++) if (test(e)) rows.push(e)
    const pick = (c: Int32Array): Int32Array => Int32Array.from(rows, (e) => c[e]!)
    return new Samples(this.names, this.columns.map(pick), this.extents.map(pick))
  }

  /** `4 × 5`. */
  shape(row: number): string {
    return this.extents.map((x) => x[row]).join(' × ')
  }
}

/** `null` if extents depend on more than sizes. `constants`: probable ends of blocks, bands and strides. */
export function sampleCoordinates(over: readonly StoredAxis[], constants: readonly number[]): Samples | null {
  const sizes = [...new Set(over.flatMap((a) => [...freeVars(a.extent)]))]
  const steps = constants.filter((c) => c > 1 && c < 2 ** 20).sort((a, b) => b - a)
  const rows: number[][] = []
  const shapes: number[][] = []
  const maxCoordinates = COORDINATES[Math.min(over.length, COORDINATES.length - 1)]!
  const addShape = (values: readonly number[]): void => {
    const sizeValues = new Map(sizes.map((s, k) => [s, values[k]!]))
    const extents = over.map((a) => evaluate(a.extent, sizeValues))
    for (const coords of product(extents.map((n) => pick(n, steps, maxCoordinates)))) {
      if (rows.length >= MAX_ROWS) return
      rows.push([...coords, ...values])
      shapes.push(extents)
    }
  }
  // Small tensors come first, because they give readable counterexamples.
  const small = SMALL[Math.min(sizes.length, SMALL.length - 1)]!
  for (const values of product(sizes.map(() => Array.from({ length: small }, (_, v) => v + 1))))
    addShape(values)
  for (const c of steps.slice(0, 4)) addShape(sizes.map((_, k) => 2 * c + 1 + k))
  if (rows.length === 0) return null
  const column = (k: number, from: number[][]): Int32Array => Int32Array.from(from, (r) => r[k]!)
  return new Samples(
    [...over.map((a) => a.name), ...sizes],
    [...over, ...sizes].map((_, k) => column(k, rows)),
    over.map((_, k) => column(k, shapes)),
  )
}

/** At most `maxCoordinates` coordinates below `n`: the ends, and coordinates next to multiples of the steps. */
function pick(n: number, steps: readonly number[], maxCoordinates: number): number[] {
  if (n <= maxCoordinates) return Array.from({ length: n }, (_, c) => c)
  const candidates = [0, n - 1, ...steps.flatMap((s) => [s, s - 1, n - s, s >> 1]), 1, n - 2, n >> 1]
  const valid = new Set(candidates.filter((c) => c >= 0 && c < n))
  return [...valid].slice(0, maxCoordinates).sort((a, b) => a - b)
}

function product(sets: readonly (readonly number[])[]): number[][] {
  return sets.reduce<number[][]>((rows, set) => rows.flatMap((r) => set.map((v) => [...r, v])), [[]])
}
