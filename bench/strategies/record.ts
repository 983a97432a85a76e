/**
 * Measures every point of a space on cpu, for strategies to be judged on: the auto-scheduler's spaces of spmm under formats,
 * on small matrices of the families.
 *
 *   node dist/bench/strategies/record.js --out PATH [--data power-law:2000,finite-elements:2000] [--width 32] [--rounds 12]
 *
 * A line of JSON a point (`table.ts`). Each point is compared with the reference first; formats are converted once.
 */
import { appendFileSync } from 'node:fs'
import type { Binding, Kernel } from '../../src/node.ts'
import { coords, devices, load, SptError } from '../../src/node.ts'
import { Random, randomValues } from '../../src/run/bind/sources/random-tensors.ts'
import {
  deviceKey,
  measureRounds,
  type Point,
  points,
  prepareReference,
  sketches,
  Workspace,
  withDeviceLock,
} from '../../src/search.ts'
import { generateMatrix } from '../families.ts'
import { count, option, packageFile } from '../support.ts'
import type { Line } from './table.ts'

const FORMATS = ['', 'dcsr', 'ell', 'bsr(2)', 'bsr(4)', 'bsr(8)', 'rows_by_length(32)', 'hyb_pieces(1, 3)']
/** Points that are measured against each other. */
const TOGETHER = 16

const out = option('out')
if (!out) throw new Error('--out PATH says where the lines go')
const width = count('width', 32)
const rounds = count('rounds', 12)
const device = await devices.cpu()
const reference = await prepareReference(device)
const program = await load(packageFile('kernels/spmm.spt'))
const kernel = program.kernel('spmm')

function tensorOf(name: string): ReturnType<typeof coords> {
  const pattern = generateMatrix(name)
  if (!pattern) throw new Error(`there is no family ${name}`)
  const { shape, rows, columns } = pattern
  return coords([...shape], [rows, columns], randomValues('f32', rows.length, new Random(1)))
}

async function record(data: string): Promise<void> {
  const table = `spmm ${data} ${width} cpu`
  const write = (point: Point, came: Pick<Line, 'ms' | 'code'>): void =>
    appendFileSync(out!, `${JSON.stringify({ table, point, ...came } satisfies Line)}\n`)
  const workspace = new Workspace(device, kernel, { A: tensorOf(data), d: width }, { seed: 1 })
  const space = sketches(kernel, { device: 'cpu', sizes: { d: width }, formats: { A: FORMATS } })
  const all = [...points(space)]
  for (let at = 0; at < all.length; at += TOGETHER) {
    const ready: { readonly point: Point; readonly prepared: Binding }[] = []
    for (const point of all.slice(at, at + TOGETHER))
      try {
        ready.push({ point, prepared: await prepare(workspace, space.kernel(point)) })
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        write(point, { code: e.code })
      }
    const { outcomes } = await withDeviceLock(deviceKey(device), () =>
      measureRounds(
        device,
        ready.map((r) => r.prepared),
        { rounds, reference, warmups: 12, width: 0.01, seed: at },
      ),
    )
    for (const [k, { point, prepared }] of ready.entries()) {
      const outcome = outcomes[k]!
      if (outcome.status === 'measured') write(point, { ms: Number(outcome.timing.median.toPrecision(4)) })
      else if ('code' in outcome) write(point, { code: outcome.code })
      prepared.free()
      prepared.code.release()
    }
    console.error(`${table}: ${Math.min(at + TOGETHER, all.length)} of ${all.length}`)
  }
}

async function prepare(workspace: Workspace, scheduled: Kernel): Promise<Binding> {
  const prepared = await workspace.bind(await scheduled.build(device, { auto: false }))
  const verdict = await workspace.verify(prepared, { sample: { count: 64 } })
  if (!verdict.ok) throw new Error(`wrong: ${scheduled.trace.join('; ')}`)
  return prepared
}

for (const data of (option('data') ?? 'power-law:2000,finite-elements:2000').split(',')) await record(data)
