/**
 * Every kernel of `kernels/`, under every schedule, on every data set that fits it, on every device that is there,
 * against the reference; some kernels also in every standard format of matrices, with the default schedule.
 *
 *   node dist/bench/verify-all.js --device cuda,webgpu,cpu --data FOLDER [--kernel PATTERN] [--schedule PATTERN]
 *     [--kernels FOLDER] [--json PATH] [--minutes N]
 *
 * Exits with 1 where anything disagrees or fails. What a device's limits refuse (a buffer that is too large), and what
 * a format does not hold, is listed and counted apart, and so is what would take long to build, or on a device without
 * a GPU, and, after N minutes, all that is left. Large results are compared on a random sample of rows, where rows are
 * independent. SCHEDULE `as` is all formats.
 */

import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { printedCoordSteps } from '../src/api/kernels/nests.ts'
import { SptError } from '../src/ast/diagnostics/diagnostic.ts'
import { suggestion } from '../src/ast/diagnostics/suggest.ts'
import { type Device, devices, type Kernel, load, type SptProgram } from '../src/node.ts'
import type { RefOutputs } from '../src/reference/index.ts'
import type { Bound } from '../src/run/bind/index.ts'
import { expectedOf } from '../src/run/bind/results/reference-inputs.ts'
import { precisionOf, verifyAgainst } from '../src/run/verify/verify.ts'
import { readData } from './verify-all/data.ts'
import { type Feed, feedsOf } from './verify-all/feeds.ts'
import { SWEPT, storedBy, type Use, usesIn } from './verify-all/sweep.ts'

/** Multiply-adds beyond which the reference computes a sample. */
const SAMPLE_BEYOND = 2e6
/** Milliseconds beyond which a case is left out on a device without a GPU, by what smaller data took before. */
const PATIENCE = 1500
/** Milliseconds of a first run that do not grow with the data. */
const OVERHEAD = 100
/** Milliseconds of binding beyond which a case is left out, by what smaller data took before. */
const BUILDING = 10_000
/** Elements that a format may store. */
const MOST_STORED = 1.2e7
/** Refusals that say what a device cannot do, or a format cannot hold, not that something is wrong. */
const LIMITS = new Set([
  'bind/too-large',
  'bind/width',
  'format/leak',
  'device/buffer-too-large',
  'device/no-instruction',
  'device/out-of-memory',
  'emit/no-instruction',
  'plan/too-many-buffers',
  'plan/too-large',
  'plan/grid-too-large',
  'plan/block-too-large',
  'run/requirement',
])

interface Row {
  readonly kernel: string
  readonly schedule: string
  readonly data: string
  readonly device: string
  readonly result: 'ok' | 'failed' | 'refused' | 'skipped'
  readonly maxRelativeError: number | null
  readonly maxAbsoluteError: number | null
  /** Of the run that was compared, on the host's clock; on WebGPU of a second one where the first takes long. */
  readonly ms: number | null
  readonly sampled: boolean
  readonly note: string
}

const { values: options } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu,webgpu,cuda' },
    data: { type: 'string', default: 'data' },
    kernels: { type: 'string', default: 'kernels' },
    kernel: { type: 'string', default: '' },
    schedule: { type: 'string', default: '' },
    minutes: { type: 'string', default: 'Infinity' },
    json: { type: 'string' },
  },
})

const rows: Row[] = []
const absent: string[] = []

function report(row: Row): void {
  rows.push(row)
  const error = row.maxRelativeError === null ? '-' : row.maxRelativeError.toExponential(1)
  const time = row.ms === null ? '-' : row.ms.toFixed(3)
  const cells = [row.kernel.padEnd(18), row.schedule.padEnd(14), row.data.padEnd(16), row.device.padEnd(7)]
  console.log(
    [...cells, row.result.padEnd(7), error.padStart(8), `${time} ms`.padStart(12), row.note]
      .join(' ')
      .trimEnd(),
  )
}

const nothing = { maxRelativeError: null, maxAbsoluteError: null, ms: null, sampled: false } as const

const messageOf = (error: unknown): string =>
  error instanceof SptError
    ? error.diagnostics.map((d) => `${d.code}: ${d.message}`).join('; ')
    : String((error as Error).stack ?? error)

