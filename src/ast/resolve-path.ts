/** Paths between files, as text: no file system is asked. */

/** How a path begins that names a file of this package, wherever it is installed. */
export const PACKAGE = 'sparsetile/'

export const inPackage = (path: string): boolean => path.startsWith(PACKAGE)

const ROOTED = new RegExp(`^(?:[A-Za-z][A-Za-z0-9+.-]*:/{0,3}|/|${PACKAGE})`)

/**
 * The path that `path`, written in the file `from`, names. What begins with `/`, a scheme (`https:`, `std:`) or
 * `sparsetile/` is taken as it is; anything else is relative to the folder of `from`. The folder itself is `.`.
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

/** Whether a path leads into a folder, as it is written and as a URL reads it, where `%2e` is a dot. */
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
