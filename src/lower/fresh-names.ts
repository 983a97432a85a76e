/** Fresh names: unique among everything a kernel declares. */
export class Names {
  readonly #taken: Set<string>
  /** The number to try next for a base, so that a name that is asked for n times costs n steps. */
  readonly #next = new Map<string, number>()

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken)
  }

  /** `base` if it is free, else `base_2`, `base_3` …; the result counts as taken from now on. */
  fresh(base: string): string {
    let name = base
    let k = this.#next.get(base) ?? 2
    while (this.#taken.has(name)) name = `${base}_${k++}`
    if (name !== base) this.#next.set(base, k)
    this.#taken.add(name)
    return name
  }
}
