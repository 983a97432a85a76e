/** Names that are legal in a target: keywords and the text's own names get a suffix, clashes are kept apart. */
export class Mangler {
  readonly #map = new Map<string, string>()
  readonly #used: Set<string>

  constructor(reserved: ReadonlySet<string>) {
    this.#used = new Set(reserved)
  }

  name(original: string): string {
    const known = this.#map.get(original)
    if (known) return known
    let base = original.replace(/[^A-Za-z0-9_]/g, '_')
    // WGSL refuses a leading `__` and a lone `_`; a leading digit is refused everywhere.
    if (/^(_|[0-9])/.test(base)) base = `v${base}`
    let name = base
    for (let k = 1; this.#used.has(name); k++) name = `${base}_${k}`
    this.#used.add(name)
    this.#map.set(original, name)
    return name
  }
}
