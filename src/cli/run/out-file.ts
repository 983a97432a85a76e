/** Output of `--out`: schedules in a file of their own, which imports the names they use. */
import { dirname, relative, resolve, sep } from 'node:path'
import type { Program } from '../../ast/linked-program.ts'
import type { Decl, Kernel } from '../../ast/nodes.ts'
import { isQuotable, quotedPath } from '../../ast/quoted-path.ts'
import { inPackage } from '../../ast/resolve-path.ts'
import { placeOf } from '../../io/package.ts'
import type { Call } from '../command.ts'
import { outputAt } from '../outputs.ts'
import { misused } from '../usage.ts'

/** Checks before the search that a file at `out` can import the program's declarations. @throws UsageError */
export function checkImportable(call: Call, program: Program, out: string): void {
  const { kernels, formats, monoids, memories, instrs } = program
  const declared = [kernels, formats, monoids, memories, instrs].flatMap((of: ReadonlyMap<string, Decl>) => [
    ...of.values(),
  ])
  const schedules = [...program.schedules.values()].flatMap((of) => [...of.values()])
  const files = new Set([...declared, ...schedules].map((d) => d.span.source).filter((f) => !inPackage(f)))
  for (const file of files) {
    if (!isQuotable(importPath(out, file)))
      misused({
        command: call.command,
        message: `no program can import ${JSON.stringify(importPath(out, file))}`,
        expected: 'a path without quotes, backslashes and line breaks',
        hint: 'rename the folder or the file, or leave out --out',
      })
  }
}

/** Names that a file can import from the one that declares them. */
type Named = Exclude<Decl, { readonly kind: 'schedule' | 'choice' | 'space' }>

/**
 * Source of a file at `path` with schedules of a kernel. It imports the kernel and the names they use, so that they keep
 * their meaning.
 */
export function outFile(program: Program, kernel: string, schedules: string, path: string): string {
  const words = new Set(schedules.match(/[A-Za-z_]\w*/g))
  const { formats, monoids, memories, instrs } = program
  const named = [formats, monoids, memories, instrs].flatMap((of: ReadonlyMap<string, Named>) =>
    [...of].filter(([name]) => words.has(name)),
  )
  const [local, own] = [...program.kernels].find(([name, k]) => [name, k.name.name].includes(kernel))!
  const files = new Map<string, string[]>()
  for (const [name, decl] of [[own.name.name, own] as const, ...named]) {
    const file = decl.span.source
    const text = decl.name.name === name ? name : `${decl.name.name} as ${name}`
    files.set(file, [...(files.get(file) ?? []), text])
  }
  const from = (file: string): string => quotedPath(importPath(path, file))
  return [
    ...[...files].map(([file, names]) => `import { ${names.join(', ')} } from ${from(file)}\n`),
    ...schedulesFrom(program, local, own, words).map((file) => `import ${from(file)}\n`),
    `\n${schedules}`,
  ].join('')
}

const ownFiles = ({ sources }: Pick<Program, 'sources'>): readonly string[] =>
  [...sources.keys()].filter((file) => !inPackage(file))

/** That a program can be written as one file, before that is searched for. @throws UsageError */
export function checkWhole(call: Call, program: Program): void {
  const own = ownFiles(program)
  if (own.length > 1)
    misused({
      command: call.command,
      message: `--whole takes a program of one file, and this one has ${own.length}: ${own.join(', ')}`,
      expected: 'a program that imports from the package alone',
      hint: 'leave out --whole: the file that is written then imports the kernel',
    })
}

/** Source of a self-contained file, which imports the package only: the program, and schedules of its kernel. */
export function wholeFile(program: Program, kernel: string, schedules: string, path: string): string {
  if (ownFiles(program).length === 0) return outFile(program, kernel, schedules, path)
  return `${program.sources.get(program.entry)!.text.trimEnd()}\n\n${schedules}`
}

/** Other files that declare the named schedules of the kernel; only self-contained files include them. */
function schedulesFrom(
  program: Program,
  local: string,
  kernel: Kernel,
  words: ReadonlySet<string>,
): readonly string[] {
  const all = [...(program.schedules.get(local) ?? [])].filter(([name]) => words.has(name))
  const files = new Set(all.map(([, decl]) => decl.span.source))
  files.delete(kernel.span.source)
  return [...files]
}

/** Path by which one file imports another. */
function importPath(from: string, file: string): string {
  if (inPackage(file)) return file
  // What goes to an output is a file of the folder that the command is in, as far as anybody knows.
  const folder = outputAt(from) === null ? dirname(resolve(from)) : resolve('.')
  const path = relative(folder, resolve(placeOf(file)))
    .split(sep)
    .join('/')
  return /^(?:\.\.?\/|[A-Za-z]:|\/)/.test(path) ? path : `./${path}`
}
