/** Resolution of import paths, textually and without file system access. */

/** Prefix of paths to files of this package, independent of where it is installed. */
export const PACKAGE = 'sparsetile/'

export const inPackage = (path: string): boolean => path.startsWith(PACKAGE)

const ROOTED = new RegExp(`^(?:[A-Za-z][A-Za-z0-9+.-]*:/{0,3}|/|${PACKAGE})`)

/**
 * The path that `path` denotes in the file `from`. Paths that begin with `/`, a scheme (`https:`, `std:`) or
 * `sparsetile/` are absolute; others are relative to the folder of `from`. The folder itself is `.`.
 */
export function resolvePath(from: string, path: string): string {
  const base = ROOTED.test(path) ? '' : from.replaceAll('\\', '/').replace(/[^/]*$/, '')
  const whole = (base + path).replaceAll('\\', '/')
  const root = ROOTED.exec(whole)?.[0] ?? ''
  const out: string[] = []
  for (const part of whole.slice(root.length).split('/')) {
    if (part === '' || part === '.') continue
    if (part === '..' && out.length > 0 && out.at(-1) !== '..') out.pop()
    else if (part !== '..' || root === '') out.push(part)
  }
  return root + out.join('/') || '.'
}

/** True if a path is inside a folder, both as written and as decoded by a URL parser, where `%2e` is a dot. */
export function isWithin(folder: string, path: string): boolean {
  const root = resolvePath('', folder)
  return [path, unescaped(path)].every((p) => {
    const whole = resolvePath('', p)
    if (root === '.') return !ROOTED.test(whole) && !whole.startsWith('..')
    return whole.startsWith(root.endsWith('/') ? root : `${root}/`)
  })
}

function unescaped(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
