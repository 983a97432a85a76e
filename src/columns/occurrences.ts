import { checkAllocation } from './allocate.ts'

/** Counting distinct numbers with a mark for each that has occurred. */
export class Occurrences {
  readonly #seen: Uint8Array

  /** Counts numbers from 0 to `size` - 1. */
  constructor(size: number) {
    checkAllocation(size, size, 'numbers')
    this.#seen = new Uint8Array(size)
  }

  /**
   * The number of distinct numbers of a column (`null`: those below `n`) that have not occurred before. O(elements).
   */
  add(column: Int32Array | null, n = column?.length ?? 0): number {
    const seen = this.#seen
    let newCount = 0
    for (let e = 0; e < n; e++) {
      const q = column ? column[e]! : e
      newCount += 1 - seen[q]!
      seen[q] = 1
    }
    return newCount
  }
}
