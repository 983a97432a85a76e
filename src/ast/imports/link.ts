/** Linking of files into scopes: the declaration of each name in each file. */
import { type Diagnostic, type Source, SptError } from '../diagnostics/diagnostic.ts'
import type * as ast from '../nodes/nodes.ts'
import { kernelText } from '../print/print-expr.ts'
import { Extensions, type Program, type Scope, visibleFiles } from './linked-program.ts'
import { resolvePath } from './resolve-path.ts'

/** Declarations that a file can import by name. */
type Named = ast.Kernel | ast.Format | ast.Monoid | ast.Memory | ast.Instr | ast.ScheduleFunction

interface Linking {
  readonly files: ReadonlyMap<string, ast.File>
  /** Declarations of each file, by name. */
  readonly declared: ReadonlyMap<string, ReadonlyMap<string, Named>>
  readonly problems: Diagnostic[]
}

/**
 * The program whose entry is the file `entry`; `files` holds all its imports. @throws one SptError with all duplicate,
 * missing and unknown names
 */
export function link(
  entry: string,
  files: ReadonlyMap<string, ast.File>,
  sources: ReadonlyMap<string, Source>,
): Program {
  const problems: Diagnostic[] = []
  const declared = new Map([...files].map(([path, file]) => [path, declarations(file, problems)]))
  const linking = { files, declared, problems }
  const names = new Map([...files].map(([path, file]) => [path, namesOf(path, file, linking)]))
  const attached = new Map(
    [...files].map(([path, file]) => [path, attachedSchedules(file, names.get(path)!, problems)]),
  )
  const extensions = new Extensions(files, attached, problems)
  const scopes = new Map(
    [...files].map(([path, file]) => [
      path,
      scopeFor(path, file, names.get(path)!, attached, extensions, problems),
    ]),
  )
  if (problems.length > 0) throw new SptError(problems)
  return { ...scopes.get(entry)!, entry, files, sources, scopes, extended: extensions.bases }
}

function reportDuplicate(
  problems: Diagnostic[],
  what: string,
  repeated: ast.Ident,
  first: ast.Ident,
  hint = 'rename one of them; an import can: `import { x as y } from "…"`',
): void {
  problems.push({
    code: 'link/duplicate-name',
    message: `${what} is declared twice`,
    span: repeated.span,
    labels: [{ span: first.span, text: 'first here' }],
    hint,
  })
}

function declarations(file: ast.File, problems: Diagnostic[]): Map<string, Named> {
  const result = new Map<string, Named>()
  const tables = new Map<string, ast.Ident>()
  for (const d of file.decls) {
    if (isAttached(d)) continue
    if (d.kind === 'table') {
      const kernel = kernelText(d.kernel, d.types)
      const first = tables.get(kernel)
      if (first) reportDuplicate(problems, `\`dispatch ${kernel}\``, d.kernel, first, 'remove one of them')
      else tables.set(kernel, d.kernel)
      continue
    }
    const first = result.get(d.name.name)
    if (first) reportDuplicate(problems, `\`${d.name.name}\``, d.name, first.name)
    else result.set(d.name.name, d)
  }
  return result
}

interface Names {
  readonly known: ReadonlyMap<string, Named>
  readonly ambiguous: ReadonlyMap<string, readonly Named[]>
}

/** The names of a file. Names declared here or imported by name take precedence over those of whole files. */
function namesOf(path: string, file: ast.File, linking: Linking): Names {
  const known = new Map(linking.declared.get(path))
  const owners = new Map<string, ast.Ident>([...known].map(([name, d]) => [name, d.name]))
  for (const i of file.imports) {
    for (const n of i.names ?? []) {
      const decl = findImported(path, i, n.name, linking)
      const first = owners.get(n.local.name)
      if (first && known.get(n.local.name) !== decl)
        reportDuplicate(linking.problems, `\`${n.local.name}\``, n.local, first)
      if (!decl || first) continue
      known.set(n.local.name, decl)
      owners.set(n.local.name, n.local)
    }
  }
  const wholeFileNames = new Map<string, Set<Named>>()
  for (const i of file.imports) {
    if (i.names) continue
    for (const [name, d] of linking.declared.get(resolvePath(path, i.path.value)) ?? []) {
      if (owners.has(name)) continue
      wholeFileNames.set(name, (wholeFileNames.get(name) ?? new Set()).add(d))
    }
  }
  const ambiguous = new Map<string, readonly Named[]>()
  for (const [name, decls] of wholeFileNames) {
    const [only] = decls
    if (decls.size === 1) known.set(name, only!)
    else ambiguous.set(name, [...decls])
  }
  return { known, ambiguous }
}

