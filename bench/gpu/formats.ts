/** Formats of one matrix on one device, each built once for all widths of the dense operands. */
import type { Built } from '../../src/api/built/built.ts'
import type { Conversion } from './ours.ts'

/** Which element of the source lies in each slot, part by part. */
type Slots = readonly Int32Array[]

/** By compiled kernel, which alone can bind them: under one name, another may be chosen for each width. */
export class Formats {
  readonly #built = new Map<Built['code'], Promise<Conversion>>()
  readonly #slots = new Map<Built['code'], Promise<Slots>>()

  of(kernel: Built, build: () => Promise<Conversion>): Promise<Conversion> {
    return remembered(this.#built, kernel.code, build)
  }

  /** Where elements lie in a format that has been built. */
  slots(kernel: Built, find: () => Promise<Slots>): Promise<Slots> {
    return remembered(this.#slots, kernel.code, find)
  }

  async free(): Promise<void> {
    for (const b of this.#built.values())
      try {
        ;(await b).parts?.free()
      } catch {
        // It was never built, or its device is gone; the case says so.
      }
    this.#built.clear()
  }
}

function remembered<K, T>(known: Map<K, Promise<T>>, key: K, make: () => Promise<T>): Promise<T> {
  let value = known.get(key)
  if (!value) {
    value = make()
    known.set(key, value)
  }
  return value
}
