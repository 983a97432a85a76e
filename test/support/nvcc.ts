/**
 * Compiles CUDA texts with nvcc, if it is installed; nothing runs. A text is compiled only if it changed: hashes of texts
 * that compiled are committed in `test/support/compiled-cuda.txt` (`npm run texts -- --nvcc` renews it), and results are kept
 * in the user's cache (`SPT_CACHE_DIR`). Failures are not kept.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder, cacheKey, decodeEntry, openCache } from '../../src/cache/disk-cache.ts'

const version = spawnSync('nvcc', ['--version'], { encoding: 'utf8' })

/** The reason why nothing can be compiled on this machine, or `null`. */
export const noNvcc: string | null = version.status === 0 ? null : 'there is no nvcc on this machine'

/** Hashes of texts that compiled for sm_90a; the first line names the release of nvcc for which they hold. */
const TABLE = 'test/support/compiled-cuda.txt'
const release = (text: string): string | undefined => /release (\S+?),?\s/.exec(text)?.[1]
const [header = '', ...hashes] = readFileSync(TABLE, 'utf8').trim().split('\n')
const compiledBefore = new Set(release(`${header} `) === release(version.stdout ?? '') ? hashes : [])
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Most results that are kept. */
const MOST = 4096
const ENDING = 'nvcc'
const cache = openCache(cacheFolder(undefined), ENDING, MOST)

function remembered(key: string): Buffer | undefined {
  try {
    const payload = decodeEntry(key, readFileSync(join(cache.folder ?? '', `${key}.${ENDING}`)))
    return payload && Buffer.from(payload)
  } catch {
    return undefined
  }
}

class Rejected extends Error {}

/** Compiles texts, each in a file of its own; returns the file called `result`. */
function compiled(texts: readonly string[], options: readonly string[], result?: string): Buffer {
  const key = cacheKey(['nvcc', version.stdout, ...options, '', ...texts])
  const known = remembered(key)
  if (known) return known
  const folder = mkdtempSync(join(tmpdir(), 'spt-nvcc-'))
  try {
    const files = texts.map((text, k) => {
      writeFileSync(join(folder, `k${k}.cu`), text)
      return `k${k}.cu`
    })
    const { status, stdout, stderr } = spawnSync('nvcc', [...options, ...files], {
      cwd: folder,
      encoding: 'utf8',
    })
    if (status !== 0) throw new Rejected(`${stdout}${stderr}` || `nvcc ended with ${status}`)
    const made = result === undefined ? Buffer.of() : readFileSync(join(folder, result))
    void cache.store(key, made)
    return made
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** The compiler's log if it rejects one of the texts, or ''. `merge` makes one file of those that are not in the table. */
function rejection(
  texts: readonly string[],
  options: readonly string[],
  merge = (changed: readonly string[]): readonly string[] => changed,
): string {
  const changed = texts.filter((t) => !compiledBefore.has(hashOf(t)))
  if (changed.length === 0) return ''
  try {
    compiled(merge(changed), options)
    if (process.env.SPT_RECORD) appendFileSync(TABLE, changed.map((t) => `${hashOf(t)}\n`).join(''))
    return ''
  } catch (e) {
    if (e instanceof Rejected) return e.message
    throw e
  }
}

const one = (text: string, to: 'ptx' | 'cubin'): Buffer =>
  compiled([text], [`-${to}`, '-arch=sm_90', '--std=c++17'], `k0.${to}`)

/** The instructions of a text, assembled; equal texts have equal ones. */
export const assembled = (text: string): Buffer => one(text, 'cubin')

export const ptxOf = (text: string): string => one(text, 'ptx').toString()

/** Compiles each text to PTX, unchanged; returns the log of the first that fails, or ''. */
export const compileCuda = (texts: readonly string[]): string =>
  rejection(texts, ['-ptx', '-arch=sm_90', '--std=c++17'])

/** Less optimisation: it took half of the time, and nothing runs. */
const FAST = ['-Xcicc', '-O1', '-Xptxas', '-O1']

/** Texts as one, each in a name space of its own. */
function merged(texts: readonly string[]): string {
  const includes = new Set<string>()
  const parts = texts.map((text, k) => {
    const lines = text.split('\n')
    for (const l of lines) if (l.startsWith('#include')) includes.add(l)
    const rest = lines.filter((l) => !l.startsWith('#include')).join('\n')
    return `namespace n${k} {\n${rest.replaceAll('extern "C" ', '')}}\n`
  })
  return `${[...includes].join('\n')}\n${parts.join('\n')}`
}

/** Compiles texts together, which is faster than one by one; returns the compiler's log if it rejects them, or ''. */
export const compileTogether = (texts: readonly string[]): string =>
  rejection(
    texts,
    ['-gencode=arch=compute_90a,code=sm_90a', ...FAST, '-cubin', '-o', '/dev/null'],
    (changed) => [merged(changed)],
  )
