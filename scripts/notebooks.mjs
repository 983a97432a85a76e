// The notebooks in notebooks/:
//   normalise [NAME…]  writes each as it is kept (after an editor has saved it)
//   execute [NAME…]    runs them, and stores their outputs
//   check [NAME…]      rejects stored outputs of another text, failed cells, type errors, and outputs other than those of the
//                      present package: all cells run in Deno's kernel, measured ones briefly; without the kernel or nbclient,
//                      the cells that are not measured run in Node
import { readFileSync, writeFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import { complaints } from './notebooks/check.mjs'
import { briefly, differences, unlike } from './notebooks/compare.mjs'
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

/** Cells that fail or give other outputs than those that are stored, in Deno's kernel. */
function staleInDeno() {
  try {
    const { notebooks, alone } = executed(paths, 2, briefly)
    return {
      how: alone ? "executed in Deno's kernel without a network" : "executed in Deno's kernel",
      stale: paths.flatMap((path) =>
        differences(readNotebook(path), normalised(notebooks.get(path))).map((why) => `${path}: ${why}`),
      ),
    }
  } catch (e) {
    return { stale: [e.message] }
  }
}

/** The same of the cells without the tag `measured`, in Node. */
async function staleInNode(why) {
  const of = async (path) => {
    const stored = readNotebook(path)
    try {
      return unlike(stored, normalised(await replayed(path, stored))).map((line) => `${path}: ${line}`)
    } catch (e) {
      return [`${path}: a cell without the tag \`measured\` fails: ${e.stderr ?? e}`]
    }
  }
  const how = `executed in Node but for measured cells, because ${why}`
  return { how, stale: (await Promise.all(paths.map(of))).flat() }
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
    const why = missing()
    const { stale, how } = why ? await staleInNode(why) : staleInDeno()
    refuse(stale)
    if (!process.exitCode) say(`${paths.length} are as stored, ${how}`)
  },
}
const run = COMMANDS[command]
if (run) await run()
else refuse([`usage: node scripts/notebooks.mjs ${Object.keys(COMMANDS).join(' | ')} [NAME…]`])
