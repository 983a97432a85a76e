/** Versions of memory in a straight line (store-to-load order), for packing accesses into vectors. */
import type { Linear } from '../analysis/integers/linear.ts'
import type { Expr, Load } from '../ir/expr.ts'
import { children } from '../ir/expr-tree.ts'

/** Elements at `base + constant`, of one state of a buffer. */
export interface Element {
  readonly key: string
  readonly constant: number
  readonly base: Linear
  readonly load: Load
}

/** Versions of memory along straight-line code: every write changes the version of what it may overwrite. */
export class MemoryVersions {
  readonly #written: ReadonlySet<string>
  readonly #all = new Map<string, number>()
  /** Constants of the elements written, by buffer and base. */
  readonly #own = new Map<string, Set<number>>()
  readonly #counts = new Map<string, number>()

  constructor(written: ReadonlySet<string>) {
    this.#written = written
  }

  /**
   * Version of an element: equal versions mean equal values; `undefined` if the element itself was written. Stores to other
   * elements of its base keep the version, all others change it.
   */
  state(e: Element): string | undefined {
    const { buffer, index } = e.load
    // An index that is itself read from memory is another one after every write there.
    const through = buffersIn(index[0]!)
      .filter((b) => this.#written.has(b))
      .map((b) => this.#all.get(b) ?? 0)
    if (!this.#written.has(buffer)) return through.join()
    if (this.#own.get(e.key)?.has(e.constant)) return undefined
    return [(this.#all.get(buffer) ?? 0) - (this.#counts.get(e.key) ?? 0), ...through].join()
  }

  all(buffer: string): void {
    this.#all.set(buffer, (this.#all.get(buffer) ?? 0) + 1)
  }

  one(buffer: string, e: Element | undefined): void {
    this.all(buffer)
    if (!e) return
    this.#counts.set(e.key, (this.#counts.get(e.key) ?? 0) + 1)
    const own = this.#own.get(e.key)
    if (own) own.add(e.constant)
    else this.#own.set(e.key, new Set([e.constant]))
  }
}

function buffersIn(e: Expr): readonly string[] {
  const inside = children(e).flatMap(buffersIn)
  return e.kind === 'load' ? [e.buffer, ...inside] : inside
}
