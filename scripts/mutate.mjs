/**
 * Mutation testing: `npm run mutate -- [--count 150] [--seed N] [--jobs 2] [--rooms lower,schedule] [--kind guard]
 * [--at file:line] [--tests files] [--list] [--score]
 * [--again 3,14]`.
 * Draws as many mutants of each of the rooms, finds which tests reach each (one run over all, kept in
 * node_modules/.cache/mutate), runs the nearest of these until one fails, and prints the score of each room and every
 * survivor. Progress is kept as well: the same command goes on where it stopped, `--score` prints what there is.
 * `--tests` runs those files, wholly, for every mutant; `--again` those numbers, whatever came of them before. Survivors that change no result are listed, with the reason, in
 * scripts/mutate/judged.json; they count as survivors, and the score without them is printed beside.
 */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { build } from './mutate/build.mjs'
import { mutantsOf, treesOf } from './mutate/mutants.mjs'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '150' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
    rooms: { type: 'string', default: 'lower,schedule,formats,run/bind,backends' },
    kind: { type: 'string' },
    at: { type: 'string' },
    tests: { type: 'string' },
    list: { type: 'boolean' },
    score: { type: 'boolean' },
    again: { type: 'string' },
    jobs: { type: 'string', default: '1' },
  },
})
/** Seconds of tests, as they took without a mutant: the quickest that reach it, and where these pass others as well. */
const BUDGETS = [8, 60]
/** One seed, few cases, no shrinking. */
const ENV = { NO_COLOR: '1', SPT_RUNS: process.env.SPT_RUNS ?? '0.3', SPT_SEED: '2026', SPT_FAIL_FAST: '1' }
/** What loading one more file costs. */
const LOADING = 0.3
/** A mutant is late after this many times the seconds that its tests took without it, and these seconds more. */
const LATE = { times: 4, seconds: 30 }
/** Tests that are near: without those that start other devices, and without those that replace modules. */
const NEAR =
  /^test\/(lower|schedule|formats|bind|backends|properties|differential|instructions|ir-stage2|kernels)\//
const FAR = /webgpu|cuda-device|devices/

const files = values.rooms.split(',').flatMap((room) => filesUnder(`src/${room}`))
const treeOf = treesOf()
const all = files.flatMap((f) => mutantsOf(f, treeOf(f))).filter(wanted)
const rooms = values.rooms.split(',')
const mutants = rooms
  .flatMap((room, k) => {
    const share = Math.floor((Number(values.count) + k) / rooms.length)
    const own = all.filter((m) => roomOf(m) === room)
    return drawn(own, share, Number(values.seed))
  })
  .map((m, id) => ({ ...m, id }))
const judged = JSON.parse(readFileSync('scripts/mutate/judged.json', 'utf8'))
const key = createHash('sha256').update(JSON.stringify(mutants)).digest('hex').slice(0, 12)
const cache = `node_modules/.cache/mutate/${key}`
mkdirSync(`${cache}/reached`, { recursive: true })
writeFileSync(`${cache}/mutants.json`, JSON.stringify(mutants))
console.log(`${mutants.length} of ${all.length} mutants, --seed ${values.seed}`)
if (values.list) {
  for (const m of mutants) console.log(`${m.file}:${m.line} ${m.kind}: ${m.was} -> ${m.text}`)
  process.exit(0)
}

const results = existsSync(`${cache}/results.json`)
  ? JSON.parse(readFileSync(`${cache}/results.json`, 'utf8'))
  : {}
if (!values.score) {
  build(`${cache}/build`, mutants)
  const tests = values.tests ? undefined : await reachedBy()
  // Rooms in turn.
  const place = (m) => m.id - mutants.findIndex((o) => roomOf(o) === roomOf(m))
  const again = values.again?.split(',').map(Number)
  const queue = mutants
    .filter((m) => (again ? again.includes(m.id) : !results[m.id]))
    .sort((a, b) => place(a) - place(b))
  const work = async () => {
    for (let m = queue.shift(); m; m = queue.shift()) {
      results[m.id] = await tried(m, tests)
      const { verdict, by, took } = results[m.id]
      console.log(`${m.id} ${verdict} ${m.file}:${m.line} ${m.kind}, ${took} s${by ? `: ${by}` : ''}`)
      writeFileSync(`${cache}/results.json`, JSON.stringify(results))
    }
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, work))
}
report()

function roomOf(m) {
  return rooms.find((room) => m.file.startsWith(`src/${room}/`))
}

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
  return out
}

