/** Compiled kernels by key, compiled on first use. */
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
    // Failures are not cached, because the device may succeed later.
    pending.catch(() => this.#compiled.delete(key))
    return pending
  }

  /** Releases all kernels; later requests compile again. */
  release(): void {
    for (const pending of this.#compiled.values())
      void pending.then(
        (c) => c.release(),
        () => {},
      )
    this.#compiled.clear()
  }
}
