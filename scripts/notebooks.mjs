// The notebooks in notebooks/:
//   normalise [NAME…]  writes each as it is kept (after an editor has saved it)
//   execute [NAME…]    runs them, and stores their outputs
//   check [NAME…]      refuses stored outputs that are not of the present text, failed cells, mistakes of types, and outputs that
//                      the present package does not give: cells without the tag `measured` run again in Node
//   compare [NAME…]    runs them, and refuses outputs that differ from what is stored, but for cells tagged `measured`
import { readFileSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { complaints } from './notebooks/check.mjs'
import { differences, unlike } from './notebooks/compare.mjs'
import { normalised, notebooksIn, printed, readNotebook, textHash } from './notebooks/document.mjs'
import { executed, missing } from './notebooks/execute.mjs'
import { replayed } from './notebooks/replay.mjs'
import { typeErrors } from './notebooks/types.mjs'

const root = resolve(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
const [command, ...names] = process.argv.slice(2)
const paths = notebooksIn(`${root}/notebooks`, names).map((p) => relative(process.cwd(), p))
const started = performance.now()
const say = (what) =>
  console.log(`notebooks: ${what} (${((performance.now() - started) / 1000).toFixed(1)} s)`)

function refuse(lines) {
  for (const line of lines) console.error(line)
  if (lines.length > 0) process.exitCode = 1
}

/** Cells whose stored outputs the present package does not give. */
async function stale(path) {
  const stored = readNotebook(path)
  try {
    return unlike(stored, normalised(await replayed(path, stored))).map((why) => `${path}: ${why}`)
  } catch (e) {
    return [
      `${path}: a cell without the tag \`measured\` fails, or uses what a measured one declares: ${e.stderr ?? e}`,
    ]
  }
}

const COMMANDS = {
  normalise() {
    for (const path of paths) writeFileSync(path, printed(normalised(readNotebook(path))))
    say(`${paths.length} written as they are kept`)
  },
  execute() {
    const why = missing()
    if (why) return refuse([`notebooks cannot be executed: ${why}`])
    // One at a time: what fails leaves the others as they are.
    for (const path of paths) {
      const { notebooks } = executed([path])
      const notebook = notebooks.get(path)
      writeFileSync(path, printed(normalised(notebook, textHash(notebook, version))))
      say(path)
    }
  },
  async check() {
    const lines = paths.flatMap((p) =>
      complaints(readFileSync(p, 'utf8'), version).map((why) => `${p}: ${why}`),
    )
    refuse([...lines, ...typeErrors(paths)])
    if (process.exitCode) return
    refuse((await Promise.all(paths.map(stale))).flat())
    if (!process.exitCode) say(`${paths.length} are of the present text and of the present package`)
  },
  compare() {
    const why = missing()
    if (why) return say(`not executed: ${why}`)
    const { notebooks, alone } = executed(paths, 2)
    refuse(
      paths.flatMap((p) =>
        differences(readNotebook(p), normalised(notebooks.get(p))).map((d) => `${p}: ${d}`),
      ),
    )
    if (!process.exitCode) say(`${paths.length} executed ${alone ? 'without a network' : ''} and as stored`)
  },
}
const run = COMMANDS[command]
if (run) await run()
else refuse([`usage: node scripts/notebooks.mjs ${Object.keys(COMMANDS).join(' | ')} [NAME…]`])
