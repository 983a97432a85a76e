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

/** Names that are taken. */
export class Names implements FreshNames {
  readonly #taken: Set<string>
  /** The number to try next for a base, so that a name that is asked for n times costs n steps. */
  readonly #next = new Map<string, number>()

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken)
  }

  /** Takes a name; false where it is taken. */
  take(name: string): boolean {
    const free = !this.#taken.has(name)
    this.#taken.add(name)
    return free
  }

  fresh(base: string): string {
    let name = base
    let k = this.#next.get(base) ?? 2
    while (!this.take(name)) name = `${base}_${k++}`
    if (name !== base) this.#next.set(base, k)
    return name
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
