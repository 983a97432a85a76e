/**
 * Feature rows of points for learning. A decision is a column; numbers within a text (`sell(8, 64)`) are columns of their
 * own, so that models generalise to neighbouring values.
 */
import type { DecisionValue, Point } from '../types.ts'

/** Feature value of decisions that a point does not reach. */
export const ABSENT = Number.NEGATIVE_INFINITY

const NUMBER = /(?<![\w.])-?\d+(?:\.\d+)?/g

export class Columns {
  readonly #columns = new Map<string, number>()
  /** Indices of the texts of a column, which are names without an order. */
  readonly #names: Map<string, number>[] = []

  /** Number of columns so far. */
  get size(): number {
    return this.#names.length
  }

  /** True if a column encodes names. */
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
