/** The version of the package this file is part of. */
import { readFileSync } from 'node:fs'

/** Looked for upwards, since the sources and what is built from them lie at different depths. */
export function version(): string {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as {
        name?: string
        version?: string
      }
      if (name === 'sparsetile' && version) return version
    } catch {
      // Not in this folder.
    }
    if (folder.pathname === '/' || new URL('..', folder).href === folder.href) return 'of an unknown version'
  }
}
