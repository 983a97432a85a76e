/** Versions of memory in straight-line code (store-to-load order), for packing accesses into vectors. */
import type { Linear } from '../../analysis/integers/linear.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children } from '../../ir/expressions/expr-tree.ts'

/** The element of a buffer at `base + constant`. */
export interface Element {
  readonly key: string
  readonly constant: number
  readonly base: Linear
  readonly load: Load
}

/** Every write changes the version of the elements that it may overwrite. */
export class MemoryVersions {
  readonly #written: ReadonlySet<string>
  readonly #writeCounts = new Map<string, number>()
  /** Constants of the elements written, by buffer and base. */
  readonly #writtenConstants = new Map<string, Set<number>>()
  readonly #elementWrites = new Map<string, number>()

  constructor(written: ReadonlySet<string>) {
    this.#written = written
  }

  /**
   * Version of an element: equal versions mean equal values; `undefined` if the element itself was written. Stores to other
   * elements of the same base keep the version; all other writes change it.
   */
  version(e: Element): string | undefined {
    const { buffer, index } = e.load
    // An index that is loaded from memory may change with every write to that memory.
    const indexVersions = buffersIn(index[0]!)
      .filter((b) => this.#written.has(b))
      .map((b) => this.#writeCounts.get(b) ?? 0)
    if (!this.#written.has(buffer)) return indexVersions.join()
    if (this.#writtenConstants.get(e.key)?.has(e.constant)) return undefined
    return [
      (this.#writeCounts.get(buffer) ?? 0) - (this.#elementWrites.get(e.key) ?? 0),
      ...indexVersions,
    ].join()
  }

  writeAny(buffer: string): void {
    this.#writeCounts.set(buffer, (this.#writeCounts.get(buffer) ?? 0) + 1)
  }

  writeElement(buffer: string, e: Element | undefined): void {
    this.writeAny(buffer)
    if (!e) return
    this.#elementWrites.set(e.key, (this.#elementWrites.get(e.key) ?? 0) + 1)
    const constants = this.#writtenConstants.get(e.key)
    if (constants) constants.add(e.constant)
    else this.#writtenConstants.set(e.key, new Set([e.constant]))
  }
}

function buffersIn(e: Expr): readonly string[] {
  const indexBuffers = children(e).flatMap(buffersIn)
  return e.kind === 'load' ? [e.buffer, ...indexBuffers] : indexBuffers
}