const isLimit = (error: unknown): boolean =>
  error instanceof SptError && error.diagnostics.every((d) => LIMITS.has(d.code))

async function present(): Promise<Device[]> {
  const out: Device[] = []
  for (const kind of options.device.split(',')) {
    try {
      if (kind !== 'cpu' && kind !== 'webgpu' && kind !== 'cuda') throw new Error('there is no such device')
      out.push(await devices[kind]())
    } catch (error) {
      absent.push(kind)
      console.log(`${kind} is not here: ${messageOf(error)}`)
    }
  }
  return out
}

/** What is the same for all schedules and devices on one data set. */
interface Shared {
  readonly feed: Feed
  /** By the precision of a schedule's products. */
  readonly expected: Map<string, RefOutputs>
  /** By the steps on coordinates: those decide what is stored. */
  readonly bound: Map<string, Bound>
}

const sharedOf = (feed: Feed): Shared => ({ feed, expected: new Map(), bound: new Map() })

/** Drops what was built for a schedule. */
function forget(data: readonly Shared[]): void {
  for (const s of data) for (const key of [...s.bound.keys()]) if (key !== '') s.bound.delete(key)
}

type Outcome = Pick<Row, 'result' | 'maxRelativeError' | 'maxAbsoluteError' | 'ms' | 'sampled' | 'note'>

/** The same kernel under one schedule, on one data set and device; `building` is what binding took. */
async function runCase(
  kernel: Kernel,
  compiled: Awaited<ReturnType<Kernel['build']>>,
  shared: Shared,
): Promise<Outcome & { readonly building: number }> {
  const stored = printedCoordSteps(kernel.compilation).join('; ')
  const before = performance.now()
  const bound = shared.bound.get(stored) ?? compiled.bindOnHost(...flatInputs(shared.feed.inputs))
  const building = performance.now() - before
  shared.bound.set(stored, bound)
  const { work } = shared.feed
  const sample = work > SAMPLE_BEYOND ? { sample: { fraction: SAMPLE_BEYOND / work, seed: 1 } } : {}
  const prepared = await compiled.upload(bound)
  try {
    const precision = precisionOf(prepared.executable.program.plan)
    const key = JSON.stringify(precision)
    const expected =
      shared.expected.get(key) ?? expectedOf(kernel.compilation.source, bound, { ...sample, ...precision })
    shared.expected.set(key, expected)
    const v = await verifyAgainst(kernel.compilation.source, prepared.executable, expected)
    // A first run on WebGPU compiles the pipeline.
    const again = v.runTime > OVERHEAD && compiled.device.kind === 'webgpu' ? await prepared.time(1) : []
    return {
      result: v.ok ? 'ok' : 'failed',
      maxRelativeError: v.maxRelativeError,
      maxAbsoluteError: v.maxAbsoluteError,
      ms: Math.min(v.runTime, ...again),
      sampled: v.sample !== null,
      note: v.problems.join('; ') || (v.sample ? 'sampled' : ''),
      building,
    }
  } finally {
    prepared.free()
  }
}

