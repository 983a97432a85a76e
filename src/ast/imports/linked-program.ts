/** Names of a program and their declarations, over all its files. Built by `link`. */
import { fail, type Source } from '../diagnostics/diagnostic.ts'
import type {
  Decl,
  Dispatch,
  File,
  Format,
  Ident,
  Instr,
  Kernel,
  KernelSchedule,
  Memory,
  Monoid,
  ScheduleFunction,
} from '../nodes/nodes.ts'

/**
 * The names visible in a file: declarations, imports, and the schedules of the kernels. Names are local:
 * a renaming import is listed under its new name. Kernels, formats, monoids, memories, instructions and schedule functions
 * share a name space; schedules are keyed by their kernel's local name, then by their own (`gpu`; for some types, `f16.gpu`).
 */
export interface Scope {
  readonly kernels: ReadonlyMap<string, Kernel>
  readonly formats: ReadonlyMap<string, Format>
  readonly monoids: ReadonlyMap<string, Monoid>
  readonly memories: ReadonlyMap<string, Memory>
  readonly instrs: ReadonlyMap<string, Instr>
  /** Schedule functions. */
  readonly functions: ReadonlyMap<string, ScheduleFunction>
  readonly schedules: ReadonlyMap<string, ReadonlyMap<string, KernelSchedule>>
  /** Names that several imported files declare; they are in none of the maps above, and using one is an error. */
  readonly ambiguous: ReadonlyMap<string, readonly Decl[]>
}

/**
 * A program is the scope of its entry file, plus the scopes of all files. Names inside a declaration (the monoid of a
 * kernel, the format of a schedule) are resolved in its own file: `scopeOf(program, decl)`.
 */
export interface Program extends Scope {
  readonly entry: string
  readonly files: ReadonlyMap<string, File>
  readonly sources: ReadonlyMap<string, Source>
  readonly scopes: ReadonlyMap<string, Scope>
  /** The choice that each extension (`extends { … }`) extends. */
  readonly extended: ReadonlyMap<Dispatch, Dispatch>
}

/** The scope in which the names inside a declaration are resolved. */
export function scopeOf(program: Program, decl: Decl): Scope {
  return program.scopes.get(decl.span.source) ?? program
}

interface Kinds {
  readonly kernels: Kernel
  readonly formats: Format
  readonly monoids: Monoid
}

/** The declaration of a name in a scope. @throws SptError if it is unknown or ambiguous */
export function resolve<K extends keyof Kinds>(scope: Scope, kind: K, id: Ident): Kinds[K] {
  const declaration = (scope[kind] as ReadonlyMap<string, Kinds[K]>).get(id.name)
  if (declaration) return declaration
  const ambiguous = scope.ambiguous.get(id.name)
  if (ambiguous)
    fail({
      code: 'link/ambiguous-name',
      message: `several files declare \`${id.name}\``,
      span: id.span,
      labels: ambiguous.map((d) => ({ span: d.name.span, text: 'one of them' })),
      hint: `import the declaration by name: \`import { ${id.name} } from "…"\``,
    })
  const kindName = kind.slice(0, -1)
  const otherKind = (['kernels', 'formats', 'monoids'] as const).find((k) => scope[k].has(id.name))
  fail({
    code: 'link/unknown-name',
    message: otherKind
      ? `\`${id.name}\` is a ${otherKind.slice(0, -1)}, not a ${kindName}`
      : `there is no ${kindName} \`${id.name}\``,
    span: id.span,
    lookup: { name: id.name, candidates: [...scope[kind].keys()] },
  })
}
