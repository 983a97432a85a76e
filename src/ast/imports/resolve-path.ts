/** Resolution of import paths, textually and without file system access, and readers of paths. */
import { failWith } from '../diagnostics/diagnostic.ts'
import type { Span } from '../diagnostics/span.ts'

/** Prefix of paths to files of this package, independent of where it is installed. */
export const PACKAGE = 'sparsetile/'

export const inPackage = (path: string): boolean => path.startsWith(PACKAGE)

const ABSOLUTE = new RegExp(`^(?:[A-Za-z][A-Za-z0-9+.-]*:/{0,3}|/|${PACKAGE})`)

/**
 * The path that `path` denotes in the file `from`. Paths that begin with `/`, a scheme (`https:`, `std:`) or
 * `sparsetile/` are absolute; others are relative to the folder of `from`. The folder itself is `.`.
 */
export function resolvePath(from: string, path: string): string {
  const base = ABSOLUTE.test(path) ? '' : from.replaceAll('\\', '/').replace(/[^/]*$/, '')
  const joined = (base + path).replaceAll('\\', '/')
  const root = ABSOLUTE.exec(joined)?.[0] ?? ''
  const out: string[] = []
  for (const part of joined.slice(root.length).split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..' && out.length > 0 && out.at(-1) !== '..') out.pop()
    else if (part !== '..' || root === '') out.push(part)
  }
  return root + out.join('/') || '.'
}

/** True if a path is inside a folder, both as written and as decoded by a URL parser, where `%2e` is a dot. */
export function isWithin(folder: string, path: string): boolean {
  const root = resolvePath('', folder)
  return [path, decodeOrKeep(path)].every((p) => {
    const joined = resolvePath('', p)
    if (root === '.') return !ABSOLUTE.test(joined) && !joined.startsWith('..')
    return joined.startsWith(root.endsWith('/') ? root : `${root}/`)
  })
}

function decodeOrKeep(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

/** Paths in the syntax of imports: quoted, without escapes. */
export const quotedPath = (path: string): string => `"${path}"`

/** True if an import can name the file at a path: a backslash would be read as a slash. */
export const isQuotable = (path: string): boolean => !/["\n\r\\]/.test(path)

// Readers of the files of a program, and restrictions of them.

/** Returns the text at a path from `resolvePath`; rejects if there is none. */
export type ReadText = (path: string) => Promise<string>

/**
 * Restricts a reader to files in a folder and of the package, by path only: the reader may follow links and
 * redirections.
 */
export function rooted(root: string, read: ReadText): ReadText {
  return (path) => {
    if (!inPackage(path) && !isWithin(root, path)) rejectOutside(path, root)
    return read(path)
  }
}

export function rejectOutside(path: string, root: string): never {
  return failWith(
    'import/outside-root',
    `\`${path}\` is outside of ${root}, where imports are allowed from`,
    {
      expected: `a file in ${root}, or of the package (${PACKAGE}…)`,
      hint: 'if you trust the program, allow imports from a folder that holds both files',
    },
  )
}

/** Rejects an import of a text that was loaded without a reader. */
export function refuseImport(path: string, span?: Span): never {
  return failWith('import/unreadable', `\`${path}\` cannot be imported into a text without a path`, {
    ...(span && { span }),
    hint: 'load the program from a file, or with a `read` function: load(text, { read })',
  })
}

// Lookup of the package's formats. The host reads the package's files: the compiler has no built-in format
// names.

/** The import paths of package files that declare a format. */
type FormatLookup = (name: string) => readonly string[]

let lookup: FormatLookup = () => []

/** Registers the lookup; called by hosts that have the package's files. */
export function readPackaged(reader: FormatLookup): void {
  lookup = reader
}

/** A hint for an unknown format: the package file to import. */
export function packagedFormatHint(name: string): string {
  const [file] = lookup(name)
  return file === undefined
    ? 'formats of the package are in files of its own: import "sparsetile/kernels/formats.spt" (those of several parts: formats-composed.spt, of tensors of any order: formats-tensors.spt)'
    : `${name} is a format of the package: import ${quotedPath(file)}`
}
