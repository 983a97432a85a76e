/** Output of `spt tune --out`: a program with the schedules, which imports the names that they use. */
import { dirname, relative, resolve, sep } from 'node:path'
import type { Program } from '../../ast/imports/linked-program.ts'
import { inPackage, isQuotable, quotedPath } from '../../ast/imports/resolve-path.ts'
import type { Decl, Kernel } from '../../ast/nodes/nodes.ts'
import { locate } from '../../io/package/package.ts'
import type { Call } from '../arguments/command.ts'
import { standardStream } from '../output/outputs.ts'

/** Checks before the search that a file at `out` can import the program's declarations. @throws UsageError */
export function checkImportable(call: Call, program: Program, out: string): void {
  const { kernels, formats, monoids, memories, instrs } = program
  const declared = [kernels, formats, monoids, memories, instrs].flatMap(
    (declarations: ReadonlyMap<string, Decl>) => [...declarations.values()],
  )
  const schedules = [...program.schedules.values()].flatMap((byName) => [...byName.values()])
  const files = new Set([...declared, ...schedules].map((d) => d.span.source).filter((f) => !inPackage(f)))
  for (const file of files) {
    if (!isQuotable(importPath(out, file)))
      call.reject(`no program can import ${JSON.stringify(importPath(out, file))}`, {
        expected: 'a path without quotes, backslashes and line breaks',
        hint: 'rename the folder or the file, or leave out --out',
      })
  }
}

/** Names that a file can import from the one that declares them. */
type ImportableDecl = Exclude<Decl, { readonly kind: 'schedule' | 'choice' }>

/**
 * Source of a file at `path` with schedules of a kernel. It imports the kernel and the names that the schedules use.
 */
export function outFile(program: Program, kernel: string, schedules: string, path: string): string {
  const words = new Set(schedules.match(/[A-Za-z_]\w*/g))
  const { formats, monoids, memories, instrs } = program
  const referenced = [formats, monoids, memories, instrs].flatMap(
    (declarations: ReadonlyMap<string, ImportableDecl>) =>
      [...declarations].filter(([name]) => words.has(name)),
  )
  const declared = kernel.replace(/<.*/, '')
  const [local, declaration] = [...program.kernels].find(([name, k]) =>
    [name, k.name.name].includes(declared),
  )!
  const files = new Map<string, string[]>()
  for (const [name, decl] of [[declared, declaration] as const, ...referenced]) {
    const file = decl.span.source
    const text = decl.name.name === name ? name : `${decl.name.name} as ${name}`
    files.set(file, [...(files.get(file) ?? []), text])
  }
  const from = (file: string): string => quotedPath(importPath(path, file))
  return [
    ...[...files].map(([file, names]) => `import { ${names.join(', ')} } from ${from(file)}\n`),
    ...scheduleFiles(program, local, declaration, words).map((file) => `import ${from(file)}\n`),
    `\n${schedules}`,
  ].join('')
}

const userFiles = ({ sources }: Pick<Program, 'sources'>): readonly string[] =>
  [...sources.keys()].filter((file) => !inPackage(file))

/** Checks before the search that the program consists of one file. @throws UsageError */
export function checkSelfContained(call: Call, program: Program): void {
  const files = userFiles(program)
  if (files.length > 1)
    call.reject(
      `--whole takes a program of a single file, and this program has ${files.length}: ${files.join(', ')}`,
      {
        expected: 'a program that imports from the package alone',
        hint: 'leave out --whole: the file that is written then imports the kernel',
      },
    )
}

/** Source of a self-contained file, which imports the package only: the program, and schedules of its kernel. */
export function selfContainedFile(program: Program, kernel: string, schedules: string, path: string): string {
  if (userFiles(program).length === 0) return outFile(program, kernel, schedules, path)
  return `${program.sources.get(program.entry)!.text.trimEnd()}\n\n${schedules}`
}

/** Other files that declare the named schedules of the kernel; only self-contained files include them. */
function scheduleFiles(
  program: Program,
  local: string,
  kernel: Kernel,
  words: ReadonlySet<string>,
): readonly string[] {
  const referenced = [...(program.schedules.get(local) ?? [])].filter(([name]) => words.has(name))
  const files = new Set(referenced.map(([, decl]) => decl.span.source))
  files.delete(kernel.span.source)
  return [...files]
}

/** Path by which one file imports another. */
export function importPath(from: string, file: string): string {
  if (inPackage(file)) return file
  // Output to a standard stream is assumed to be saved in the current folder.
  const folder = standardStream(from) === null ? dirname(resolve(from)) : resolve('.')
  const path = relative(folder, resolve(locate(file)))
    .split(sep)
    .join('/')
  return /^(?:\.\.?\/|[A-Za-z]:|\/)/.test(path) ? path : `./${path}`
}
