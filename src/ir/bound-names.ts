/** Names that a kernel binds, and fresh ones beside them. */
import { definitionsIn, loopsOf } from './definitions.ts'
import type { Buffer, Stmt } from './loops.ts'
import type { Param } from './stage1.ts'
import type { Body } from './tree.ts'

/** Where fresh names come from. */
export interface FreshNames {
  /** `base` if it is free, else `base_2`, `base_3` …; the result counts as taken from now on. */
  fresh(base: string): string
}

/** `base` if it is free, else the first free one of `base_2`, `base_3` …, or of those from another number on. */
export const unusedName = (base: string, isTaken: (name: string) => boolean, from = 2): string =>
  isTaken(base) ? `${base}_${unusedNumber(base, isTaken, from)}` : base

/** The least k from a number on with `base_k` free. */
export function unusedNumber(base: string, isTaken: (name: string) => boolean, from = 2): number {
  let k = from
  while (isTaken(`${base}_${k}`)) k++
  return k
}

/** Names that are taken. */
export class Names implements FreshNames {
  readonly #taken: Set<string>
  /** The number to try next for a base, so that a name that is asked for n times costs n steps. */
  readonly #next: Map<string, number>

  constructor(taken: Iterable<string> = [], next: Iterable<readonly [string, number]> = []) {
    this.#taken = new Set(taken)
    this.#next = new Map(next)
  }

  /** The same names taken: what either takes from now on, the other does not know. */
  copy(): Names {
    return new Names(this.#taken, this.#next)
  }

  /** Takes a name; false where it is taken. */
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

/** Every name that a kernel binds, and `others`. */
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

/** What the nests of a body are called. */
export const nestNames = (body: Body): Names => new Names(loopsOf(body).map((l) => l.nest))
