/** A least-recently-used cache keyed by text, limited by the total length of its keys. */
export class Latest<T> {
  readonly #most: number
  readonly #made = new Map<string, T>()
  #kept = 0

  /** @param most characters of all keys */
  constructor(most: number) {
    this.#most = most
  }

  get(text: string): T | undefined {
    const made = this.#made.get(text)
    if (made !== undefined) this.keep(text, made)
    return made
  }

  keep(text: string, made: T): void {
    if (!this.#made.delete(text)) this.#kept += text.length
    this.#made.set(text, made)
    for (const old of this.#made.keys()) {
      if (this.#kept <= this.#most) break
      this.#made.delete(old)
      this.#kept -= old.length
    }
  }
}
