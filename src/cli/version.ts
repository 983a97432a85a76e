/** The package this file is part of. */
import { readFileSync } from 'node:fs'

interface Package {
  /** A URL that ends in a slash. */
  readonly folder: URL
  readonly version: string
}

/** Looked for upwards, since the sources and what is built from them lie at different depths. */
function find(): Package | null {
  for (let folder = new URL('.', import.meta.url); ; folder = new URL('..', folder)) {
    try {
      const { name, version } = JSON.parse(readFileSync(new URL('package.json', folder), 'utf8')) as {
        name?: string
        version?: string
      }
      if (name === 'sparsetile' && version) return { folder, version }
    } catch {
      // Not in this folder.
    }
    if (folder.pathname === '/' || new URL('..', folder).href === folder.href) return null
  }
}

export const version = (): string => find()?.version ?? 'of an unknown version'

/** Where what comes with the package lies; `null` where it cannot be found. */
export const packageFolder = (): URL | null => find()?.folder ?? null
