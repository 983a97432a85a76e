// Compiles the CUDA text of every packaged kernel under every schedule with nvcc and stores the hashes of those that
// compile in test/support/compiled-cuda.txt, so that tests compile changed texts only (test/support/nvcc.ts).
// Needs `npm run build`. With `--emit FOLDER` it writes the texts instead, for a machine that has nvcc and more cores.
import { execFile, execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

const root = resolve(import.meta.dirname, '..')
const table = join(root, 'test/support/compiled-cuda.txt')
const { load } = await import(join(root, 'dist/src/node.js'))
const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** Texts by their hash; schedules without CUDA text, and those that need arguments, have none. */
async function emitted() {
  const texts = new Map()
  for (const file of readdirSync(join(root, 'kernels')).filter((f) => f.endsWith('.spt'))) {
    const program = await load(`sparsetile/kernels/${file}`)
    for (const kernel of program.kernels)
      for (const schedule of program.kernel(kernel).schedules)
        try {
          for (const { text } of program.kernel(kernel).schedule(schedule).emit('cuda'))
            texts.set(hashOf(text), { text, name: `${kernel}.${schedule}` })
        } catch (e) {
          if (!e.diagnostics) throw e
        }
  }
  return texts
}

/** Compiles one text; its error, or `null`. */
async function errorOf(folder, hash, text) {
  const file = join(folder, `${hash}.cu`)
  writeFileSync(file, text)
  const options = ['-gencode=arch=compute_90a,code=sm_90a', '-Xcicc', '-O1', '-Xptxas', '-O1', '-cubin']
  try {
    await promisify(execFile)('nvcc', [...options, '-o', join(folder, `${hash}.cubin`), file])
    return null
  } catch (e) {
    return e.stderr || e.message
  }
}

const texts = await emitted()
const at = process.argv.indexOf('--emit')
if (at > 0) {
  const folder = process.argv[at + 1]
  mkdirSync(folder, { recursive: true })
  for (const [hash, { text }] of texts) writeFileSync(join(folder, `${hash}.cu`), text)
  console.log(`${texts.size} texts in ${folder}`)
  process.exit()
}

const [, release] = /release ([^\s,]+)/.exec(execFileSync('nvcc', ['--version'], { encoding: 'utf8' }))
const header = `# nvcc release ${release}`
const [known, ...lines] = readFileSync(table, 'utf8').trim().split('\n')
const stored = new Set(known === header ? lines : [])
const folder = mkdtempSync(join(tmpdir(), 'spt-compile-cuda-'))
const waiting = [...texts].filter(([hash]) => !stored.has(hash))
console.log(`${texts.size} texts, ${waiting.length} of them to compile`)
let failed = 0
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [hash, { text, name }] = next
      const error = await errorOf(folder, hash, text)
      if (error === null) stored.add(hash)
      else console.error(`${name} does not compile:\n${error}`)
      failed += error === null ? 0 : 1
    }
  }),
)
rmSync(folder, { recursive: true })
writeFileSync(table, `${[header, ...[...stored].sort()].join('\n')}\n`)
process.exitCode = failed > 0 ? 1 : 0
