/**
 * Whole steps of models against PyTorch and PyG, on one GPU and on the same data: training steps of GraphSAGE and of a
 * mixture of experts, inference of RGCN and of an encoder layer with pruned weights.
 * The peer program computes each step in float64 and checks both results before anything is compared.
 *
 *   node dist/bench/models.js --data FOLDER [--models NAME,…] [--device cuda|cpu] [--json FILE] [--launches] [--quick]
 *
 * `--launches` also prints the time of every launch by itself. `--quick` measures the first peer only, recorded. Times are medians of replays of a graph, in microseconds; peers are also timed as calls, as a program in Python makes them.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { measure } from '../src/device.ts'
import { devices } from '../src/node.ts'
import { measureBy, scoutBy, type Times } from './gpu/timing.ts'
import { MODELS, type Step } from './models/index.ts'
import { type ModelCase, pythonPeers } from './peers/python.ts'
import { median, option, table } from './support.ts'
import { readData } from './verify-all/data.ts'

const kind = option('device') ?? 'cuda'
if (kind !== 'cuda' && kind !== 'cpu') throw new Error(`--device is cuda or cpu, not ${kind}`)
const asked = option('models')?.split(',') ?? Object.keys(MODELS)
const data = await readData(option('data') ?? 'data')
const device = await devices[kind]()
const folder = mkdtempSync(join(tmpdir(), 'spt-models-'))

interface Ours {
  readonly id: string
  readonly schedule: string
  readonly launches: number
  readonly times: Times | null
}

/** Writes inputs and results as raw arrays, `FILE-NAME`. */
async function written(step: Step, file: string): Promise<readonly string[]> {
  for (const [name, values] of Object.entries(step.arrays)) writeFileSync(`${file}-${name}`, values)
  const results = await step.results()
  for (const [name, values] of Object.entries(results)) writeFileSync(`${file}-ours-${name}`, values)
  return Object.keys(results)
}

async function timed(step: Step): Promise<Times | null> {
  if (kind === 'cpu') return null
  const samples = async (options: object): Promise<readonly number[]> =>
    (await measure(device, step.commands(), options)).times.map((t) => 1000 * t)
  return measureBy(samples, await scoutBy(samples))
}

/** The time of every launch by itself, the longest first. */
async function launchTimes(step: Step): Promise<string> {
  const rows: [string, number, string][] = []
  for (const c of step.commands()) {
    if (c.kind !== 'launch') continue
    const { times } = await measure(device, [c], { warmups: 3, repeats: 9, batch: 5 })
    rows.push([c.entry, 1000 * median(times), `${c.grid}`])
  }
  return table(
    ['launch', 'µs', 'grid'],
    rows.sort((a, b) => b[1] - a[1]),
  )
}

const ours: Ours[] = []
const cases: ModelCase[] = []
try {
  for (const name of asked)
    for (const set of MODELS[name]?.sizes ?? data) {
      const step = await MODELS[name]?.step(device, set)
      if (!step) continue
      const id = `${name} ${set.name}`
      const file = join(folder, String(cases.length))
      try {
        const results = await written(step, file)
        const times = await timed(step)
        const { schedule } = step
        const launches = step.commands().filter((c) => c.kind === 'launch').length
        ours.push({ id, schedule, launches, times })
        cases.push({ id, file, model: name, sizes: step.sizes, results })
        if (process.argv.includes('--launches')) console.log(await launchTimes(step))
        console.log(`${id}: ${schedule}, ${launches} launches, ${times?.event.toFixed(1) ?? '-'} µs`)
      } finally {
        step.free()
      }
    }
  const peers = await pythonPeers(
    'models.py',
    { options: { quick: process.argv.includes('--quick') }, say: console.log },
    () => cases,
  )
  const us = (t: Times | null | undefined): string => t?.event.toFixed(1) ?? '-'
  const rows = ours.flatMap((o) => {
    const own = peers.filter((p) => p.id === o.id)
    const agrees = own.find((p) => p.name === 'sparsetile')
    return own
      .filter((p) => p !== agrees)
      .map((p) => [
        o.id,
        agrees?.result ?? 'unchecked',
        us(o.times),
        o.times?.flushed.toFixed(1) ?? '-',
        String(o.launches),
        `${p.name} ${p.result === 'ok' ? '' : `(${p.result}: ${p.note})`}`,
        us(p.times),
        o.times && p.times ? (p.times.event / o.times.event).toFixed(2) : '-',
      ])
  })
  console.log(table(['case', 'ours', 'µs', 'flushed', 'launches', 'peer', 'µs', 'ratio'], rows))
  const json = option('json')
  if (json !== undefined) writeFileSync(json, JSON.stringify({ ours, peers }, null, 1))
} finally {
  rmSync(folder, { recursive: true, force: true })
  await device.dispose()
}
