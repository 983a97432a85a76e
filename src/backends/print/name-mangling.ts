/** Name mangling: names that are legal and unique in a target; keywords and names of generated code get a suffix. */
import { unusedName } from '../../ir/expressions/bound-names.ts'

export class Mangler {
  readonly #map = new Map<string, string>()
  readonly #used: Set<string>

  constructor(reserved: ReadonlySet<string>) {
    this.#used = new Set(reserved)
  }

  name(original: string): string {
    const mangled = this.#map.get(original)
    if (mangled) return mangled
    const name = this.unique(original)
    this.#map.set(original, name)
    return name
  }

  /** Reserves a name for generated code; a kernel's variable of the same name is renamed. */
  unique(original: string): string {
    let base = original.replace(/[^A-Za-z0-9_]/g, '_')
    // WGSL rejects a leading `__` and a single `_`; all targets reject a leading digit.
    if (/^(_|[0-9])/.test(base)) base = `v${base}`
    const name = unusedName(base, (x) => this.#used.has(x), 1)
    this.#used.add(name)
    return name
  }
}
