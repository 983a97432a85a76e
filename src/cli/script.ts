/**
 * A script, run with what V8 compiled of it in earlier processes (its code cache): compiling what a short command runs takes
 * longer than running it.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { getHeapCodeStatistics } from 'node:v8'
import { Script } from 'node:vm'
import { cacheFolder, cacheKey, type DiskCache, openCache } from '../cache/disk-cache.ts'

/** Entries of the user's cache at most: one for a command and a version of Node. */
const MOST = 16

export interface Running<T> {
  /** Exports of the script. */
  readonly exports: T
  /** Stores the compiled code, if it has grown much since the last time. */
  keep(): Promise<void>
}

/**
 * Runs a CommonJS file that imports nothing (it may require). V8 knows the text that code belongs to by its length alone, and
 * does not look for damage: the key has a hash of the text, and the cache one of each entry. Code of other flags or another V8
 * is refused by V8 itself.
 * @param purpose which of the script's functions will run: what is compiled for one purpose is kept for that
 */
export async function runScript<T>(
  path: string,
  purpose: string,
  cache: DiskCache = openCache(cacheFolder(undefined), 'code', MOST),
): Promise<Running<T>> {
  const bytes = readFileSync(path)
  const hash = createHash('sha256').update(bytes).digest('hex')
  const key = cacheKey(['code', process.version, process.arch, purpose, hash])
  const cachedData = (await cache.load(key)) as Buffer | undefined
  // One byte a character: the text is ASCII.
  const script = new Script(Module.wrap(bytes.toString('latin1')), {
    filename: path,
    ...(cachedData ? { cachedData } : {}),
  })
  const module = { exports: {} }
  const run = script.runInThisContext() as (...scope: unknown[]) => void
  run(module.exports, createRequire(path), module, path)
  return {
    exports: module.exports as T,
    async keep() {
      if (cache.folder === undefined) return
      // What is kept takes a third more than the same code in memory, which costs less to ask for than to serialize.
      const compiled = getHeapCodeStatistics().bytecode_and_metadata_size
      if (script.cachedDataRejected || compiled > (cachedData?.length ?? 0))
        await cache.store(key, script.createCachedData())
    },
  }
}
