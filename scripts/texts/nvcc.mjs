/**
 * Compiles CUDA texts with nvcc and stores the hashes of those that compile in test/support/compiled-cuda.txt, so that tests
 * compile changed texts only (test/support/nvcc.ts). With a folder, it writes the texts instead, for a machine that has nvcc
 * and more cores.
 */
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const TABLE = 'test/support/compiled-cuda.txt'
const OPTIONS = ['-gencode=arch=compute_90a,code=sm_90a', '-Xcicc', '-O1', '-Xptxas', '-O1', '-cubin']

const readCompiled = () => readFileSync(TABLE, 'utf8').trim().split('\n')
const cudaRows = (rows) => [
  ...new Map(rows.filter((r) => r.hash && r.key.endsWith(' cuda')).map((r) => [r.hash, r])).values(),
]

/** The CUDA texts that nvcc has not compiled. */
function uncompiledRows(rows) {
  const known = new Set(readCompiled())
  return cudaRows(rows).filter((r) => !known.has(r.hash))
}

/** Compiles `count` of the CUDA texts that are not in the table, others for each seed; false if nvcc rejects one. */
export async function compileSample(rows, count, seed) {
  if (spawnSync('nvcc', ['--version']).status !== 0) return true
  const rank = ({ hash }) => createHash('sha256').update(`${seed} ${hash}`).digest('hex')
  const waiting = uncompiledRows(rows).sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
  const folder = mkdtempSync(join(tmpdir(), 'spt-nvcc-'))
  const errors = await Promise.all(waiting.slice(0, count).map((r) => errorOf(folder, r)))
  rmSync(folder, { recursive: true })
  for (const e of errors) if (e) console.error(e)
  return errors.every((e) => e === null)
}

/** States how many of the CUDA texts nvcc has not compiled. */
export function uncompiled(rows) {
  const count = uncompiledRows(rows).length
  return `nvcc has not compiled ${count} of ${cudaRows(rows).length} CUDA texts${count > 0 ? ': npm run texts -- --nvcc' : ''}`
}

/** Compiles one text; its error, or `null`. */
async function errorOf(folder, { key, hash, text }) {
  const file = join(folder, `${hash}.cu`)
  writeFileSync(file, text)
  try {
    await promisify(execFile)('nvcc', [...OPTIONS, '-o', join(folder, `${hash}.cubin`), file])
    return null
  } catch (e) {
    return `${key} does not compile:\n${e.stderr || e.message}`
  }
}

/** Compiles the texts that are not in the table, or writes them to the folder `to`. */
export async function compileTexts(rows, to) {
  const texts = cudaRows(rows)
  if (to) {
    mkdirSync(to, { recursive: true })
    for (const { hash, text } of texts) writeFileSync(join(to, `${hash}.cu`), text)
    return console.log(`${texts.length} texts in ${to}`)
  }
  const [, release] = /release ([^\s,]+)/.exec(execFileSync('nvcc', ['--version'], { encoding: 'utf8' }))
  const header = `# nvcc release ${release}`
  const [known, ...lines] = readCompiled()
  const stored = new Set(known === header ? lines : [])
  const folder = mkdtempSync(join(tmpdir(), 'spt-nvcc-'))
  const waiting = texts.filter(({ hash }) => !stored.has(hash))
  console.log(`${texts.length} texts, ${waiting.length} of them to compile`)
  const save = () => writeFileSync(TABLE, `${[header, ...[...stored].sort()].join('\n')}\n`)
  await Promise.all(
    Array.from({ length: availableParallelism() }, async () => {
      for (let next = waiting.pop(); next; next = waiting.pop()) {
        const error = await errorOf(folder, next)
        if (error === null) stored.add(next.hash)
        else {
          console.error(error)
          process.exitCode = 1
        }
        save()
      }
    }),
  )
  rmSync(folder, { recursive: true })
}
