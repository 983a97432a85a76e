/** Location of the installed package, and resolution of paths into it (`sparsetile/kernels/…`). */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { inPackage, PACKAGE, resolvePath } from '../../ast/imports/resolve-path.ts'

interface Package {
  /** A URL with a trailing slash. */
  readonly folder: URL
  readonly version: string
  /** The oldest supported Node version: `20.19`. */
  readonly node: string
}

/** Searches upwards, because sources and build output are at different depths. */
function findPackage(): Package | null {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    try {
      const { name, version, engines } = JSON.parse(
        readFileSync(new URL('package.json', folder), 'utf8'),
      ) as { name?: string; version?: string; engines?: { node?: string } }
      if (`${name}/` === PACKAGE && version)
        return { folder, version, node: engines?.node?.replace(/^>=/, '') ?? '' }
    } catch {
      // There is no package.json in this folder.
    }
    if (folder.pathname === '/' || new URL('..', folder).href === folder.href) return null
  }
}

let cached: Package | null | undefined
function packageInfo(): Package | null {
  cached ??= findPackage()
  return cached
}

export const version = (): string => packageInfo()?.version ?? 'of an unknown version'

/** The package's folder; `null` if it cannot be found. */
export const packageFolder = (): URL | null => packageInfo()?.folder ?? null

/** The path of a `file:` URL; other paths are returned unchanged. @throws SptError `io/path` */
export function fromUrl(path: string): string {
  const [scheme] = /^[A-Za-z][A-Za-z0-9+.-]*:(?=\/\/)|^file:/.exec(path) ?? []
  if (scheme === undefined) return path
  try {
    return fileURLToPath(path)
  } catch {
    return failWith('io/path', `'${path}' is not the path of a file`, {
      expected: 'a path, or a file: URL',
      hint:
        scheme === 'file:'
          ? 'file:///folder/name has no host'
          : 'download the file first, or pass a `read` function',
    })
  }
}

/**
 * The file system path of a program path: `sparsetile/…` in the package, `file:` URLs converted, others unchanged.
 * @throws SptError `io/no-package`, `io/path`
 */
export function locate(path: string): string {
  if (!inPackage(path)) return fromUrl(path)
  const folder = packageFolder()
  if (!folder)
    return failWith(
      'io/no-package',
      `'${path}' is a file of the package, whose folder cannot be found from here`,
      { hint: 'if a bundler has moved the code, pass a `read` function' },
    )
  return join(fileURLToPath(folder), resolvePath('', path).slice(PACKAGE.length))
}

/** A message if this Node is too old for the package; otherwise `null`. */
export function oldNodeMessage(running = process.versions.node): string | null {
  const required = packageInfo()?.node ?? ''
  const [actual, minimum] = [running, required].map((v) => v.split('.').map(Number)) as [number[], number[]]
  const differing = minimum.findIndex((n, k) => (actual[k] ?? 0) !== n)
  if (differing < 0 || (actual[differing] ?? 0) > minimum[differing]!) return null
  return `this is Node ${running}, and sparsetile needs ${required} or newer`
}

/** The text of a package file; `null` if it cannot be read. */
export function packageText(path: string): string | null {
  const folder = packageFolder()
  if (!folder) return null
  try {
    return readFileSync(new URL(path, folder), 'utf8')
  } catch {
    return null
  }
}

/** The content of a JSON file of the package; `null` if it cannot be read. */
function packageJson(path: string): unknown {
  const text = packageText(path)
  try {
    return text === null ? null : JSON.parse(text)
  } catch {
    return null
  }
}

// The cost models that come with the package.

/** The cost model for a kind of device; `null` if the package has none. */
export const packagedCostModel = (kind: string): unknown => packageJson(`data/models/${kind}.json`)

// Library bindings that come with the package.

/** The library bindings for a kind of device; `null` if the package has none. */
export function packagedLibraries(
  kind: string,
): { readonly libraries: unknown; readonly kernels: string } | null {
  const libraries = packageJson(`data/libraries/${kind}.json`)
  const kernels = packageText(`data/libraries/${kind}.spt`)
  return libraries === null || kernels === null ? null : { libraries, kernels }
}

// The package's formats by name, for messages; its files are read on the first lookup.

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
