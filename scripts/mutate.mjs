/**
 * Mutation testing: `npm run mutate -- [--count 300] [--seed N] [--modules api,io] [--jobs 2] [--kind guard]
 * [--at file:line] [--tests files] [--list] [--score] [--again 3,14]`.
 *
 * Mutants are drawn from every module of `src/`, in proportion to its lines. A mutant of the compiler is first tried on the
 * emitted code of a few kernels (scripts/mutate/texts.mjs). Then the tests nearest in the import graph run, of those that
 * reach the mutant (one run without mutants records which), until one fails. At last the code of all kernels is compared.
 * The same command continues where it stopped: results are kept in node_modules/.cache/mutate. `--score` prints the results
 * so far, `--again` repeats mutants by number, `--tests` runs other files. Survivors that change no result are listed in
 * scripts/mutate/judged.json with the reason.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { build } from './mutate/build.mjs'
import { testsByDistance } from './mutate/graph.mjs'
import { mutantsOf, treesOf } from './mutate/mutants.mjs'
import { report } from './mutate/report.mjs'
import { allFilesFor, changedText } from './mutate/texts.mjs'
import { vitest } from './mutate/vitest.mjs'

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '300' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
    modules: { type: 'string' },
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
const BUDGETS = [8, 30]
/** Time limit for emitting code; a mutant that takes longer is left to the tests. */
const TEXT_SECONDS = 120
/** The same for the code of all kernels. */
const ALL_TEXTS_SECONDS = 400
/** Test files for each mutant, the nearest first; as many more for mutants that none of these reaches. */
const FILES = 6
/** Seconds for loading one more file. */
const LOADING = 0.3
/** Time limit of a mutant: this multiple of the time without it, and these seconds more. */
const LATE = { times: 4, seconds: 40 }

const names = values.modules?.split(',') ?? readdirSync('src').map((m) => m.replace(/\.ts$/, ''))
const modules = [...new Set(names)].map((name) => ({ name, files: filesOf(name) }))
const moduleOf = (m) => m.file.split('/')[1].replace(/\.ts$/, '')
const mutants = draw()
const cache = `node_modules/.cache/mutate/${hashOf(JSON.stringify(mutants)).slice(0, 12)}`
mkdirSync(`${cache}/reached`, { recursive: true })
writeFileSync(`${cache}/mutants.json`, JSON.stringify(mutants))
console.log(`${mutants.length} mutants, --seed ${values.seed}`)
if (values.list) {
  for (const m of mutants) console.log(`${m.file}:${m.line} ${m.kind}: ${m.was} -> ${m.text}`)
  process.exit(0)
}

const results = existsSync(`${cache}/results.json`)
  ? JSON.parse(readFileSync(`${cache}/results.json`, 'utf8'))
  : {}
if (!values.score) {
  build(`${cache}/build`, mutants)
  const again = values.again?.split(',').map(Number)
  const queue = mutants.filter((m) => (again ? again.includes(m.id) : !results[m.id]))
  await inParallel(queue, async (m) => {
    const by = values.tests ? null : await changedText(m, `${cache}/build`, TEXT_SECONDS)
    if (by) keep(m, { verdict: 'killed', by })
  })
  const rest = mutants.filter((m) => (again ? again.includes(m.id) : !results[m.id]))
  const reached = values.tests ? undefined : await reachedBy(rest)
  await inParallel(rest, async (m) => {
    const result = await tested(m, reached)
    const isAlive = result.verdict === 'survived' || result.verdict === 'unreached'
    const by =
      isAlive && !values.tests
        ? await changedText(m, `${cache}/build`, ALL_TEXTS_SECONDS, allFilesFor(m))
        : null
    keep(m, by ? { verdict: 'killed', by } : result)
  })
}
report(
  modules.map((m) => m.name),
  mutants.map((m) => ({ ...m, module: moduleOf(m), ...results[m.id] })),
)

function hashOf(text) {
  return createHash('sha256').update(text).digest('hex')
}

/** Files of a folder below `src`, and the entry of the same name. */
function filesOf(module) {
  const folder = `src/${module}`
  const within = existsSync(folder) ? readdirSync(folder, { recursive: true }) : []
  const files = within.filter((f) => f.endsWith('.ts') && !f.endsWith('.d.ts')).map((f) => `${folder}/${f}`)
  return [...files, ...(existsSync(`${folder}.ts`) ? [`${folder}.ts`] : [])].sort()
}

