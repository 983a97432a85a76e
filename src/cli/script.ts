/**
 * Runs a script with the V8 code cache of earlier processes, because a short command takes longer to compile than to run.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { getHeapCodeStatistics } from 'node:v8'
import { Script } from 'node:vm'
import { cacheFolder, cacheKey, type DiskCache, openCache } from '../cache/disk-cache.ts'

/** Maximum number of cache entries: one for each command and version of Node. */
const MAX_ENTRIES = 16

export interface ScriptRun<T> {
  /** Exports of the script. */
  readonly exports: T
  /** Stores the compiled code, if it has grown much since the last time. */
  storeCode(): Promise<void>
}

/**
 * Runs a CommonJS file without `import` declarations. V8 identifies the source of cached code by its length only and does not
 * detect damage, so the key contains a hash of the source, and the cache checks a hash of each entry. V8 itself rejects code of
 * other flags or versions.
 * @param purpose - Name of the functions that will run; each purpose has its own cache entry
 */
export async function runScript<T>(
  path: string,
  purpose: string,
  cache: DiskCache = openCache(cacheFolder(undefined), 'code', MAX_ENTRIES),
): Promise<ScriptRun<T>> {
  const bytes = readFileSync(path)
  const hash = createHash('sha256').update(bytes).digest('hex')
  const key = cacheKey(['code', process.version, process.arch, purpose, hash])
  const cachedData = (await cache.load(key)) as Buffer | undefined
  // The text is ASCII, so a character is one byte.
  const script = new Script(Module.wrap(bytes.toString('latin1')), {
    filename: path,
    ...(cachedData ? { cachedData } : {}),
  })
  const module = { exports: {} }
  const run = script.runInThisContext() as (...scope: unknown[]) => void
  run(module.exports, createRequire(path), module, path)
  return {
    exports: module.exports as T,
    async storeCode() {
      if (cache.folder === undefined) return
      // The size in memory approximates the serialized size (a third larger), and is cheaper than serialization.
      const compiled = getHeapCodeStatistics().bytecode_and_metadata_size
      if (script.cachedDataRejected || compiled > (cachedData?.length ?? 0))
        await cache.store(key, script.createCachedData())
    },
  }
}
