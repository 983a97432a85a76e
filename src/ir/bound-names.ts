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
export function unusedName(base: string, isTaken: (name: string) => boolean, from = 2): string {
  let name = base
  for (let k = from; isTaken(name); k++) name = `${base}_${k}`
  return name
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
    const next = this.#next.get(base) ?? 2
    let tried = 0
    const isTaken = (name: string): boolean => {
      tried++
      return !this.take(name)
    }
    const name = unusedName(base, isTaken, next)
    if (tried > 1) this.#next.set(base, next + tried - 1)
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
