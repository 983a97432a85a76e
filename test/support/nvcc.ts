/**
 * Whether CUDA text compiles: through nvcc, where there is one. Nothing runs. What was compiled once is known by its text,
 * the options and the version of nvcc from then on, in the user's cache (`SPT_CACHE_DIR`); a refusal is asked for again.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { cacheFolder, cacheKey, decodeEntry, openCache } from '../../src/cache/disk-cache.ts'

const version = spawnSync('nvcc', ['--version'], { encoding: 'utf8' })

/** Why nothing can be compiled here, or `null`. */
export const noNvcc: string | null = version.status === 0 ? null : 'there is no nvcc on this machine'

/** Answers that are kept. */
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

class Refused extends Error {}

/** What nvcc makes of texts, in files of their own; `result` names the file that is asked for. */
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
    if (status !== 0) throw new Refused(`${stdout}${stderr}` || `nvcc ended with ${status}`)
    const made = result === undefined ? Buffer.of() : readFileSync(join(folder, result))
    void cache.store(key, made)
    return made
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** What the compiler says where it refuses, or ''. */
function refusal(texts: readonly string[], options: readonly string[]): string {
  try {
    compiled(texts, options)
    return ''
  } catch (e) {
    if (e instanceof Refused) return e.message
    throw e
  }
}

const one = (text: string, to: 'ptx' | 'cubin'): Buffer =>
  compiled([text], [`-${to}`, '-arch=sm_90', '--std=c++17'], `k0.${to}`)

/** The instructions of a text, assembled; equal texts have equal ones. */
export const assembled = (text: string): Buffer => one(text, 'cubin')

export const ptxOf = (text: string): string => one(text, 'ptx').toString()

/** Compiles each text to PTX, as it is; gives the log of the first that fails, or ''. */
export const compileCuda = (texts: readonly string[]): string =>
  refusal(texts, ['-ptx', '-arch=sm_90', '--std=c++17'])

/** Whether a text is taken is asked, and nothing runs: half of the time went into making it fast. */
const ONLY_TAKEN = ['-Xcicc', '-O1', '-Xptxas', '-O1']

/** Compiles texts in one go, each in a name space of its own; returns what the compiler said where it refused. */
export function compileTogether(texts: readonly string[]): string {
  const includes = new Set<string>()
  const parts = texts.map((text, k) => {
    const lines = text.split('\n')
    for (const l of lines) if (l.startsWith('#include')) includes.add(l)
    const rest = lines.filter((l) => !l.startsWith('#include')).join('\n')
    return `namespace n${k} {\n${rest.replaceAll('extern "C" ', '')}}\n`
  })
  return refusal(
    [`${[...includes].join('\n')}\n${parts.join('\n')}`],
    ['-gencode=arch=compute_90a,code=sm_90a', ...ONLY_TAKEN, '-cubin', '-o', '/dev/null'],
  )
}
