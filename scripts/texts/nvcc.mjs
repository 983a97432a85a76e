/**
 * Compiles CUDA texts with nvcc and stores the hashes of those that compile in test/support/compiled-cuda.txt, so that tests
 * compile changed texts only (test/support/nvcc.ts). With a folder, it writes the texts instead, for a machine that has nvcc
 * and more cores.
 */
import { execFile, execFileSync } from 'node:child_process'
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

/** States how many of the CUDA texts nvcc has not compiled. */
export function uncompiled(rows) {
  const known = new Set(readCompiled())
  const texts = cudaRows(rows)
  return `${texts.filter((r) => !known.has(r.hash)).length} of ${texts.length} CUDA texts are not compiled by nvcc yet (--nvcc)`
}

/** Compiles one text; its error, or `null`. */
async function errorOf(folder, { hash, text }) {
  const file = join(folder, `${hash}.cu`)
  writeFileSync(file, text)
  try {
    await promisify(execFile)('nvcc', [...OPTIONS, '-o', join(folder, `${hash}.cubin`), file])
    return null
  } catch (e) {
    return e.stderr || e.message
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
          console.error(`${next.key} does not compile:\n${error}`)
          process.exitCode = 1
        }
        save()
      }
    }),
  )
  rmSync(folder, { recursive: true })
}
