/**
 * Cache on disk, keyed by content. A file that is truncated, altered, of another version or under another key is ignored and
 * rewritten. A cache that cannot be written is not an error.
 */
import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { readdir, readFile, stat, unlink } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { replaceFile } from './replace-file.ts'

const MAGIC = 'sparsetile-cache 2\n'
const HASH_CHARS = 64
const HEADER = MAGIC.length + HASH_CHARS + 1

export interface DiskCache {
  /** The folder; undefined if caching is off. */
  readonly folder: string | undefined
  load(key: string): Promise<Uint8Array | undefined>
  /** Resolves to false if the file could not be written. */
  store(key: string, payload: Uint8Array): Promise<boolean>
}

const OFF = new Set(['', '0', 'off', 'none', 'false'])

/** The cache folder: the option, then `SPT_CACHE_DIR` (`off` disables), then the system's cache folder. Undefined if caching is off. */
export function cacheFolder(
  option: string | false | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
  home: string = homedir(),
): string | undefined {
  if (option === false) return undefined
  if (option !== undefined) return resolve(option)
  const configured = env.SPT_CACHE_DIR
  if (configured !== undefined)
    return OFF.has(configured.trim().toLowerCase()) ? undefined : resolve(configured)
  // The XDG specification requires that relative paths are ignored.
  const xdg = env.XDG_CACHE_HOME
  return join(xdg && isAbsolute(xdg) ? xdg : join(home, '.cache'), 'sparsetile')
}

/** Key of a result: a hash of everything that it depends on. */
export function cacheKey(parts: readonly string[]): string {
  const hash = createHash('sha256')
  // The length of each part is hashed, too, so that different lists do not concatenate to the same text.
  for (const part of parts) hash.update(`${part.length}:`).update(part, 'utf16le')
  return hash.digest('hex')
}

const digest = (key: string, payload: Uint8Array): string =>
  createHash('sha256').update(`${key}\n`).update(payload).digest('hex')

export function encodeEntry(key: string, payload: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${MAGIC}${digest(key, payload)}\n`, 'latin1'), payload])
}

/** The payload; undefined if the file is not the output of `encodeEntry` for the key. */
export function decodeEntry(key: string, file: Uint8Array): Uint8Array | undefined {
  if (file.length < HEADER) return undefined
  const header = Buffer.from(file.subarray(0, HEADER)).toString('latin1')
  const payload = file.subarray(HEADER)
  return header === `${MAGIC}${digest(key, payload)}\n` ? payload : undefined
}

/** Opens a cache of files `KEY.extension`. Beyond `maxEntries` (default: no limit), the oldest entries are removed. */
export function openCache(
  folder: string | undefined,
  extension: string,
  maxEntries = Number.POSITIVE_INFINITY,
): DiskCache {
  if (folder === undefined) {
    return { folder, load: async () => undefined, store: async () => false }
  }
  const pathOf = (key: string): string => join(folder, `${key}.${extension}`)
  return {
    folder,
    async load(key) {
      try {
        return decodeEntry(key, await readFile(pathOf(key)))
      } catch {
        return undefined
      }
    },
    async store(key, payload) {
      try {
        await makeFolder(folder)
        // No sync is necessary: entries contain a digest, so a torn entry is ignored after a crash.
        await replaceFile(pathOf(key), [encodeEntry(key, payload)], { sync: false })
        await prune(folder, extension, maxEntries)
        return true
      } catch {
        return false
      }
    },
  }
}

/** Removes the oldest entries. Another process may remove entries at the same time. */
async function prune(folder: string, extension: string, maxEntries: number): Promise<void> {
  if (maxEntries === Number.POSITIVE_INFINITY) return
  const files = (await readdir(folder)).filter((f) => f.endsWith(`.${extension}`)).map((f) => join(folder, f))
  if (files.length <= maxEntries) return
  const ages = await Promise.all(
    files.map(async (path) => ({ path, modified: (await stat(path).catch(() => null))?.mtimeMs ?? 0 })),
  )
  const oldest = ages.sort((a, b) => a.modified - b.modified).slice(0, files.length - maxEntries)
  await Promise.all(oldest.map(({ path }) => unlink(path).catch(() => undefined)))
}

/** Same as `makeFolderSync`, which takes no longer. */
export const makeFolder = async (path: string): Promise<void> => makeFolderSync(path)

/**
 * Creates a folder and its parents. Node's recursive `mkdir` never returns on file systems without folder creation (`/proc`).
 * @param mode - Mode of created folders
 */
export function makeFolderSync(path: string, mode = 0o777): void {
  try {
    mkdirSync(path, { mode })
  } catch (e) {
    const { code } = e as NodeJS.ErrnoException
    if (code === 'EEXIST') return
    if (code !== 'ENOENT' || dirname(path) === path) throw e
    makeFolderSync(dirname(path), mode)
    try {
      mkdirSync(path, { mode })
    } catch (retryError) {
      if ((retryError as NodeJS.ErrnoException).code !== 'EEXIST') throw retryError
    }
  }
}
