/** What families of matrices are drawn as. */
import type { Random } from '../../src/run/bind/sources/random-tensors.ts'
import type { MatrixFamily } from './matrix-family.ts'

/** A pattern: rows and columns of the elements, in any order, maybe repeated. */
export interface Pattern {
  readonly shape: readonly [rows: number, columns: number]
  readonly rows: Int32Array
  readonly columns: Int32Array
}

export type Family = MatrixFamily<Pattern>

/** Elements as they come. */
export class Edges {
  readonly #rows: number[] = []
  readonly #columns: number[] = []

  add(row: number, column: number): void {
    this.#rows.push(row)
    this.#columns.push(column)
  }

  pattern(rows: number, columns = rows): Pattern {
    return {
      shape: [rows, columns],
      rows: Int32Array.from(this.#rows),
      columns: Int32Array.from(this.#columns),
    }
  }
}

/** A node of n, those with small numbers more often: of density proportional to x^-skew (0: all alike). */
export const skewed = (random: Random, n: number, skew: number): number =>
  Math.min(n - 1, Math.floor(n * random.next() ** (1 / (1 - skew))))