/** Why a case is left out, if it is; `pace` and `building` are milliseconds for each unit of work so far. */
function tooMuch(kernel: Kernel, feed: Feed, device: Device, pace: number, building: number): string | null {
  const out = performance.now() - start > 60_000 * Number(options.minutes)
  if (out) return 'out of time'
  const A = feed.inputs.tensors?.A
  if (A && 'kind' in A && A.kind === 'coords' && A.shape.length === 2)
    for (const step of printedCoordSteps(kernel.compilation)) {
      const elements = storedBy(step, A)
      if (elements > MOST_STORED) return `would store ${(elements / 1e6).toFixed(0)} million elements`
    }
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(0)} s`
  if (building * feed.work > BUILDING) return `would take about ${seconds(building * feed.work)} to build`
  const slow = device.kind !== 'cuda' && pace * feed.work > PATIENCE
  return slow ? `would take about ${seconds(pace * feed.work)} here` : null
}

/** One schedule or format on all devices and data. */
async function runSchedule(
  head: Pick<Row, 'kernel' | 'schedule'>,
  scheduled: () => Kernel,
  on: readonly Device[],
  data: readonly Shared[],
) {
  for (const device of on) {
    const base = { ...head, device: device.kind }
    const failed = (d: string, error: unknown): void =>
      report({
        ...base,
        ...nothing,
        data: d,
        result: isLimit(error) ? 'refused' : 'failed',
        note: messageOf(error),
      })
    try {
      const kernel = scheduled()
      const compiled = await kernel.build(device, { auto: false })
      let [pace, building] = [0, 0]
      for (const s of data)
        try {
          const why = tooMuch(kernel, s.feed, device, pace, building)
          if (why !== null) {
            report({ ...base, ...nothing, data: s.feed.data, result: 'skipped', note: why })
            continue
          }
          const { building: built, ...row } = await runCase(kernel, compiled, s)
          pace = ((row.ms ?? 0) - OVERHEAD) / s.feed.work
          building = Math.max(building, (built - OVERHEAD) / s.feed.work)
          report({ ...base, data: s.feed.data, ...row })
        } catch (error) {
          failed(s.feed.data, error)
        }
      compiled.release()
    } catch (error) {
      failed('(compiling)', error)
    }
  }
}

async function runKernel(
  program: SptProgram,
  name: string,
  feeds: readonly Feed[],
  uses: readonly Use[],
  on: readonly Device[],
) {
  const plain = program.kernel(name)
  const shared = feeds.map(sharedOf)
  // A schedule's storage is built once for all devices and dropped before the next one's.
  for (const schedule of ['(none)', ...plain.schedules]) {
    if (!schedule.includes(options.schedule)) continue
    const scheduled = (): Kernel => (schedule === '(none)' ? plain : plain.schedule(schedule))
    await runSchedule({ kernel: name, schedule }, scheduled, on, shared)
    forget(shared)
  }
  for (const use of uses) {
    if (!use.name.includes(options.schedule)) continue
    const adapted = shared.map((s) => {
      const feed = use.adapt(s.feed)
      return feed === s.feed ? s : sharedOf(feed)
    })
    await runSchedule({ kernel: name, schedule: use.name }, () => use.kernel(plain), on, adapted)
    forget(shared)
  }
}

const start = performance.now()
const data = await readData(options.data)
const on = await present()
const uses = await usesIn(options.kernels)
const names = new Set<string>()
for (const file of (await readdir(options.kernels)).filter((f) => f.endsWith('.spt')).sort()) {
  const program = await load(join(options.kernels, file))
  for (const name of program.kernels) {
    names.add(name)
    if (!name.includes(options.kernel)) continue
    const params = program.kernel(name).compilation.source.params.map((p) => p.name)
    const swept = SWEPT.includes(name) ? uses : []
    await runKernel(program, name, feedsOf(name, params, data), swept, on)
  }
}
for (const d of on) await d.dispose()
if (rows.length === 0 && on.length > 0) {
  const asked = [options.kernel, options.schedule].filter((o) => o !== '').join(' ')
  const close = suggestion({ name: options.kernel, candidates: [...names] }, false)
  console.log(`nothing was run: no kernel and schedule match ${asked || 'what is in the folder'}`)
  console.log(close ? `  ${close.title}: ${close.text}` : `  kernels: ${[...names].join(', ')}`)
}

const count = (result: Row['result']): number => rows.filter((r) => r.result === result).length
for (const r of rows)
  if (r.result === 'failed') console.log(`failed: ${r.kernel} ${r.schedule} ${r.data} ${r.device}: ${r.note}`)
const seconds = (performance.now() - start) / 1000
if (options.json)
  await writeFile(
    options.json,
    JSON.stringify({
      seconds,
      devices: on.map((d) => ({ kind: d.kind, name: d.name })),
      absent,
      passed: count('ok'),
      failed: count('failed'),
      refused: count('refused'),
      skipped: count('skipped'),
      rows,
    }),
  )
console.log(
  `${count('refused')} refused by a device's or a format's limits, ${count('skipped')} skipped as too slow or too large, ${seconds.toFixed(0)} s`,
)
console.log(`${count('ok')} passed, ${count('failed')} failed`)
process.exit(count('failed') > 0 || rows.length === 0 ? 1 : 0)