/** Mutants of every module, in proportion to its lines: the same ones for the same seed and modules. */
function draw() {
  const treeOf = treesOf()
  const lines = modules.map(({ files }) =>
    files.reduce((n, f) => n + readFileSync(f, 'utf8').split('\n').length, 0),
  )
  const total = lines.reduce((a, b) => a + b, 0)
  const isWanted = (m) =>
    (!values.kind || m.kind === values.kind) &&
    (!values.at || values.at.split(',').some((x) => `${m.file}:${m.line}`.endsWith(x)))
  return modules
    .flatMap(({ files }, k) => {
      const share = Math.max(1, Math.round((Number(values.count) * lines[k]) / total))
      return drawn(files.flatMap((f) => mutantsOf(f, treeOf(f))).filter(isWanted), share)
    })
    .map((m, id) => ({ ...m, id }))
}

/** `count` of them, no two of which overlap. */
function drawn(from, count) {
  const keyed = from.map((m, k) => [hashOf(`${values.seed} ${k}`), m])
  const out = []
  for (const [, m] of keyed.sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (out.length === count) break
    if (!out.some((o) => o.file === m.file && o.start < m.end + 1 && m.start < o.end + 1)) out.push(m)
  }
  return out
}

/** Several at a time, each in a process. */
async function inParallel(items, work) {
  const queue = [...items]
  const worker = async () => {
    for (let item = queue.shift(); item; item = queue.shift()) await work(item)
  }
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker))
}

function keep(m, result) {
  results[m.id] = result
  const by = result.by ? `: ${result.by}` : ''
  console.log(`${m.id} ${result.verdict} ${m.file}:${m.line} ${m.kind}${by}`)
  writeFileSync(`${cache}/results.json`, JSON.stringify(results))
}

/** The mutants that each test of the nearest files reaches, and its time: each file runs once without mutants. */
async function reachedBy(wanted) {
  const folder = `${cache}/reached`
  const nearestTo = testsByDistance()
  const recorded = () => readdirSync(folder).map((f) => JSON.parse(readFileSync(`${folder}/${f}`, 'utf8')))
  const isReached = (m) =>
    recorded().some(
      ({ loaded, tests }) => loaded?.reached.includes(m.id) || tests.some((t) => t.reached?.includes(m.id)),
    )
  const tried = new Set(recorded().map((r) => r.file))
  for (const turn of [0, 1, 2]) {
    const open = turn === 0 ? wanted : wanted.filter((m) => !isReached(m))
    const near = open.flatMap((m) => nearestTo(m.file).slice(turn * FILES, (turn + 1) * FILES))
    const files = [...new Set(near)].map((f) => f.replace(/ts$/, 'js')).filter((f) => !tried.has(f))
    if (files.length === 0) continue
    console.log(`${files.length} test files run without mutants, to record which of them each reaches`)
    for (const f of files) tried.add(f)
    const env = { REACHED: folder, MUTATE_WORKERS: values.jobs, LOG: `${cache}/all.log` }
    await vitest(files, { ...env, MUTANT_COUNT: `${mutants.length}` }, cache, 3600)
  }
  const out = recorded()
  for (const { file, tests } of out)
    for (const t of tests) if (!t.passed) console.log(`not used, fails without mutants: ${file} ${t.name}`)
  return out
}

/**
 * Tests that reach a mutant, those of its own module and the quick ones first, as many as the budgets hold.
 * @returns {{ seconds: number, files: [string, string[]][] }[]} for each budget, files with the names of tests
 */
function nearest(m, reached) {
  const found = []
  for (const { file, loaded, tests } of reached) {
    const always = loaded?.reached.includes(m.id)
    const own = file.startsWith(`test/${moduleOf(m)}/`) ? 0.5 : 1
    const quickest = tests
      .filter((t) => t.passed && (always || t.reached?.includes(m.id)))
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

/** Runs the tests of a mutant until one fails. */
async function tested(m, reached) {
  const rounds = reached
    ? nearest(m, reached)
    : [{ seconds: 150, files: values.tests.split(',').map((f) => [f, undefined]) }]
  let result = { verdict: 'unreached' }
  for (const [k, { seconds, files }] of rounds.entries()) {
    const chosen = `${cache}/chosen-${m.id}-${k}.json`
    writeFileSync(chosen, JSON.stringify(files))
    const env = { MUTANT: `${m.id}`, CHOSEN: chosen, MUTANT_COUNT: `${mutants.length}` }
    const limit = LATE.seconds + LATE.times * seconds
    result = await vitest([...files.map(([f]) => f), '--bail', '1'], env, cache, limit)
    if (result.verdict !== 'survived') return result
  }
  const tests = rounds.flatMap((r) => r.files.flatMap(([, names]) => names ?? [])).length
  return result.verdict === 'survived' ? { ...result, by: `${tests} tests` } : result
}
