/**
 * Every kernel of `kernels/`, under every schedule, on every data set that fits it, on every device that is there,
 * against the reference.
 *
 *   node dist/bench/verify-all.js --device cuda,webgpu,cpu --data FOLDER [--kernel PATTERN] [--schedule PATTERN]
 *     [--kernels FOLDER] [--json PATH] [--minutes N]
 *
 * Exits with 1 where anything disagrees or fails. What a device's limits refuse (a buffer that is too large) is
 * listed and counted apart, and so is what would take long on a device without a GPU and, after N minutes, all that
 * is left for those. Large results are compared on a random sample of rows, where rows are independent.
 */
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { SptError } from '../src/ast/diagnostic.ts'
import type { Bound } from '../src/bind/index.ts'
import type { RefOutputs } from '../src/ir/reference/index.ts'
import { type Device, devices, type Kernel, load, type SptProgram } from '../src/node.ts'
import { expectedOf, verifyAgainst } from '../src/verify.ts'
import { readData } from './verify-all/data.ts'
import { type Feed, feedsOf } from './verify-all/feeds.ts'

/** Multiply-adds beyond which the reference computes a sample. */
const SAMPLE_BEYOND = 2e6
/** Milliseconds beyond which a case is left out on a device without a GPU, by what smaller data took before. */
const PATIENCE = 1500
/** Milliseconds of a first run that do not grow with the data. */
const OVERHEAD = 100
/** Refusals that say what a device cannot do, not that something is wrong. */
const LIMITS = new Set([
  'device/buffer-too-large',
  'device/out-of-memory',
  'plan/too-many-buffers',
  'plan/too-large',
  'plan/grid-too-large',
  'plan/block-too-large',
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
  expected: RefOutputs | undefined
  /** By the steps on coordinates: those decide what is stored. */
  readonly bound: Map<string, Bound>
}

/** The same kernel under one schedule, on one data set and device. */
async function runCase(
  kernel: Kernel,
  compiled: Awaited<ReturnType<Kernel['compile']>>,
  shared: Shared,
  device: Device,
): Promise<Pick<Row, 'result' | 'maxRelativeError' | 'maxAbsoluteError' | 'ms' | 'sampled' | 'note'>> {
  const stored = kernel.trace.slice(0, kernel.compilation.coordSteps.length).join('; ')
  const bound = shared.bound.get(stored) ?? compiled.bind(shared.feed.inputs)
  shared.bound.set(stored, bound)
  const { work } = shared.feed
  shared.expected ??= expectedOf(
    kernel.compilation.source,
    bound,
    work > SAMPLE_BEYOND ? { sample: { fraction: SAMPLE_BEYOND / work, seed: 1 } } : {},
  )
  const prepared = await compiled.prepare(bound)
  try {
    const v = await verifyAgainst(prepared.executable, shared.expected)
    // A first run on WebGPU compiles the pipeline.
    const again = v.runTime > OVERHEAD && device.kind === 'webgpu' ? await prepared.time(1) : []
    return {
      result: v.ok ? 'ok' : 'failed',
      maxRelativeError: v.maxRelativeError,
      maxAbsoluteError: v.maxAbsoluteError,
      ms: Math.min(v.runTime, ...again),
      sampled: v.sampled !== null,
      note: v.problems.join('; ') || (v.sampled ? 'sampled' : ''),
    }
  } finally {
    prepared.free()
  }
}

async function runKernel(program: SptProgram, name: string, feeds: readonly Feed[], on: readonly Device[]) {
  const plain = program.kernel(name)
  const shared = feeds.map((feed): Shared => ({ feed, expected: undefined, bound: new Map() }))
  // A schedule's storage is built once for all devices and dropped before the next one's.
  for (const schedule of ['(none)', ...plain.schedules]) {
    if (!schedule.includes(options.schedule)) continue
    for (const device of on) {
      const head = { kernel: name, schedule, device: device.kind }
      const failed = (data: string, error: unknown): void =>
        report({
          ...head,
          ...nothing,
          data,
          result: isLimit(error) ? 'refused' : 'failed',
          note: messageOf(error),
        })
      try {
        const kernel = schedule === '(none)' ? plain : plain.schedule(schedule)
        const compiled = await kernel.compile(device)
        let pace = 0
        for (const s of shared)
          try {
            const forecast = pace * s.feed.work
            const late = performance.now() - start > 60_000 * Number(options.minutes)
            if ((forecast > PATIENCE || late) && device.kind !== 'cuda') {
              const note = late ? 'out of time' : `would take about ${(forecast / 1000).toFixed(0)} s here`
              report({ ...head, ...nothing, data: s.feed.data, result: 'skipped', note })
              continue
            }
            const row = await runCase(kernel, compiled, s, device)
            pace = ((row.ms ?? 0) - OVERHEAD) / s.feed.work
            report({ ...head, data: s.feed.data, ...row })
          } catch (error) {
            failed(s.feed.data, error)
          }
        compiled.release()
      } catch (error) {
        failed('(compiling)', error)
      }
    }
    for (const s of shared) for (const key of [...s.bound.keys()]) if (key !== '') s.bound.delete(key)
  }
}

const start = performance.now()
const data = await readData(options.data)
const on = await present()
for (const file of (await readdir(options.kernels)).filter((f) => f.endsWith('.spt')).sort()) {
  const program = await load(join(options.kernels, file))
  for (const name of program.kernels) {
    if (!name.includes(options.kernel)) continue
    const params = program.kernel(name).compilation.source.params.map((p) => p.name)
    await runKernel(program, name, feedsOf(name, params, data), on)
  }
}
for (const d of on) await d.dispose()

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
  `${count('refused')} refused by a device's limits, ${count('skipped')} skipped as too slow, ${seconds.toFixed(0)} s`,
)
console.log(`${count('ok')} passed, ${count('failed')} failed`)
process.exit(count('failed') > 0 || on.length === 0 ? 1 : 0)
