/**
 * A process that emits the code of `.spt` files: every kernel, schedule and target, with default arguments and default
 * thread bindings, as `spt emit` does. `argv[2]` is the folder of a built checkout, or of a build with mutants (scripts/mutate).
 * Each message names a file.
 */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isDeepStrictEqual } from 'node:util'

const root = resolve(process.argv[2])
const built = existsSync(join(root, 'dist')) ? 'dist/src' : 'src'
const get = (module) => import(pathToFileURL(join(root, built, module)).href)
const { load } = await get('node.js')
const { TARGETS } = await get('backends/targets/index.js')

/** Adjacent targets share most of their lowering. */
const ORDER = ['js', 'c', 'wgsl', 'cuda']

const hashOf = (text) => createHash('sha256').update(text).digest('hex').slice(0, 16)

/** True for structurally equal programs. Passes often rebuild a tree without a change; equal subtrees are usually shared. */
function isSame(a, b) {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) return a.length === b.length && a.every((x, k) => isSame(x, b[k]))
  if (Object.getPrototypeOf(a) !== Object.prototype) return isDeepStrictEqual(a, b)
  const keys = Object.keys(a)
  return keys.length === Object.keys(b).length && keys.every((k) => isSame(a[k], b[k]))
}

/** An observer of the lowering, and the names of the passes that changed the program so far. */
function recorder(loops) {
  const passes = []
  let before = loops
  const observe = (pass, now) => {
    const isChanged =
      now.stage === 2
        ? !isSame(now.body, before.body)
        : before.stage === 3 && now.steps.some((s, k) => !isSame(s.body, before.steps[k].body))
    if (isChanged) passes.push(pass)
    before = now
  }
  return { observe, passes }
}

/** The latest plan: C and JavaScript have the same ones. */
let latest

function lowered(compilation, lowering) {
  const key = JSON.stringify(lowering)
  if (latest?.compilation === compilation && latest.key === key) return latest
  const { observe, passes } = recorder(compilation.loops)
  const plan = compilation.observe(observe, lowering)
  latest = { compilation, key, plan, passes }
  return latest
}

function emitted(kernel, target) {
  const { scheduleDevice, lowering, print } = TARGETS[target]
  const { compilation } = scheduleDevice === 'cpu' ? kernel.sequential() : kernel.parallel()
  const { plan, passes } = lowered(compilation, lowering)
  const text = print(plan, {})
    .map((m) => m.text)
    .join('\n')
  return { hash: hashOf(text), lines: text.split('\n').length, passes, text }
}

/** The result, or the code of the diagnostic that rejects the schedule. */
function orRejection(compute) {
  try {
    return compute()
  } catch (e) {
    const code = e.diagnostics?.[0]?.code
    if (!code) throw e
    return { rejected: code }
  }
}

/** Rows `{ key, hash, lines, passes, text }` or `{ key, rejected }`; `text` only where the key ends with one of `wanted`. */
async function rowsOf(file, wanted) {
  const program = await load(join(root, file))
  const rows = []
  for (const name of program.kernels) {
    const kernel = program.kernel(name)
    const names = kernel.schedules.filter((s) => !kernel.dispatches.includes(s))
    for (const schedule of [undefined, ...names]) {
      const scheduled = orRejection(() => (schedule ? kernel.schedule(schedule) : kernel))
      for (const target of ORDER) {
        const { text, ...row } = scheduled.rejected
          ? scheduled
          : orRejection(() => emitted(scheduled, target))
        const key = `${file.replace(/^kernels\//, '')} ${schedule ? `${name}.${schedule}` : name} ${target}`
        const isWanted = wanted?.some((w) => key.endsWith(` ${w}`))
        rows.push({ key, ...row, ...(isWanted ? { text } : {}) })
      }
    }
  }
  return rows
}

process.on('message', async ({ file, wanted }) => {
  try {
    process.send({ file, rows: await rowsOf(file, wanted) })
  } catch (e) {
    process.send({ file, error: e.stack })
  }
})
process.send({})
