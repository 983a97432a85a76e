/**
 * Caches of parse trees across processes: trees of the package's kernels are shipped with it, others are stored in the
 * user's cache. Both are keyed by source and build, so they cannot be out of date; missing ones are parsed.
 */
import { fileURLToPath } from 'node:url'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Source } from '../../ast/diagnostics/span.ts'
import type { Trees } from '../../ast/imports/resolve-imports.ts'
import { BUILD } from '../../cache/build.ts'
import { cacheFolder, cacheKey, type DiskCache, openCache } from '../../cache/disk-cache.ts'
import { packageFolder } from './package.ts'
import { decodeTree, encodeTree } from './tree-encoding.ts'

/** Most trees in the user's cache. */
const MAX_TREES = 256
const ENDING = 'tree'

/** Trees in several caches: loaded from any, stored in the last. */
export function treesIn(caches: readonly DiskCache[], build: string): Trees {
  const keyOf = ({ text }: Source): string => cacheKey(['tree', build, text])
  return {
    async load(source) {
      const key = keyOf(source)
      for (const cache of caches) {
        const payload = await cache.load(key)
        if (payload) return decodeTree(inflateRawSync(payload).toString(), source)
      }
      return undefined
    },
    async store(source, file) {
      await caches.at(-1)?.store(keyOf(source), deflateRawSync(encodeTree(file)))
    },
  }
}

/** The folder of shipped trees, which `scripts/finish-build.mjs` fills. */
const shippedFolder = (): string | undefined => {
  const root = packageFolder()
  return root === null ? undefined : fileURLToPath(new URL('dist/trees/', root))
}

/** The caches of this process; `undefined` when running from sources. */
export const programTrees = (env?: Readonly<Record<string, string | undefined>>): Trees | undefined =>
  BUILD === ''
    ? undefined
    : treesIn(
        [openCache(shippedFolder(), ENDING), openCache(cacheFolder(undefined, env), ENDING, MAX_TREES)],
        BUILD,
      )
