/** Choices that extend imported ones: which choice each stands for, and which of several of one name a file means. */
import type { Diagnostic } from './diagnostic.ts'
import type { Choice, File, Kernel, OfKernel } from './nodes.ts'
import { resolvePath } from './resolve-path.ts'

/** What belongs to kernels, by the file that declares it. */
type Attached = ReadonlyMap<string, ReadonlyMap<Kernel, readonly OfKernel[]>>

/** Files whose schedules of a kernel a file sees, without itself. */
export const seenFrom = (file: File, path: string, kernel: Kernel): ReadonlySet<string> =>
  new Set([
    kernel.span.source,
    ...file.imports.flatMap((i) => (i.names ? [] : [resolvePath(path, i.path.value)])),
  ])

export class Extensions {
  /** By extension, the choice of its name that its file would see without it. */
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

  /** Those that no other of them extends: one, or a name with several meanings. */
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
    // Files may import each other: an extension without a choice so far is none to extend.
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
        expected: 'the name of a choice of an imported file',
        hint: base ? 'call it in a choice of another name' : 'write `choose` for a choice of your own',
      })
  }
}
