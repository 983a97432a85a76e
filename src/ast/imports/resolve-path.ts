/** Resolution of import paths, textually and without file system access. */

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
