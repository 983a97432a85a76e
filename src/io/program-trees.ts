/**
 * Trees of programs between processes: those of the package's own kernels are shipped with it, others are kept in the
 * user's cache. Both are found by the text and the build, so that neither can be out of date; where there is none, the
 * text is parsed.
 */
import { fileURLToPath } from 'node:url'
import type { File } from '../ast/nodes.ts'
import type { Trees } from '../ast/resolve-imports.ts'
import { inPackage } from '../ast/resolve-path.ts'
import { type Source, type Span, spanIn } from '../ast/span.ts'
import { BUILD } from '../cache/build.ts'
import { cacheFolder, cacheKey, type DiskCache, openCache } from '../cache/disk-cache.ts'
import { packageFolder } from './package.ts'

/** Trees that the user's cache has at most. */
const MOST = 256
const ENDING = 'tree'

/**
 * What JSON has in place of what it cannot say. No text of a program holds these: its quotes are escaped. The name of the
 * file is no part of its content; infinity is what is too large a number; nothing else of a tree has no value.
 */
const NAMED = '"source":0'
const INFINITE = ['"value":-1', '"value":1e999'] as const
const NAN = '"value":null'

export function encodeTree(file: File): Uint8Array {
  const text = JSON.stringify(file, (key, value: unknown) =>
    key === 'source' ? 0 : value === Number.POSITIVE_INFINITY ? -1 : value,
  )
  return Buffer.from(text.replaceAll(...INFINITE))
}

export function decodeTree(payload: Uint8Array, source: Source): File {
  const text = Buffer.from(payload).toString()
  const withNaN = (key: string, value: unknown) => (key === 'value' && value === null ? Number.NaN : value)
  const file = JSON.parse(
    text.replaceAll(NAMED, () => `"source":${JSON.stringify(source.name)}`),
    text.includes(NAN) ? withNaN : undefined,
  ) as File
  // Nothing else is called as the package's files are, which are the largest.
  if (!inPackage(source.name)) placeIn(file, source)
  return file
}

const isSpan = (x: object): x is Span => 'source' in x && 'start' in x && 'end' in x

/** Spans of a tree that nobody has seen know their text. */
function placeIn(node: object, source: Source): void {
  for (const [key, value] of Object.entries(node) as [keyof typeof node, unknown][]) {
    if (typeof value !== 'object' || value === null) continue
    if (isSpan(value)) Object.assign(node, { [key]: spanIn(source, value.start, value.end) })
    else placeIn(value, source)
  }
}

/** Trees in caches: found in any of them, stored in the last. */
export function treesIn(caches: readonly DiskCache[], build: string): Trees {
  const keyOf = ({ text }: Source): string => cacheKey(['tree', build, text])
  return {
    async load(source) {
      const key = keyOf(source)
      for (const cache of caches) {
        const payload = await cache.load(key)
        if (payload) return decodeTree(payload, source)
      }
      return undefined
    },
    async store(source, file) {
      await caches.at(-1)?.store(keyOf(source), encodeTree(file))
    },
  }
}

/** The folder of the trees that are shipped; `scripts/finish-build.mjs` fills it. */
const shipped = (): string | undefined => {
  const root = packageFolder()
  return root === null ? undefined : fileURLToPath(new URL('dist/trees/', root))
}

/** Those of this process; none where the sources run as they are. */
export const programTrees = (env?: Readonly<Record<string, string | undefined>>): Trees | undefined =>
  BUILD === ''
    ? undefined
    : treesIn([openCache(shipped(), ENDING), openCache(cacheFolder(undefined, env), ENDING, MOST)], BUILD)
