/** Names of a program and their declarations, over all its files. Built by `link`, with the choices that extend imported ones. */
import { type Diagnostic, failAt, type Source } from '../diagnostics/diagnostic.ts'
import type * as ast from '../nodes/nodes.ts'
import { resolvePath } from './resolve-path.ts'

/**
 * The names visible in a file: declarations, imports, and the schedules of the kernels. Names are local:
 * a renaming import is listed under its new name. Kernels, formats, monoids, memories, instructions and schedule functions
 * share a name space; schedules are keyed by their kernel's local name, then by their own (`gpu`; for some types, `f16.gpu`).
 */
export interface Scope {
  readonly kernels: ReadonlyMap<string, ast.Kernel>
  readonly formats: ReadonlyMap<string, ast.Format>
  readonly monoids: ReadonlyMap<string, ast.Monoid>
  readonly memories: ReadonlyMap<string, ast.Memory>
  readonly instrs: ReadonlyMap<string, ast.Instr>
  /** Schedule functions. */
  readonly functions: ReadonlyMap<string, ast.ScheduleFunction>
  readonly schedules: ReadonlyMap<string, ReadonlyMap<string, ast.KernelSchedule>>
  /** Names that several imported files declare; they are in none of the maps above, and using one is an error. */
  readonly ambiguous: ReadonlyMap<string, readonly ast.Decl[]>
}

/**
 * A program is the scope of its entry file, plus the scopes of all files. Names inside a declaration (the monoid of a
 * kernel, the format of a schedule) are resolved in its own file: `scopeOf(program, decl)`.
 */
export interface Program extends Scope {
  readonly entry: string
  readonly files: ReadonlyMap<string, ast.File>
  readonly sources: ReadonlyMap<string, Source>
  readonly scopes: ReadonlyMap<string, Scope>
  /** The choice that each extension (`extends { … }`) extends. */
  readonly extended: ReadonlyMap<ast.Dispatch, ast.Dispatch>
}

/** The scope in which the names inside a declaration are resolved. */
export function scopeOf(program: Program, decl: ast.Decl): Scope {
  return program.scopes.get(decl.span.source) ?? program
}

interface Kinds {
  readonly kernels: ast.Kernel
  readonly formats: ast.Format
  readonly monoids: ast.Monoid
}

/** The declaration of a name in a scope. @throws SptError if it is unknown or ambiguous */
export function resolve<K extends keyof Kinds>(scope: Scope, kind: K, id: ast.Ident): Kinds[K] {
  const declaration = (scope[kind] as ReadonlyMap<string, Kinds[K]>).get(id.name)
  if (declaration) return declaration
  const ambiguous = scope.ambiguous.get(id.name)
  if (ambiguous)
    failAt('link/ambiguous-name', id.span, {
      message: `several files declare \`${id.name}\``,
      labels: ambiguous.map((d) => ({ span: d.name.span, text: 'one of them' })),
      hint: `import the declaration by name: \`import { ${id.name} } from "…"\``,
    })
  const kindName = kind.slice(0, -1)
  const otherKind = (['kernels', 'formats', 'monoids'] as const).find((k) => scope[k].has(id.name))
  failAt('link/unknown-name', id.span, {
    message: otherKind
      ? `\`${id.name}\` is a ${otherKind.slice(0, -1)}, not a ${kindName}`
      : `there is no ${kindName} \`${id.name}\``,
    lookup: { name: id.name, candidates: [...scope[kind].keys()] },
  })
}

// Choices that extend imported ones: resolves the choice that each extends, and selects among several of one
// name.

/** Schedules, choices and spaces by kernel, for each declaring file. */
type SchedulesByFile = ReadonlyMap<string, ReadonlyMap<ast.Kernel, readonly ast.KernelSchedule[]>>

/** Paths of the other files whose schedules of a kernel are visible in a file. */
export const visibleFiles = (file: ast.File, path: string, kernel: ast.Kernel): ReadonlySet<string> =>
  new Set([
    kernel.span.source,
    ...file.imports.flatMap((i) => (i.names ? [] : [resolvePath(path, i.path.value)])),
  ])

export class Extensions {
  /** For each extension, the choice of the same name that would be visible in its file without it. */
  readonly bases = new Map<ast.Dispatch, ast.Dispatch>()
  readonly #resolved = new Set<ast.KernelSchedule>()

  constructor(
    private readonly files: ReadonlyMap<string, ast.File>,
    private readonly attached: SchedulesByFile,
    private readonly problems: Diagnostic[],
  ) {
    for (const kernels of attached.values())
      for (const [kernel, declarations] of kernels) for (const s of declarations) this.#resolve(s, kernel)
  }

  /** The declarations that no other one extends: one, or several for an ambiguous name. */
  latest(declared: readonly ast.KernelSchedule[]): readonly ast.KernelSchedule[] {
    return declared.filter((s) => !declared.some((other) => this.#extends(other, s)))
  }

  #extends(s: ast.KernelSchedule, base: ast.KernelSchedule): boolean {
    // The chain ends: the base of a choice was resolved before the choice.
    for (let now = this.bases.get(s as ast.Dispatch); now; now = this.bases.get(now))
      if (now === base) return true
    return false
  }

  #resolve(s: ast.KernelSchedule, kernel: ast.Kernel): void {
    if (s.kind !== 'choice' || s.by !== 'rules' || !s.isExtension || this.#resolved.has(s)) return
    this.#resolved.add(s)
    const path = s.span.source
    const declared = [...visibleFiles(this.files.get(path)!, path, kernel)]
      .filter((from) => from !== path)
      .flatMap((from) => this.attached.get(from)?.get(kernel) ?? [])
      .filter((d) => d.name.name === s.name.name)
    for (const d of declared) this.#resolve(d, kernel)
    // Files may import each other: an extension finds only choices that are resolved already.
    const resolved = declared.filter(
      (d) => d.kind !== 'choice' || d.by !== 'rules' || !d.isExtension || this.bases.has(d),
    )
    const [base] = this.latest(resolved)
    if (base?.kind === 'choice' && base.by === 'rules') this.bases.set(s, base)
    else
      this.problems.push({
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
