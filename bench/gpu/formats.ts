/** Formats of one matrix on one device, each built once for all widths of the dense operands. */
import type { Built } from './ours.ts'

/** Which element of the source lies in each slot, part by part. */
type Slots = readonly Int32Array[]

export class Formats {
  readonly #built = new Map<string, Promise<Built>>()
  readonly #slots = new Map<string, Promise<Slots>>()

  of(key: string, build: () => Promise<Built>): Promise<Built> {
    return remembered(this.#built, key, build)
  }

  /** Where elements lie in a format that has been built. */
  slots(key: string, find: () => Promise<Slots>): Promise<Slots> {
    return remembered(this.#slots, key, find)
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

function remembered<T>(known: Map<string, Promise<T>>, key: string, make: () => Promise<T>): Promise<T> {
  let value = known.get(key)
  if (!value) {
    value = make()
    known.set(key, value)
  }
  return value
}
