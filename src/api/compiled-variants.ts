/** Kernels that are compiled when they are asked for first, and kept. */
import type { CompiledSchedule } from './compiled.ts'

export class CompiledVariants<K> {
  readonly #compiled = new Map<K, Promise<CompiledSchedule>>()

  set(key: K, compiled: CompiledSchedule): void {
    this.#compiled.set(key, Promise.resolve(compiled))
  }

  get(key: K, compile: () => Promise<CompiledSchedule>): Promise<CompiledSchedule> {
    const known = this.#compiled.get(key)
    if (known) return known
    const pending = compile()
    this.#compiled.set(key, pending)
    // What a device could not do now it may do later.
    pending.catch(() => this.#compiled.delete(key))
    return pending
  }

  /** What is asked for later is compiled anew. */
  release(): void {
    for (const pending of this.#compiled.values())
      void pending.then(
        (c) => c.release(),
        () => {},
      )
    this.#compiled.clear()
  }
}
