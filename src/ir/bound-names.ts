/** The names that a kernel binds, and fresh names distinct from them. */
import { definitionsIn, loopsOf } from './definitions.ts'
import type { Buffer, Stmt } from './loops.ts'
import type { Param } from './stage1.ts'
import type { Body } from './tree.ts'

/** Generator of fresh names. */
export interface FreshNames {
  /** `base` if it is free, otherwise `base_2`, `base_3` …; the result is reserved from now on. */
  fresh(base: string): string
}

/** `base` if it is free, otherwise the first free name among `base_from`, `base_(from + 1)` … */
export const unusedName = (base: string, isTaken: (name: string) => boolean, from = 2): string =>
  isTaken(base) ? `${base}_${unusedNumber(base, isTaken, from)}` : base

/** The least k ≥ `from` such that `base_k` is free. */
export function unusedNumber(base: string, isTaken: (name: string) => boolean, from = 2): number {
  let k = from
  while (isTaken(`${base}_${k}`)) k++
  return k
}

/** A set of reserved names. */
export class Names implements FreshNames {
  readonly #taken: Set<string>
  /** The next number to try for a base, so that n requests for one name take O(n) steps. */
  readonly #next: Map<string, number>

  constructor(taken: Iterable<string> = [], next: Iterable<readonly [string, number]> = []) {
    this.#taken = new Set(taken)
    this.#next = new Map(next)
  }

  /** An independent copy: names reserved in one are not reserved in the other. */
  copy(): Names {
    return new Names(this.#taken, this.#next)
  }

  /** Reserves a name; returns false if it was reserved already. */
  take(name: string): boolean {
    const free = !this.#taken.has(name)
    this.#taken.add(name)
    return free
  }

  fresh(base: string): string {
    if (this.take(base)) return base
    const k = unusedNumber(base, (name) => this.#taken.has(name), this.#next.get(base))
    this.#next.set(base, k + 1)
    this.take(`${base}_${k}`)
    return `${base}_${k}`
  }
}

/** Every name that a kernel binds, together with `others`. */
export const namesOf = (
  kernel: {
    readonly params: readonly Param[]
    readonly buffers: readonly Buffer[]
    readonly body: readonly Stmt[]
  },
  others: readonly string[] = [],
): Names =>
  new Names(
    [
      kernel.params.map((p) => p.name),
      kernel.buffers.map((b) => b.name),
      ...kernel.body.map((s) => definitionsIn(s).names),
      others,
    ].flatMap((names) => [...names]),
  )

/** The names of the loop nests of a body. */
export const nestNames = (body: Body): Names => new Names(loopsOf(body).map((l) => l.nest))