function findImported(path: string, i: ast.Import, name: ast.Ident, linking: Linking): Named | undefined {
  const target = resolvePath(path, i.path.value)
  const targetNames = linking.declared.get(target)
  const decl = targetNames?.get(name.name)
  if (decl || !targetNames) return decl
  const reexport = linking.files
    .get(target)!
    .imports.find((j) => j.names?.some((n) => n.local.name === name.name))
  linking.problems.push({
    code: 'link/missing-name',
    message: `\`${i.path.value}\` does not declare \`${name.name}\``,
    span: name.span,
    lookup: { name: name.name, candidates: [...targetNames.keys()] },
    ...(reexport && {
      hint: `\`${i.path.value}\` imports \`${name.name}\` from \`${reexport.path.value}\`: import from that file`,
    }),
  })
  return undefined
}

/** True for declarations whose name begins with a kernel's: schedules, choices and spaces. */
const isAttached = (d: ast.File['decls'][number]): d is ast.KernelSchedule =>
  d.kind === 'schedule' || d.kind === 'choice'

/** The schedules, choices and spaces that a file declares, by kernel. */
type Attached = ReadonlyMap<ast.Kernel, readonly ast.KernelSchedule[]>

function attachedSchedules(file: ast.File, { known }: Names, problems: Diagnostic[]): Attached {
  const result = new Map<ast.Kernel, ast.KernelSchedule[]>()
  for (const s of file.decls) {
    if (!isAttached(s)) continue
    const kernel = known.get(s.kernel.name)
    if (kernel?.kind !== 'kernel') {
      problems.push({
        code: 'link/unknown-name',
        message: kernel
          ? `\`${s.kernel.name}\` is a ${kernel.kind}, not a kernel`
          : `there is no kernel \`${s.kernel.name}\``,
        span: s.kernel.span,
        lookup: {
          name: s.kernel.name,
          candidates: [...known].flatMap(([name, d]) => (d.kind === 'kernel' ? [name] : [])),
        },
        hint: 'declare the kernel in this file, or import the kernel',
      })
      continue
    }
    const list = result.get(kernel) ?? []
    list.push(s)
    result.set(kernel, list)
  }
  return result
}

function scopeFor(
  path: string,
  file: ast.File,
  { known, ambiguous }: Names,
  attached: ReadonlyMap<string, Attached>,
  extensions: Extensions,
  problems: Diagnostic[],
): Scope {
  const schedules = new Map<string, ReadonlyMap<string, ast.KernelSchedule>>()
  for (const [name, d] of known) {
    if (d.kind !== 'kernel') continue
    const declared = new Map<string, ast.KernelSchedule[]>()
    for (const from of new Set([...visibleFiles(file, path, d), path]))
      for (const s of attached.get(from)?.get(d) ?? [])
        declared.set(scheduleKey(s), [...(declared.get(scheduleKey(s)) ?? []), s])
    const byName = new Map<string, ast.KernelSchedule>()
    for (const [scheduleName, declarations] of declared) {
      const [first, ...duplicates] = extensions.latest(declarations)
      for (const s of duplicates) reportConflict(problems, s, first!, path)
      byName.set(scheduleName, first!)
    }
    schedules.set(name, byName)
  }
  const declarationsOf = <D extends Named>(kind: D['kind']): ReadonlyMap<string, D> =>
    new Map([...known].filter((e): e is [string, D] => e[1].kind === kind))
  return {
    kernels: declarationsOf<ast.Kernel>('kernel'),
    formats: declarationsOf<ast.Format>('format'),
    monoids: declarationsOf<ast.Monoid>('monoid'),
    memories: declarationsOf<ast.Memory>('memory'),
    instrs: declarationsOf<ast.Instr>('instr'),
    functions: declarationsOf<ast.ScheduleFunction>('function'),
    schedules,
    ambiguous: ambiguous as ReadonlyMap<string, readonly ast.Decl[]>,
  }
}

const scheduleKey = ({ types, name }: ast.KernelSchedule): string =>
  [...types.map((t) => t.map((x) => x.name).join(' or ')), name.name].join('.')

/** Reports a conflict once: in the file that declares both, or in the one that imports both. */
function reportConflict(
  problems: Diagnostic[],
  second: ast.KernelSchedule,
  first: ast.KernelSchedule,
  path: string,
): void {
  if (second.span.source === first.span.source && second.span.source !== path) return
  reportDuplicate(
    problems,
    `schedule \`${second.kernel.name}.${second.name.name}\``,
    second.name,
    first.name,
    first.kind === 'choice' &&
      first.by === 'rules' &&
      second.kind === 'choice' &&
      second.by === 'rules' &&
      first.span.source !== second.span.source
      ? `to add to the imported choice: \`schedule ${second.kernel.name}.${second.name.name} extends { … }\``
      : undefined,
  )
}
