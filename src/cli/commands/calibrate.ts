import { escapeLine } from '../../ast/diagnostics/render.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import {
  calibrationPath,
  chipOf,
  makeCalibrationFolder,
  writeCalibration,
} from '../../io/package/calibrations.ts'
import { devices } from '../../node.ts'
import { installPackageFiles } from '../../node-programs.ts'
import type { Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import type { Calibration } from '../../search/calibrate/index.ts'
import type { TrainedModel } from '../../search/calibrate/train.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { DEVICE } from '../arguments/options.ts'
import { checkWritable } from '../arguments/paths.ts'
import { EXIT } from '../output/failure.ts'
import { count, type Lines, linesText, percent } from '../output/figures.ts'
import { standardStream } from '../output/outputs.ts'

const MIN_SECONDS = 5
const MAX_SECONDS = 3600

export const calibrate: CommandSpec = {
  name: 'calibrate',
  args: '',
  count: [0, 0],
  summary: 'Measure a device for the cost model and for rooflines',
  options: optionTable`
    ${DEVICE}
    --seconds <N>  [without train]  Time limit (default: 30)
    --out <FILE>  [write]  Write the model to this file (default: a file in the user's cache folder)
    --train  Train the model of a calibrated device on the records of its searches
    --db <FILE>  [read, with train]  With --train: the file of records (default: records.db in the user's
      cache folder)
    --json  One JSON object: the model and its error on the measurements
  `,
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
    installPackageFiles()
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const isTraining = call.flag('train')
    const seconds = call.integer('seconds', MIN_SECONDS, MAX_SECONDS)
    const out = call.one('out')
    if (out !== undefined) await checkWritable(out)
    await using device = await devices[kind]()
    const path =
      out ??
      calibrationPath(chipOf(device), call.io.env) ??
      call.reject('the calibration cannot be stored: SPT_CACHE_DIR is off', {
        expected: '--out FILE, or a cache folder',
      })
    // Checked before the measurements, which take half a minute.
    if (out === undefined) {
      await makeCalibrationFolder(path)
      await checkWritable(path)
    }
    const result = isTraining ? await trainModel(device, call) : await measureDevice(device, seconds, call)
    if (standardStream(path) === null) await writeCalibration(path, result)
    else await call.write(path, `${JSON.stringify(result)}\n`)
    reportCalibration(call, result, path)
    return EXIT.ok
  },
}

async function measureDevice(device: Device, seconds: number | undefined, call: Call): Promise<Calibration> {
  const { calibrate: measure } = await import('../../search/calibrate/index.ts')
  const result = await measure(device, {
    seconds,
    onProgress: (share) => call.io.progress?.(`${percent(share)} of the time; ${device.kind}`),
  })
  call.io.progress?.('')
  return result
}

async function trainModel(device: Device, call: Call): Promise<Calibration> {
  const { openRecords, defaultRecordsPath } = await import('../../search/records/index.ts')
  const { trainOnRecords } = await import('../../search/calibrate/train.ts')
  const records = await openRecords(call.one('db') ?? defaultRecordsPath(call.io.env), { readonly: true })
  using _ = atEnd(() => records.close())
  return trainOnRecords(device, records, call.io.env)
}

/** Prints the calibration; on standard error, warns about a bad fit. */
export function reportCalibration(
  call: Pick<Call, 'io' | 'flag' | 'one'>,
  result: Calibration,
  path: string,
): void {
  call.io.err(accuracyWarning(result, call.one('out') === undefined ? path : null))
  call.io.out(call.flag('json') ? `${JSON.stringify(result)}\n` : calibrationText(result, path))
}

/** Error factor above which a model is unreliable; it is about 1.2 on idle machines. */
const MAX_ERROR_FACTOR = 1.4

/** Warning about a bad fit, or ''. @param path - Path of the model that automatic selection uses; `null` with `--out` */
function accuracyWarning({ error }: Pick<Calibration, 'error'>, path: string | null): string {
  if (Math.exp(error) < MAX_ERROR_FACTOR) return ''
  const advice =
    path === null
      ? '. Automatic selection uses a file of --out only after `useCostModel(kind, model)`'
      : `, or delete ${escapeLine(path)}, so that automatic selection uses the model of the package`
  return `warning: the model is ${percent(Math.exp(error) - 1)} off on average: was the device busy? Calibrate it again${advice}\n`
}

const errorText = (error: number): string => `${percent(Math.exp(error) - 1)} off`

function trainingLines({ trained }: Partial<TrainedModel>): Lines {
  if (!trained) return {}
  const { samples, studies, before, after } = trained
  return {
    'trained on': `${count(samples)} trials of ${count(studies)} studies`,
    'left out': `${errorText(after)} on trials that it has not seen; ${percent(Math.exp(before) - 1)} before`,
  }
}

/** Formats a rate. @param n - Operations or bytes per millisecond */
const rate = (n: number): string => `${count(Math.round(n * 1000))} a second`

function calibrationText(c: Calibration & Partial<TrainedModel>, path: string): string {
  const { memory, cache, f32 } = c.ceilings
  const gigabytes = (n: number): string => `${(n / 1e9).toPrecision(3)} GB/s`
  const kernels = c.kernels.map((k) => [`  ${k.name}`, `${errorText(k.error)} (${k.samples} measured)`])
  return linesText({
    device: `${c.kind} (${c.chip}; ${c.driver})`,
    launch: `${(c.coefficients.launch * 1000).toPrecision(3)} µs`,
    operations: rate(c.coefficients.operations),
    memory: `${gigabytes(memory)} at most; from caches ${gigabytes(cache)}`,
    f32: `${(f32 / 1e9).toPrecision(3)} GFLOP/s at most`,
    model: `${errorText(c.error)} on average`,
    ...trainingLines(c),
    ...Object.fromEntries(kernels),
    'kept in': path,
  })
}
