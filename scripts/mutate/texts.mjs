/** Emitted code as an oracle: a mutant that changes the code of a few kernels is detected by `npm run texts`. */
import { existsSync } from 'node:fs'
import { basename } from 'node:path'
import { emitAll } from '../texts/emit-all.mjs'
import { FIELDS, readTable } from '../texts/table.mjs'

/** Modules whose mutants may change emitted code. */
const COMPILER = new Set(['analysis', 'backends', 'elaborate', 'ir', 'levels', 'lower', 'schedule'])
/** Kernels for a mutant of any module: sparse and dense products, tensor cores, formats that are built at run time. */
const SAMPLE = ['gcn.spt', 'sddmm-tensor-cores.spt', 'frontier.spt', 'segment-reduce.spt']
/** Files that are compiled for a mutant of a pass. */
const MOST_FILES = 2

const table = existsSync('test/support/emitted-texts.txt') ? readTable().rows : new Map()

/** Returns the `.spt` files whose code is compared for a mutant; none if it is not in the compiler. */
function filesFor(mutant) {
  if (!COMPILER.has(mutant.file.split('/')[1])) return []
  const pass = mutant.pass ?? basename(mutant.file, '.ts')
  const costs = new Map()
  const using = new Set()
  for (const { key, passes, lines = 0 } of table.values()) {
    const [file] = key.split(' ')
    costs.set(file, (costs.get(file) ?? 0) + lines)
    if (passes?.includes(pass)) using.add(file)
  }
  const cheapest = [...using].sort((a, b) => costs.get(a) - costs.get(b)).slice(0, MOST_FILES)
  return (using.size > 0 ? cheapest : SAMPLE).map((f) => `kernels/${f}`)
}

/** All `.spt` files of the table, if a mutant is in the compiler: CI compares the code of each. */
export const allFilesFor = (mutant) =>
  filesFor(mutant).length === 0
    ? []
    : [...new Set([...table.values()].map(({ key }) => `kernels/${key.split(' ')[0]}`))]

/** Returns the first text that a mutant changes; `null` if there is none within the time limit. */
export async function changedText(mutant, root, seconds, files = filesFor(mutant)) {
  if (files.length === 0) return null
  const env = { ...process.env, MUTANT: `${mutant.id}` }
  try {
    const rows = await emitAll(files, { root, env, jobs: 1, seconds })
    const changed = rows.find((r) => FIELDS.some((f) => `${table.get(r.key)?.[f]}` !== `${r[f]}`))
    return changed ? `emitted text ${changed.key}` : null
  } catch (e) {
    if (e.message.endsWith('null')) return null
    return `emitting texts: ${e.message.split('\n')[0]}`
  }
}
