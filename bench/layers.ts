/**
 * The time of the auto-scheduler for models of many layers, and launches per layer:
 * `npm run build && node dist/bench/layers.js [--runs N] [--layers N] [--json PATH]`. The model is an encoder
 * (test/models/encoder.spt). Times are milliseconds of CPU of the default schedule, in processes of their own, the best of a few. `cold`: the
 * first kernel of its process; `warm`: after one layer.
 */
import { readFileSync } from 'node:fs'
import { load } from '../src/node.ts'
import { child, count, cpu, isMain, option, packageFile, table, writeJson } from './support.ts'

const DEVICES = ['cpu', 'webgpu', 'cuda'] as const
const SIZES = { heads: 4, hd: 64, f: 1024, n: 512 }

interface Times {
  readonly cold: number
  readonly warm: number
}

async function sketchTime(device: (typeof DEVICES)[number], layers: number): Promise<number> {
  const text = readFileSync(packageFile('test/models/encoder.spt'), 'utf8')
  const kernel = (await load(text.replace('repeat 12', `repeat ${layers}`))).kernel('encoder')
  kernel.show(2)
  const start = cpu()
  kernel.autoSchedule(device, SIZES)
  return cpu() - start
}

async function launches(): Promise<number> {
  const text = readFileSync(packageFile('test/models/encoder.spt'), 'utf8').replace('repeat 12', 'repeat 1')
  return (await load(text)).kernel('encoder').autoSchedule('webgpu', SIZES).emit('wgsl').length
}

async function compare(): Promise<void> {
  const runs = count('runs', 3)
  const most = count('layers', 12)
  const figures = DEVICES.map((device) => {
    const [one, all] = [1, most].map((layers) => {
      const args = ['--device', device, '--times', String(layers)]
      const times = Array.from({ length: runs }, () => child<Times>(args, import.meta.url))
      return {
        cold: Math.min(...times.map((t) => t.cold)),
        warm: Math.min(...times.map((t) => t.warm)),
      }
    }) as [Times, Times]
    return { device, one, all }
  })
  writeJson(figures)
  const head = ['device', '1 cold', `${most} cold`, 'ratio', '1 warm', `${most} warm`, 'ratio']
  const rows = figures.map(({ device, one, all }) => [
    device,
    one.cold,
    all.cold,
    all.cold / one.cold,
    one.warm,
    all.warm,
    all.warm / one.warm,
  ])
  console.log(`${table(head, rows)}\n${await launches()} launches per layer in WGSL`)
}

if (isMain(import.meta.url)) {
  const device = option('device') as (typeof DEVICES)[number] | undefined
  if (device) {
    const layers = count('times', 1)
    const cold = await sketchTime(device, layers)
    if (layers > 1) await sketchTime(device, 1)
    console.log(JSON.stringify({ cold, warm: await sketchTime(device, layers) }))
  } else await compare()
}
