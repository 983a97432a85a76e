/** The package's formats by name, for messages; its files are read on the first lookup. */
import { readdirSync, readFileSync } from 'node:fs'
import { PACKAGE } from '../../ast/imports/resolve-path.ts'
import { packageFolder } from './package.ts'

const FOLDER = 'kernels/'

/** Import paths of the package's files of formats. */
export const packagedFormatFiles = (): readonly string[] =>
  programs().filter((path) => path.startsWith(`${PACKAGE}${FOLDER}formats`))

function programs(): string[] {
  const root = packageFolder()
  if (root === null) return []
  return readdirSync(new URL(FOLDER, root))
    .filter((name) => name.endsWith('.spt'))
    .toSorted()
    .map((name) => `${PACKAGE}${FOLDER}${name}`)
}

let formatFiles: ReadonlyMap<string, readonly string[]> | undefined

/** Files that declare a format; files of formats come first. */
export function packagedFormatsNamed(name: string): readonly string[] {
  formatFiles ??= findDeclarations()
  return formatFiles.get(name) ?? []
}

function findDeclarations(): Map<string, string[]> {
  const out = new Map<string, string[]>()
  const formatsFirst = packagedFormatFiles()
  for (const path of [...formatsFirst, ...programs().filter((p) => !formatsFirst.includes(p))]) {
    const text = readFileSync(new URL(path.slice(PACKAGE.length), packageFolder()!), 'utf8')
    for (const [, name] of text.matchAll(/^format (\w+)/gm)) {
      const files = out.get(name!) ?? []
      if (!files.includes(path)) files.push(path)
      out.set(name!, files)
    }
  }
  return out
}
