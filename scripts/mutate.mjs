/**
 * Mutation testing: `npm run mutate -- [--count 150] [--seed N] [--rooms lower,schedule] [--kind guard] [--at file:line] [--tests files]`.
 * `--tests` runs those files instead of the ones that a run over all says reach a mutant.
 * Draws mutants of the rooms below, finds the test files that reach each (one run over all, kept in
 * node_modules/.cache/mutate), runs these until one fails, and prints the score of each room and every survivor.
 * Progress is kept as well: the same command goes on where it stopped.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { mutantsOf } from './mutate/mutants.mjs'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '150' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
    rooms: { type: 'string', default: 'lower,schedule,formats,bind,backends' },
    kind: { type: 'string' },
    at: { type: 'string' },
    tests: { type: 'string' },
    list: { type: 'boolean' },
  },
})
/** Seconds of tests for one mutant, as they took without it; then those that are left do not count. */
const BUDGET = 45
/** Of test files that reach a mutant, these are run last: they take long, or their devices do. */
const LAST = /webgpu|browser|cuda|package|readme|docs\//

const files = values.rooms.split(',').flatMap((room) => filesUnder(`src/${room}`))
const all = files.flatMap((f) => mutantsOf(f, readFileSync(f, 'utf8'))).filter(wanted)
const mutants = drawn(all, Number(values.count), Number(values.seed))
const key = createHash('sha256').update(JSON.stringify(mutants)).digest('hex').slice(0, 12)
const cache = `node_modules/.cache/mutate/${key}`
mkdirSync(`${cache}/reached`, { recursive: true })
writeFileSync(`${cache}/mutants.json`, JSON.stringify(mutants))
console.log(`${mutants.length} of ${all.length} mutants, --seed ${values.seed}`)
if (values.list) {
  for (const m of mutants) console.log(`${m.file}:${m.line} ${m.kind}: ${m.was} -> ${m.text}`)
  process.exit(0)
}

const seconds = values.tests ? undefined : await reachedBy()
const results = existsSync(`${cache}/results.json`)
  ? JSON.parse(readFileSync(`${cache}/results.json`, 'utf8'))
  : {}
for (const m of mutants) {
  results[m.id] ??= await tried(m)
  const { verdict, by } = results[m.id]
  console.log(`${verdict} ${m.file}:${m.line} ${m.kind}${by ? ` (${by})` : ''}`)
  writeFileSync(`${cache}/results.json`, JSON.stringify(results))
}
report()

function filesUnder(folder) {
  return (
    readdirSync(folder, { recursive: true })
      // Pictures of formats change no result.
      .filter((f) => f.endsWith('.ts') && !f.endsWith('.d.ts') && !f.startsWith('figures/'))
      .map((f) => `${folder}/${f}`)
      .sort()
  )
}

function wanted(m) {
  if (values.kind && m.kind !== values.kind) return false
  return !values.at || values.at.split(',').some((x) => `${m.file}:${m.line}`.endsWith(x))
}

/** `count` of them, no two of which overlap, the same for the same seed. */
function drawn(from, count, seed) {
  const keyed = from.map((m, k) => [createHash('sha256').update(`${seed} ${k}`).digest('hex'), m])
  const out = []
  for (const [, m] of keyed.sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (out.length === count) break
    if (!out.some((o) => o.file === m.file && o.start < m.end + 1 && m.start < o.end + 1)) out.push(m)
  }
  return out.map((m, id) => ({ ...m, id }))
}

function vitest(args, env, limit) {
  return new Promise((done) => {
    const child = spawn('npx', ['vitest', 'run', '--config', 'scripts/mutate/vitest.config.mjs', ...args], {
      env: { ...process.env, MUTANTS: `${cache}/mutants.json`, SPT_RUNS: '1', SPT_SEED: '2026', ...env },
      stdio: ['ignore', 'ignore', 'pipe'],
      detached: true,
    })
    let late = false
    const timer = setTimeout(() => {
      late = true
      process.kill(-child.pid, 'SIGKILL')
    }, limit * 1000)
    child.stderr.resume()
    child.on('exit', (code) => {
      clearTimeout(timer)
      done(late ? 'late' : code === 0 ? 'passed' : 'failed')
    })
  })
}

/** Which test files reach which mutants, and how long each took: run once. */
async function reachedBy() {
  const report = `${cache}/all.json`
  if (!existsSync(report)) {
    console.log('which test files reach what: one run over all')
    await vitest(
      ['--reporter=json', `--outputFile=${report}`],
      { REACHED: `${cache}/reached`, MUTATE_WORKERS: '2' },
      3600,
    )
  }
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const out = new Map()
  for (const t of testResults) {
    const file = t.name.slice(t.name.lastIndexOf('/test/') + 1)
    if (t.status !== 'passed') console.log(`not used, since it fails without mutants: ${file}`)
    else out.set(file, (t.endTime - t.startTime) / 1000)
  }
  return out
}

/** Test files that reach a mutant: those of its own room first, then the quick ones, within the budget. */
function nearest(m) {
  const room = m.file.split('/')[1]
  const reaching = [...seconds].filter(([f]) => {
    const list = `${cache}/reached/${f.replaceAll('/', '+')}`
    return existsSync(list) && JSON.parse(readFileSync(list, 'utf8')).includes(m.id)
  })
  const rank = ([f, s]) => s + (LAST.test(f) ? 1000 : 0) - (f.startsWith(`test/${room}/`) ? 5 : 0)
  const out = []
  let total = 0
  for (const [f, s] of reaching.sort((a, b) => rank(a) - rank(b))) {
    if (out.length > 0 && total + s > BUDGET) break
    out.push(f)
    total += s
  }
  return { files: out, seconds: total }
}

async function tried(m) {
  const { files: near, seconds: expected } = seconds
    ? nearest(m)
    : { files: values.tests.split(','), seconds: 30 }
  if (near.length === 0) return { verdict: 'unreached' }
  const result = await vitest([...near, '--bail', '1'], { MUTANT: `${m.id}` }, 60 + 4 * expected)
  return {
    verdict: { late: 'timeout', passed: 'survived', failed: 'killed' }[result],
    by: `${near.length} files`,
  }
}

function report() {
  const rooms = new Map()
  for (const m of mutants) {
    const room = m.file.split('/')[1]
    const r = rooms.get(room) ?? { killed: 0, timeout: 0, survived: 0, unreached: 0 }
    r[results[m.id].verdict]++
    rooms.set(room, r)
  }
  const left = mutants.filter((m) => ['survived', 'unreached'].includes(results[m.id].verdict))
  for (const m of left) {
    console.log(`\n${results[m.id].verdict} ${m.file}:${m.line} ${m.kind}`)
    console.log(`- ${m.was.replaceAll('\n', '\n- ')}\n+ ${m.text.replaceAll('\n', '\n+ ')}`)
  }
  console.log('')
  for (const [room, r] of rooms) {
    const n = r.killed + r.timeout + r.survived + r.unreached
    console.log(
      `${room}: ${r.killed + r.timeout} of ${n} killed (${r.timeout} by time), ${r.survived} survived, ${r.unreached} reached by no test`,
    )
  }
  const killed = mutants.length - left.length
  console.log(`all: ${killed} of ${mutants.length} killed, ${Math.round((100 * killed) / mutants.length)} %`)
}
