/**
 * Accuracy against sparsity, by pattern: `node examples/pruning/experiment.mjs --out results.jsonl`. The first line says what was run,
 * each other is one network in one pattern. With the same seed, results are the same.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker } from 'node:worker_threads'
import { coraTask, glyphTask } from './network.mjs'
import { PATTERNS, runs } from './stages.mjs'

const TASKS = {
  // Rounds before the first stage, and after each.
  glyphs: { make: glyphTask, first: 20, between: 3 },
  cora: { make: coraTask, first: 10, between: 2 },
}

if (isMainThread) await main()
else serve()

async function main() {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '1,2,3,4,5' },
      tasks: { type: 'string', default: Object.keys(TASKS).join() },
      patterns: { type: 'string', default: Object.keys(PATTERNS).join() },
      stages: { type: 'string', default: '0.5,0.65,0.75,0.85,0.9,0.95' },
      limit: { type: 'string' },
      workers: { type: 'string', default: '2' },
      out: { type: 'string' },
    },
  })
  const [tasks, patterns] = [values.tasks.split(','), values.patterns.split(',')]
  for (const [given, known] of [
    [tasks, TASKS],
    [patterns, PATTERNS],
  ])
    for (const name of given)
      if (!(name in known)) throw new Error(`there is no ${name}; there are ${Object.keys(known).join(', ')}`)
  const stages = values.stages.split(',').map(Number)
  const limit = values.limit === undefined ? undefined : Number(values.limit)
  const seeds = values.seeds.split(',').map(Number)
  const jobs = seeds.flatMap((seed) => tasks.map((task) => ({ task, seed, patterns, stages, limit })))
  const rows = []
  const write = () => {
    const said = { stages, patterns, limit, tasks: tasks.map((t) => ({ task: t, ...TASKS[t] })) }
    const order = (r) => [tasks.indexOf(r.task), patterns.indexOf(r.pattern), r.seed]
    rows.sort((a, b) => order(a).reduce((d, x, k) => d || x - order(b)[k], 0))
    if (values.out) writeFileSync(values.out, [said, ...rows].map((r) => `${JSON.stringify(r)}\n`).join(''))
  }
  const started = performance.now()
  const workers = Array.from({ length: Math.min(Number(values.workers), jobs.length) }, async () => {
    const worker = new Worker(new URL(import.meta.url))
    for (let job = jobs.shift(); job; job = jobs.shift()) {
      worker.postMessage(job)
      const got = await new Promise((done, failed) => {
        worker.once('message', done)
        worker.once('error', failed)
      })
      rows.push(...got.map((r) => ({ task: job.task, ...r })))
      write()
      const seconds = (performance.now() - started) / 1000
      console.error(`${job.task} ${job.seed}: ${got[0].trained} before pruning (${seconds.toFixed(0)} s)`)
    }
    await worker.terminate()
  })
  await Promise.all(workers)
  const { user } = process.cpuUsage()
  console.error(`${(user / 1e6).toFixed(0)} s of processor time`)
}

/** Tasks are made once. */
function serve() {
  const made = {}
  parentPort.on('message', async ({ task, seed, ...what }) => {
    const { make, first, between } = TASKS[task]
    made[task] ??= await make()
    parentPort.postMessage(await runs(made[task], seed, { ...what, first, between }))
  })
}
