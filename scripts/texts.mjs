/**
 * Compares the code that the compiler emits for the package's kernels with a stored table: every kernel, schedule and target.
 *   npm run texts [-- kernels/spmm.spt …]              compares, and prints the differences
 *   npm run texts -- --record [kernels/spmm.spt …]     prints the differences, and stores the new table
 *   npm run texts -- --base DIR [kernels/spmm.spt …]   compares with another built checkout instead of the table
 *   npm run texts -- --base DIR --show KERNEL.SCHEDULE TARGET   prints the differences of a text; without --base, the text
 *   npm run texts -- --nvcc [--to FOLDER]              compiles CUDA texts with nvcc (scripts/texts/nvcc.mjs)
 * `--sample 4`, as in `.ci/run`, also compiles 4 of the CUDA texts that nvcc has not compiled. `--jobs`: processes.
 * Needs `dist/`, which the npm script builds.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { emitAll } from './texts/emit-all.mjs'
import { compileSample, compileTexts, uncompiled } from './texts/nvcc.mjs'
import { differences, readTable, TABLE, writeTable } from './texts/table.mjs'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    record: { type: 'boolean' },
    base: { type: 'string' },
    show: { type: 'boolean' },
    nvcc: { type: 'boolean' },
    to: { type: 'string' },
    sample: { type: 'string' },
    all: { type: 'boolean' },
    jobs: { type: 'string' },
  },
})
/** Most lines that are printed without `--all`. */
const MOST = 300
const jobs = values.jobs ? Number(values.jobs) : undefined
const byKey = (rows) => new Map(rows.map((r) => [r.key, r]))

const kernelFiles = (root = '.') =>
  readdirSync(join(root, 'kernels'))
    .filter((f) => f.endsWith('.spt'))
    .map((f) => `kernels/${f}`)

/** Prints a text, or its differences to that of another checkout. */
async function show([name = '', target = '']) {
  const wanted = [`${name} ${target}`]
  const declares = new RegExp(`^kernel ${name.split(/[.<]/)[0]}\\b`, 'm')
  const textIn = async (root) => {
    const files = kernelFiles(root).filter((f) => declares.test(readFileSync(join(root, f), 'utf8')))
    const rows = await emitAll(files, { root, wanted, jobs })
    const row = rows.find((r) => r.key.endsWith(` ${wanted[0]}`))
    if (!row) throw new Error(`${root} has no text ${wanted[0]}`)
    return row.text ?? `rejected: ${row.rejected}\n`
  }
  const after = await textIn('.')
  if (!values.base) return console.log(after)
  const folder = mkdtempSync(join(tmpdir(), 'spt-texts-'))
  writeFileSync(join(folder, 'before'), await textIn(values.base))
  writeFileSync(join(folder, 'after'), after)
  spawnSync('git', ['diff', '--no-index', 'before', 'after'], { cwd: folder, stdio: 'inherit' })
  rmSync(folder, { recursive: true })
}

function print(lines) {
  const cut = values.all || lines.length <= MOST ? lines.length : MOST
  const sums = lines.lastIndexOf('')
  for (const line of lines.slice(0, Math.min(cut, sums))) console.log(line)
  if (cut < sums) console.log(`… and ${sums - cut} more (--all prints them)`)
  for (const line of lines.slice(sums)) console.log(line)
}

async function compare() {
  const files = positionals.map((f) => relative('.', f))
  // Rows of files that no longer exist are always compared, so that `--record` drops them.
  const isCompared = ({ key }) => {
    const file = `kernels/${key.split(' ')[0]}`
    return files.length === 0 || files.includes(file) || !existsSync(file)
  }
  const chosen = (root) => kernelFiles(root).filter((f) => files.length === 0 || files.includes(f))
  const after = byKey(await emitAll(chosen(), { jobs, ...(values.sample ? { wanted: ['cuda'] } : {}) }))
  const stored = existsSync(TABLE) ? readTable() : { codes: new Map(), rows: new Map(), repeated: new Set() }
  const base = values.base
    ? byKey(await emitAll(chosen(values.base), { root: values.base, jobs }))
    : stored.rows
  const before = byKey([...base.values()].filter(isCompared))
  const lines = differences(before, after)
  if (lines.length > 0) print(lines)
  const rejected = [...after.values()].filter((r) => r.rejected).length
  console.log(
    `${after.size - rejected} texts, and ${rejected} rejected${lines.length > 0 ? '' : ': as stored'}`,
  )
  console.log(uncompiled([...after.values()]))
  if (
    values.sample &&
    !(await compileSample([...after.values()], Number(values.sample), process.env.SPT_SEED))
  )
    process.exitCode = 1
  if (values.record) {
    const others = [...stored.rows.values()].filter((r) => !isCompared(r))
    return writeTable(byKey([...others, ...after.values()]), stored.codes)
  }
  if (!values.base && stored.repeated.size > 0) console.log(`${stored.repeated.size} rows are stored twice`)
  if (lines.length > 0 || (!values.base && stored.repeated.size > 0)) {
    if (!values.base) console.log('If this is intended: npm run texts -- --record, and commit the table.')
    process.exitCode = 1
  }
}

if (values.show) await show(positionals)
else if (values.nvcc) await compileTexts(await emitAll(kernelFiles(), { wanted: ['cuda'], jobs }), values.to)
else await compare()
