/** The names that a kernel binds, and fresh names distinct from them. */

import type { Param } from '../coordinates/stage1.ts'
import { definitionsIn, loopsOf } from '../statements/definitions.ts'
import type { Buffer, Stmt } from '../statements/loops.ts'
import type { Body } from '../statements/tree.ts'

export interface FreshNames {
  /** `base` if it is free, otherwise `base_2`, `base_3` …; the result is reserved from now on. */
  fresh(base: string): string
}

/** `base` if it is free, otherwise the first free name among `base_from`, `base_(from + 1)` … */
export const unusedName = (base: string, isReserved: (name: string) => boolean, from = 2): string =>
  isReserved(base) ? `${base}_${unusedNumber(base, isReserved, from)}` : base

/** The least k ≥ `from` such that `base_k` is free. */
export function unusedNumber(base: string, isReserved: (name: string) => boolean, from = 2): number {
  let number = from
  while (isReserved(`${base}_${number}`)) number++
  return number
}

export class Names implements FreshNames {
  readonly #taken: Set<string>
  /** The next number to try for a base, so that n requests for one name take O(n) steps. */
  readonly #next: Map<string, number>

  constructor(reserved: Iterable<string> = [], next: Iterable<readonly [string, number]> = []) {
    this.#taken = new Set(reserved)
    this.#next = new Map(next)
  }

  /** An independent copy: names reserved in one are not reserved in the other. */
  copy(): Names {
    return new Names(this.#taken, this.#next)
  }

  /** Reserves a name; returns false if it was reserved already. */
  reserve(name: string): boolean {
    const isFree = !this.#taken.has(name)
    this.#taken.add(name)
    return isFree
  }

  fresh(base: string): string {
    if (this.reserve(base)) return base
    const number = unusedNumber(base, (name) => this.#taken.has(name), this.#next.get(base))
    this.#next.set(base, number + 1)
    this.reserve(`${base}_${number}`)
    return `${base}_${number}`
  }
}

export const namesOf = (
  kernel: {
    readonly params: readonly Param[]
    readonly buffers: readonly Buffer[]
    readonly body: readonly Stmt[]
  },
  additional: readonly string[] = [],
): Names =>
  new Names(
    [
      kernel.params.map((p) => p.name),
      kernel.buffers.map((b) => b.name),
      ...kernel.body.map((s) => definitionsIn(s).names),
      additional,
    ].flatMap((names) => [...names]),
  )

export const nestNames = (body: Body): Names => new Names(loopsOf(body).map((l) => l.nest))
