/** Fresh names: unique among everything a kernel declares. */
export class Names {
  readonly #taken: Set<string>

  constructor(taken: Iterable<string> = []) {
    this.#taken = new Set(taken)
  }

  /** `base` if it is free, else `base_2`, `base_3` …; the result counts as taken from now on. */
  fresh(base: string): string {
    let name = base
    for (let k = 2; this.#taken.has(name); k++) name = `${base}_${k}`
    this.#taken.add(name)
    return name
  }
}
