/** Choices that extend imported ones: resolves the choice that each extends, and selects among several of one name. */
import type { Diagnostic } from './diagnostic.ts'
import type { Choice, File, Kernel, OfKernel } from './nodes.ts'
import { resolvePath } from './resolve-path.ts'

/** Schedules, choices and spaces by kernel, for each declaring file. */
type Attached = ReadonlyMap<string, ReadonlyMap<Kernel, readonly OfKernel[]>>

/** Paths of the other files whose schedules of a kernel are visible in a file. */
export const seenFrom = (file: File, path: string, kernel: Kernel): ReadonlySet<string> =>
  new Set([
    kernel.span.source,
    ...file.imports.flatMap((i) => (i.names ? [] : [resolvePath(path, i.path.value)])),
  ])

export class Extensions {
  /** For each extension, the choice of the same name that would be visible in its file without it. */
  readonly bases = new Map<Choice, Choice>()
  readonly #resolved = new Set<OfKernel>()
  readonly #files: ReadonlyMap<string, File>
  readonly #attached: Attached
  readonly #problems: Diagnostic[]

  constructor(files: ReadonlyMap<string, File>, attached: Attached, problems: Diagnostic[]) {
    this.#files = files
    this.#attached = attached
    this.#problems = problems
    for (const kernels of attached.values())
      for (const [kernel, all] of kernels) for (const s of all) this.#resolve(s, kernel)
  }

  /** The declarations that no other one extends: one, or several for an ambiguous name. */
  latest(declared: readonly OfKernel[]): readonly OfKernel[] {
    return declared.filter((s) => !declared.some((other) => this.#extends(other, s)))
  }

  #extends(s: OfKernel, base: OfKernel): boolean {
    const seen = new Set<OfKernel>()
    for (let at = this.bases.get(s as Choice); at && !seen.has(at); at = this.bases.get(at)) {
      if (at === base) return true
      seen.add(at)
    }
    return false
  }

  #resolve(s: OfKernel, kernel: Kernel): void {
    if (s.kind !== 'choice' || !s.isExtension || this.#resolved.has(s)) return
    this.#resolved.add(s)
    const path = s.span.source
    const declared = [...seenFrom(this.#files.get(path)!, path, kernel)]
      .filter((from) => from !== path)
      .flatMap((from) => this.#attached.get(from)?.get(kernel) ?? [])
      .filter((d) => d.name.name === s.name.name)
    for (const d of declared) this.#resolve(d, kernel)
    // Files may import each other: an extension finds only choices that are resolved already.
    const usable = declared.filter((d) => d.kind !== 'choice' || !d.isExtension || this.bases.has(d))
    const [base] = this.latest(usable)
    if (base?.kind === 'choice') this.bases.set(s, base)
    else
      this.#problems.push({
        code: 'link/nothing-to-extend',
        message: base
          ? `\`${s.kernel.name}.${s.name.name}\` is a ${base.kind}, not a choice`
          : `no imported file declares a choice \`${s.kernel.name}.${s.name.name}\``,
        span: s.name.span,
        ...(base && { labels: [{ span: base.name.span, text: 'declared here' }] }),
        expected: 'a schedule that an imported file declares with `choose`',
        hint: base ? 'call it in a choice of another name' : 'write `choose` for a choice of your own',
      })
  }
}
