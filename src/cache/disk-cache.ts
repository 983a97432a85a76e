/**
 * What is kept on disk between processes, by content. A file that is truncated, altered, of another version or under
 * another key is ignored and rewritten; a cache that cannot be written is no error.
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
  /** The folder; undefined where caching is off. */
  readonly folder: string | undefined
  load(key: string): Promise<Uint8Array | undefined>
  /** Resolves to false where the file could not be written. */
  store(key: string, payload: Uint8Array): Promise<boolean>
}

const OFF = new Set(['', '0', 'off', 'none', 'false'])

/**
 * The cache folder: the option, then `SPT_CACHE_DIR` (`off` disables), then the system's cache folder.
 * Undefined where caching is off.
 */
export function cacheFolder(
  option: string | false | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
  home: string = homedir(),
): string | undefined {
  if (option === false) return undefined
  if (option !== undefined) return resolve(option)
  const given = env.SPT_CACHE_DIR
  if (given !== undefined) return OFF.has(given.trim().toLowerCase()) ? undefined : resolve(given)
  // The XDG specification: a relative path there is to be ignored.
  const xdg = env.XDG_CACHE_HOME
  return join(xdg && isAbsolute(xdg) ? xdg : join(home, '.cache'), 'sparsetile')
}

/** The key of a result: everything that it depends on. */
export function cacheKey(parts: readonly string[]): string {
  const hash = createHash('sha256')
  // Each part's length goes first, so that no two lists of parts run together alike.
  for (const part of parts) hash.update(`${part.length}:`).update(part, 'utf16le')
  return hash.digest('hex')
}

const digest = (key: string, payload: Uint8Array): string =>
  createHash('sha256').update(`${key}\n`).update(payload).digest('hex')

export function encodeEntry(key: string, payload: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${MAGIC}${digest(key, payload)}\n`, 'latin1'), payload])
}

/** The payload, or undefined where the file is not exactly what `encodeEntry` wrote for the key. */
export function decodeEntry(key: string, file: Uint8Array): Uint8Array | undefined {
  if (file.length < HEADER) return undefined
  const header = Buffer.from(file.subarray(0, HEADER)).toString('latin1')
  const payload = file.subarray(HEADER)
  return header === `${MAGIC}${digest(key, payload)}\n` ? payload : undefined
}

/** Entries are files `KEY.ending` of the folder; of those that are oldest, no more than `most` stay (default: all). */
export function openCache(
  folder: string | undefined,
  ending: string,
  most = Number.POSITIVE_INFINITY,
): DiskCache {
  if (folder === undefined) {
    return { folder, load: async () => undefined, store: async () => false }
  }
  const pathOf = (key: string): string => join(folder, `${key}.${ending}`)
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
        // Entries carry a digest: after a crash a torn one is ignored.
        await replaceFile(pathOf(key), [encodeEntry(key, payload)], { sync: false })
        await prune(folder, ending, most)
        return true
      } catch {
        return false
      }
    },
  }
}

/** Removes the oldest where there are too many; what another process removes meanwhile is gone as well. */
async function prune(folder: string, ending: string, most: number): Promise<void> {
  if (most === Number.POSITIVE_INFINITY) return
  const files = (await readdir(folder)).filter((f) => f.endsWith(`.${ending}`)).map((f) => join(folder, f))
  if (files.length <= most) return
  const ages = await Promise.all(
    files.map(async (path) => ({ path, at: (await stat(path).catch(() => null))?.mtimeMs ?? 0 })),
  )
  const old = ages.sort((a, b) => a.at - b.at).slice(0, files.length - most)
  await Promise.all(old.map(({ path }) => unlink(path).catch(() => undefined)))
}

/** As `makeFolderSync`, which takes no longer. */
export const makeFolder = async (path: string): Promise<void> => makeFolderSync(path)

/**
 * A folder and those around it. Node's own recursion never ends where a file system (`/proc`) has no room for folders.
 * @param mode of those that are made
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
    } catch (again) {
      if ((again as NodeJS.ErrnoException).code !== 'EEXIST') throw again
    }
  }
}
