/** Choices that extend imported ones: resolves the choice that each extends, and selects among several of one name. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts'
import type { Dispatch, File, Kernel, KernelSchedule } from '../nodes/nodes.ts'
import { resolvePath } from './resolve-path.ts'

/** Schedules, choices and spaces by kernel, for each declaring file. */
type SchedulesByFile = ReadonlyMap<string, ReadonlyMap<Kernel, readonly KernelSchedule[]>>

/** Paths of the other files whose schedules of a kernel are visible in a file. */
export const visibleFiles = (file: File, path: string, kernel: Kernel): ReadonlySet<string> =>
  new Set([
    kernel.span.source,
    ...file.imports.flatMap((i) => (i.names ? [] : [resolvePath(path, i.path.value)])),
  ])

export class Extensions {
  /** For each extension, the choice of the same name that would be visible in its file without it. */
  readonly bases = new Map<Dispatch, Dispatch>()
  readonly #resolved = new Set<KernelSchedule>()
  readonly #files: ReadonlyMap<string, File>
  readonly #attached: SchedulesByFile
  readonly #problems: Diagnostic[]

  constructor(files: ReadonlyMap<string, File>, attached: SchedulesByFile, problems: Diagnostic[]) {
    this.#files = files
    this.#attached = attached
    this.#problems = problems
    for (const kernels of attached.values())
      for (const [kernel, declarations] of kernels) for (const s of declarations) this.#resolve(s, kernel)
  }

  /** The declarations that no other one extends: one, or several for an ambiguous name. */
  latest(declared: readonly KernelSchedule[]): readonly KernelSchedule[] {
    return declared.filter((s) => !declared.some((other) => this.#extends(other, s)))
  }

  #extends(s: KernelSchedule, base: KernelSchedule): boolean {
    const seen = new Set<KernelSchedule>()
    for (
      let current = this.bases.get(s as Dispatch);
      current && !seen.has(current);
      current = this.bases.get(current)
    ) {
      if (current === base) return true
      seen.add(current)
    }
    return false
  }

  #resolve(s: KernelSchedule, kernel: Kernel): void {
    if (s.kind !== 'choice' || s.by !== 'rules' || !s.isExtension || this.#resolved.has(s)) return
    this.#resolved.add(s)
    const path = s.span.source
    const declared = [...visibleFiles(this.#files.get(path)!, path, kernel)]
      .filter((from) => from !== path)
      .flatMap((from) => this.#attached.get(from)?.get(kernel) ?? [])
      .filter((d) => d.name.name === s.name.name)
    for (const d of declared) this.#resolve(d, kernel)
    // Files may import each other: an extension finds only choices that are resolved already.
    const resolved = declared.filter(
      (d) => d.kind !== 'choice' || d.by !== 'rules' || !d.isExtension || this.bases.has(d),
    )
    const [base] = this.latest(resolved)
    if (base?.kind === 'choice' && base.by === 'rules') this.bases.set(s, base)
    else
      this.#problems.push({
        code: 'link/nothing-to-extend',
        message: base
          ? `\`${s.kernel.name}.${s.name.name}\` is a ${base.kind === 'choice' ? 'search space' : base.kind}, not a dispatch (choose)`
          : `no imported file declares a dispatch \`${s.kernel.name}.${s.name.name}\``,
        span: s.name.span,
        ...(base && { labels: [{ span: base.name.span, text: 'declared here' }] }),
        expected: 'a schedule that an imported file declares with `choose`',
        hint: base ? 'rename this dispatch' : 'write `choose` for a new dispatch',
      })
  }
}
