/**
 * Compiled kernels on disk, by content. A file that is truncated, altered or of another version is ignored and
 * rewritten; a cache that cannot be written is no error.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'

const MAGIC = 'sparsetile-kernel 1\n'
const HASH_CHARS = 64
const HEADER = MAGIC.length + HASH_CHARS + 1

export interface KernelCache {
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

/** The key of a compilation: everything its result depends on. */
export function cacheKey(parts: readonly string[]): string {
  const hash = createHash('sha256')
  // Each part's length goes first, so that no two lists of parts run together alike.
  for (const part of parts) hash.update(`${Buffer.byteLength(part)}:`).update(part)
  return hash.digest('hex')
}

const digest = (payload: Uint8Array): string => createHash('sha256').update(payload).digest('hex')

export function encodeEntry(payload: Uint8Array): Uint8Array {
  return Buffer.concat([Buffer.from(`${MAGIC}${digest(payload)}\n`, 'latin1'), payload])
}

/** The payload, or undefined where the file is not exactly what `encodeEntry` wrote. */
export function decodeEntry(file: Uint8Array): Uint8Array | undefined {
  if (file.length <= HEADER) return undefined
  const header = Buffer.from(file.subarray(0, HEADER)).toString('latin1')
  const payload = file.subarray(HEADER)
  return header === `${MAGIC}${digest(payload)}\n` ? payload : undefined
}

export function openCache(folder: string | undefined): KernelCache {
  if (folder === undefined) {
    return { folder, load: async () => undefined, store: async () => false }
  }
  const pathOf = (key: string): string => join(folder, `${key}.kernel`)
  return {
    folder,
    async load(key) {
      try {
        return decodeEntry(await readFile(pathOf(key)))
      } catch {
        return undefined
      }
    },
    async store(key, payload) {
      const temporary = join(folder, `.${key}.${process.pid}.${randomBytes(6).toString('hex')}`)
      try {
        await mkdir(folder, { recursive: true })
        await writeFile(temporary, encodeEntry(payload), { flag: 'wx' })
        // Renaming is atomic: another process sees the old file, none, or the whole new one.
        await rename(temporary, pathOf(key))
        return true
      } catch {
        await unlink(temporary).catch(() => undefined)
        return false
      }
    },
  }
}