/** Runs tests over the mutants' sources: whether they passed, and where they did not, the first that failed. */
function vitest(args, env, limit) {
  return new Promise((done) => {
    const child = spawn('npx', ['vitest', 'run', '--config', 'scripts/mutate/vitest.config.mjs', ...args], {
      env: {
        ...process.env,
        BUILD: `${cache}/build`,
        MUTANT_COUNT: `${mutants.length}`,
        ...ENV,
        ...env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    let text = ''
    child.stdout.on('data', (d) => {
      text += d
    })
    child.stderr.on('data', (d) => {
      text += d
    })
    let late = false
    const timer = setTimeout(() => {
      late = true
      process.kill(-child.pid, 'SIGKILL')
    }, limit * 1000)
    child.on('exit', (code) => {
      clearTimeout(timer)
      const by = /FAIL\s+(.*)/.exec(text)?.[1]
      if (env.LOG) writeFileSync(env.LOG, text)
      done({ verdict: late ? 'timeout' : code === 0 ? 'survived' : 'killed', by })
    })
  })
}

/** What each test file and each of its tests reaches, and how long it took: run once. */
async function reachedBy() {
  const folder = `${cache}/reached`
  const known = new Set(readdirSync(folder).map((f) => f.replaceAll('+', '/')))
  const files = existsSync(`${cache}/reached.done`) ? [] : near().filter((f) => !known.has(f))
  if (files.length > 0) {
    console.log(`which tests reach what: one run over ${files.length} files`)
    await vitest(files, { REACHED: folder, MUTATE_WORKERS: values.jobs, LOG: `${cache}/all.log` }, 3600)
    writeFileSync(`${cache}/reached.done`, '')
  }
  const out = readdirSync(folder).map((f) => JSON.parse(readFileSync(`${folder}/${f}`, 'utf8')))
  for (const { file, tests } of out)
    for (const t of tests)
      if (!t.passed) console.log(`not used, since it fails without mutants: ${file} ${t.name}`)
  return out
}

function near() {
  return readdirSync('test', { recursive: true })
    .filter((f) => f.endsWith('.test.ts'))
    .map((f) => `test/${f}`)
    .filter((f) => NEAR.test(f) && !FAR.test(f) && !/\bvi\./.test(readFileSync(f, 'utf8')))
    .map((f) => f.replace(/ts$/, 'js'))
}

/**
 * Tests that reach a mutant, those of its own room and the quick ones first, as many as two budgets hold.
 * @returns {{ seconds: number, files: [string, string[]][] }[]} for each budget, files with the names of tests
 */
function nearest(m, reached) {
  const found = []
  for (const { file, loaded, tests } of reached) {
    const always = loaded?.reached.includes(m.id)
    const own = file.startsWith(`test/${roomOf(m).split('/').at(-1)}/`) ? 0.5 : 1
    const quickest = tests
      .filter((t) => t.passed && (always || t.reached.includes(m.id)))
      .sort((a, b) => a.seconds - b.seconds)
    const loading = (loaded?.seconds ?? 0) + LOADING
    let seconds = loading
    for (const t of quickest) {
      seconds += t.seconds
      found.push({ file, name: t.name, seconds: t.seconds, loading, rank: seconds * own })
    }
  }
  const rounds = BUDGETS.map((budget) => ({ budget, seconds: 0, files: new Map() }))
  for (const t of found.sort((a, b) => a.rank - b.rank)) {
    const cost = (r) => r.seconds + t.seconds + (r.files.has(t.file) ? 0 : t.loading)
    const r = rounds.find((x) => cost(x) <= x.budget) ?? (t === found[0] ? rounds.at(-1) : undefined)
    if (!r) continue
    r.seconds = cost(r)
    r.files.set(t.file, [...(r.files.get(t.file) ?? []), t.name])
  }
  return rounds.filter((r) => r.files.size > 0).map((r) => ({ seconds: r.seconds, files: [...r.files] }))
}

async function tried(m, reached) {
  const start = performance.now()
  const rounds = reached
    ? nearest(m, reached)
    : [{ seconds: 150, files: values.tests.split(',').map((f) => [f, undefined]) }]
  let result = { verdict: 'unreached' }
  for (const [k, { seconds, files }] of rounds.entries()) {
    const chosen = `${cache}/chosen-${m.id}-${k}.json`
    writeFileSync(chosen, JSON.stringify(files))
    const limit = LATE.seconds + LATE.times * seconds
    const env = { MUTANT: `${m.id}`, CHOSEN: chosen }
    result = await vitest([...files.map(([f]) => f), '--bail', '1'], env, limit)
    if (result.verdict !== 'survived') break
  }
  const tests = rounds.flatMap((r) => r.files.flatMap(([, names]) => names ?? [])).length
  return {
    ...result,
    ...(result.verdict === 'survived' ? { by: `${tests} tests` } : {}),
    took: Math.round((performance.now() - start) / 1000),
  }
}

/** Why a mutant is known to change no result. */
function equivalent(m) {
  return judged.find(
    (j) => j.file === m.file && j.was === m.was && j.text === m.text && (!j.in || j.in === m.in),
  )?.why
}

function report() {
  const out = new Map(rooms.map((r) => [r, { killed: 0, timeout: 0, survived: 0, unreached: 0, same: 0 }]))
  const tried = mutants.filter((m) => results[m.id])
  for (const m of tried) {
    const r = out.get(roomOf(m))
    const { verdict } = results[m.id]
    r[verdict]++
    if (['survived', 'unreached'].includes(verdict) && equivalent(m)) r.same++
  }
  const left = tried.filter((m) => ['survived', 'unreached'].includes(results[m.id].verdict))
  for (const m of left) {
    console.log(`\n${m.id} ${results[m.id].verdict} ${m.file}:${m.line} ${m.kind}`)
    console.log(`- ${m.was.replaceAll('\n', '\n- ')}\n+ ${m.text.replaceAll('\n', '\n+ ')}`)
    console.log(equivalent(m) ? `the same results: ${equivalent(m)}` : 'NOT JUDGED')
  }
  console.log('')
  const sum = { killed: 0, timeout: 0, survived: 0, unreached: 0, same: 0 }
  for (const [room, r] of [...out, ['all', sum]]) {
    const n = r.killed + r.timeout + r.survived + r.unreached
    const dead = r.killed + r.timeout
    const percent = (of) => `${Math.round((1000 * dead) / Math.max(1, of)) / 10} %`
    console.log(
      `${room.padEnd(9)} ${dead} of ${n} killed (${percent(n)}; ${r.timeout} of them by time), ${r.survived} survived, ` +
        `${r.unreached} reached by no test; ${r.same} of these change no result (${percent(n - r.same)} without them)`,
    )
    if (room !== 'all') for (const k of Object.keys(sum)) sum[k] += r[k]
  }
}
