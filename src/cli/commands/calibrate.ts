import { escapedLine } from '../../ast/render.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { calibrationPath, chipOf, makeCalibrationFolder, writeCalibration } from '../../io/calibrations.ts'
import { devices } from '../../node.ts'
import type { Device } from '../../runtime/device.ts'
import type { Calibration } from '../../search/calibrate/index.ts'
import type { TrainedModel } from '../../search/calibrate/train.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { count, percent } from '../figures.ts'
import { DEVICE } from '../options.ts'
import { outputAt } from '../outputs.ts'
import { checkWritable } from '../paths.ts'
import { misused } from '../usage.ts'

const LEAST_SECONDS = 5
const MOST_SECONDS = 3600

export const calibrate: CommandSpec = {
  name: 'calibrate',
  args: '',
  count: [0, 0],
  summary: 'Measure a device for the cost model and for rooflines',
  options: [
    DEVICE,
    { flags: '--seconds <N>', about: 'Time limit (default: 30)' },
    {
      flags: '--out <FILE>',
      about: "Write the model to this file (default: a file in the user's cache folder)",
      file: 'write',
    },
    { flags: '--train', about: 'Train the model of a calibrated device on the records of its searches' },
    {
      flags: '--db <FILE>',
      about: "With --train: the file of records (default: records.db in the user's cache folder)",
      file: 'read',
    },
    { flags: '--json', about: 'One JSON object: the model and its error on the measurements' },
  ],
  notes: [
    'The command measures small kernels and fits the coefficients of the cost model to their times. Automatic selection\n(fastest { … }) and searches on this device and driver then use the model, unless the package has one for the same\nchip. spt explain also uses the measured ceilings. The command waits for other measurements on the device.',
  ],
  examples: [
    'spt calibrate',
    'spt calibrate --train --db study.db',
    'spt calibrate --device webgpu --seconds 60',
    'spt calibrate --out model.json',
  ],
  async run(call) {
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const isTraining = call.flag('train')
    refuseMixed(call, isTraining)
    const seconds = call.integer('seconds', LEAST_SECONDS, MOST_SECONDS)
    const out = call.one('out')
    if (out !== undefined) await checkWritable(out)
    const device = await devices[kind]()
    try {
      const path = out ?? calibrationPath(chipOf(device), call.io.env) ?? cacheIsOff()
      // Not after half a minute.
      if (out === undefined) {
        await makeCalibrationFolder(path)
        await checkWritable(path)
      }
      const result = isTraining ? await trained(device, call) : await measured(device, seconds, call)
      if (outputAt(path) === null) await writeCalibration(path, result)
      else await call.write(path, `${JSON.stringify(result)}\n`)
      tell(call, result, path)
      return EXIT.ok
    } finally {
      await device.dispose()
    }
  },
}

function refuseMixed(call: Call, isTraining: boolean): void {
  const option = isTraining ? 'seconds' : 'db'
  if (call.one(option) === undefined) return
  misused({
    command: 'calibrate',
    message: isTraining
      ? '--train measures nothing, so --seconds has no meaning'
      : '--db has a meaning with --train only',
    expected: isTraining ? 'calibrate --train [--db FILE]' : 'calibrate --train --db FILE',
  })
}

async function measured(device: Device, seconds: number | undefined, call: Call): Promise<Calibration> {
  const { calibrate: measure } = await import('../../search/calibrate/index.ts')
  const result = await measure(device, {
    seconds,
    onProgress: (share) => call.io.progress?.(`${percent(share)} of the time; ${device.kind}`),
  })
  call.io.progress?.('')
  return result
}

async function trained(device: Device, call: Call): Promise<Calibration> {
  const { openRecords, usualPath } = await import('../../search/records/index.ts')
  const { trainOnRecords } = await import('../../search/calibrate/train.ts')
  const records = await openRecords(call.one('db') ?? usualPath(call.io.env), { readonly: true })
  try {
    return trainOnRecords(device, records, call.io.env)
  } finally {
    records.close()
  }
}

/** Prints the calibration, and doubts about it on standard error. */
export function tell(call: Pick<Call, 'io' | 'flag' | 'one'>, result: Calibration, path: string): void {
  call.io.err(doubts(result, call.one('out') === undefined ? path : null))
  call.io.out(call.flag('json') ? `${JSON.stringify(result)}\n` : text(result, path))
}

/** Error factor above which a model is unreliable; it is about 1.2 on idle machines. */
const DOUBTFUL = 1.4

/** A warning of a model that fits badly; empty for others. @param path of the model that choices use; `null`: of `--out` */
function doubts({ error }: Pick<Calibration, 'error'>, path: string | null): string {
  if (Math.exp(error) < DOUBTFUL) return ''
  const instead =
    path === null
      ? '. Choices use a file of --out only after `useCostModel(kind, model)`'
      : `, or delete ${escapedLine(path)}, so that choices go by the model of the package`
  return `warning: the model is ${percent(Math.exp(error) - 1)} off on average: was the device busy? Calibrate it again${instead}\n`
}

const cacheIsOff = (): never =>
  misused({
    command: 'calibrate',
    message: 'there is no cache folder to keep it in: SPT_CACHE_DIR is off',
    expected: '--out FILE, or a cache folder',
  })

function trainingRows(c: Calibration & Partial<TrainedModel>): (readonly [string, string])[] {
  if (!c.trained) return []
  const { samples, studies, before, after } = c.trained
  const off = (error: number): string => percent(Math.exp(error) - 1)
  return [
    ['trained on', `${count(samples)} trials of ${count(studies)} studies`],
    ['left out', `${off(after)} off on trials that it has not seen; ${off(before)} before`],
  ]
}

/** An amount a millisecond. */
const rate = (n: number): string => `${count(Math.round(n * 1000))} a second`

function text(c: Calibration, path: string): string {
  const { memory, cache, f32 } = c.ceilings
  const off = (x: number): string => `${percent(Math.exp(x) - 1)} off`
  const rows: (readonly [string, string])[] = [
    ['device', `${c.kind} (${c.chip}; ${c.driver})`],
    ['launch', `${(c.coefficients.launch * 1000).toPrecision(3)} µs`],
    ['operations', rate(c.coefficients.operations)],
    [
      'memory',
      `${(memory / 1e9).toPrecision(3)} GB/s at most; from caches ${(cache / 1e9).toPrecision(3)} GB/s`,
    ],
    ['f32', `${(f32 / 1e9).toPrecision(3)} GFLOP/s at most`],
    ['model', `${off(c.error)} on average`],
    ...trainingRows(c),
    ...c.kernels.map((k) => [`  ${k.name}`, `${off(k.error)} (${k.samples} measured)`] as const),
    ['kept in', path],
  ]
  const width = Math.max(...rows.map(([a]) => a.length))
  return rows.map(([a, b]) => `${a.padEnd(width)}  ${b}\n`).join('')
}
