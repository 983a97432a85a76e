/** A least-recently-used cache keyed by text, limited by the total length of its keys. */
export class TextCache<T> {
  readonly #values = new Map<string, T>()
  #length = 0

  /** @param maxLength characters of all keys */
  constructor(private readonly maxLength: number) {}

  get(text: string): T | undefined {
    const cached = this.#values.get(text)
    if (cached !== undefined) this.put(text, cached)
    return cached
  }

  put(text: string, value: T): void {
    if (!this.#values.delete(text)) this.#length += text.length
    this.#values.set(text, value)
    for (const oldest of this.#values.keys()) {
      if (this.#length <= this.maxLength) break
      this.#values.delete(oldest)
      this.#length -= oldest.length
    }
  }
}
