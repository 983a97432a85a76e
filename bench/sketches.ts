/**
 * Whether the auto-scheduler's spaces contain what schedules by hand reach: for each kernel the best point of its space that
 * was found in the time given, the best guess without measuring, what `compile` takes on the data, what `parallel()` gives,
 * and the best schedule by hand, in one process.
 *
 *   node dist/bench/sketches.js [--device cpu|cuda|webgpu] [--kernels A,B] [--data FOLDER] [--sets A,B] [--rows N]
 *     [--width D] [--points N] [--listed N] [--hand A,B] [--minutes M] [--seed N] [--threads N] [--as-declared] [--json PATH] [--times PATH]
 *
 * The time is shared out among the kernels; a row is printed, and `--json` written, as each is done, and several processes
 * (`--kernels`) use the device in turn. `--times` gets a line of JSON for every schedule that was timed, with its steps.
 * `--sets`: files of the folder, or members of generated families (`road:20000:1`). `--as-declared`: formats are none of the
 * decisions. `--threads`: that rank points beside a process, of several at a time. By hand: the schedules of the package that need no arguments, its choices, and what `candidates.json` lists; of all
 * of them those that `--hand` names. A point whose result differs from the reference is reported, and makes the
 * process end with 1; where the reference takes too long, points are compared on an excerpt of the data. The best of each are
 * timed again, interleaved.
 */

import { parseArgs } from 'node:util'
import type { RunInputs } from '../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../src/api/inputs/flat-inputs.ts'
import { type Device, devices, type Kernel, load, SptError } from '../src/node.ts'
import { referenceExtent } from '../src/search/evaluate/reference-extent.ts'
import { sketches } from '../src/search/spaces/sketches.ts'
import { count } from '../src/search/spaces/survey.ts'
import { costModel, predictor, Workspace } from '../src/search.ts'
import { byHand } from './sketches/by-hand.ts'
import { explored } from './sketches/explored.ts'
import type { Judged } from './sketches/judged.ts'
import { excerptOf, JUDGED, LARGE, memberSets, synthetic, tensorsFor } from './sketches/judged.ts'
import { type Timed, Trials } from './sketches/trials.ts'
import { packageFile, table, writeJson } from './support.ts'
import { type DataSet, readData } from './verify-all/data.ts'

const { values: options } = parseArgs({
  options: {
    device: { type: 'string', default: 'cpu' },
    kernels: { type: 'string' },
    data: { type: 'string' },
    sets: { type: 'string' },
    rows: { type: 'string', default: '2000' },
    width: { type: 'string' },
    points: { type: 'string', default: '1000' },
    listed: { type: 'string', default: '100' },
    hand: { type: 'string' },
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    threads: { type: 'string' },
    json: { type: 'string' },
    times: { type: 'string' },
    'as-declared': { type: 'boolean', default: false },
  },
})
/** Candidates that are timed again. */
const FINAL = 3

interface Row {
  readonly kernel: string
  readonly data: string
  readonly points: string
  readonly tried: number
  readonly legal: number
  readonly wrong: number
  readonly hand: string
  readonly handMs: number
  /** The kernel without steps, on threads as `parallel()`. */
  readonly plainMs: number
  /** What `compile` runs on these data. */
  readonly chosenMs: number
  readonly guessMs: number
  readonly bestMs: number
  readonly best: readonly string[]
  readonly refused: Readonly<Record<string, number>>
}

async function judge(of: Judged, data: DataSet, device: Device, minutes: number): Promise<Row | undefined> {
  const tensors = tensorsFor(of, data)
  if (!tensors) return undefined
  const program = await load(packageFile(`kernels/${of.file}.spt`))
  const kernel = program.kernel(of.kernel)
  const gpu = device.kind !== 'cpu'
  const width =
    options.width === undefined
      ? {}
      : { ...('d' in of.params && { d: +options.width }), ...('e' in of.params && { e: +options.width }) }
  const params = { ...of.params, ...width, ...(gpu && of.order === 0 ? LARGE : {}) }
  const inputs = { tensors, params }
  const name = of.order === 0 ? 'dense' : data.name
  const small = isTooLong(kernel, inputs, device)
    ? { tensors: tensorsFor(of, excerptOf(data))!, params }
    : null
  const trials = new Trials(device, { kernel, data: name, inputs, small }, options.times)
  const formats = gpu && !options['as-declared'] ? {} : { formats: {} }
  const space = sketches(kernel, { device: device.kind, sizes: sizesOf(params), ...formats })
  const until = performance.now() + minutes * 60_000
  const unasked = kernel.autoSchedule(device, params, tensors)

  const plain = await trials.time('no schedule', () => (gpu ? kernel.parallel() : kernel))
  const hand = [
    ...(plain && !gpu ? [plain] : []),
    ...(await byHand(kernel, device, inputs, trials, Number(options.listed), options.hand?.split(','))),
  ]
  for (const code of Object.keys(trials.refused)) delete trials.refused[code]

  const model = costModel(device.kind) && predictor(kernel, { device: device.kind, inputs })
  console.log(`${of.kernel}: by hand ${hand.map((h) => `${h.name} ${h.ms.toFixed(4)}`).join(', ')}`)
  const limits = {
    until,
    points: Number(options.points),
    seed: Number(options.seed),
    threads: options.threads === undefined ? undefined : Number(options.threads),
  }
  const { tried, found } = await explored(space, trials, limits, model ?? undefined)
  const best = [...found].sort((a, b) => a.ms - b.ms)
  const guess = best.find((c) => c.name === 'guess')
  const chosen = await trials.time('chosen', () => unasked)
  const finalists = [
    ...[...hand].sort((a, b) => a.ms - b.ms).slice(0, FINAL),
    ...best.slice(0, FINAL),
    ...(guess && best.indexOf(guess) >= FINAL ? [guess] : []),
    ...(chosen ? [chosen] : []),
  ]
  const final = await trials.again(finalists)
  const least = (among: readonly Timed[]): Timed | undefined =>
    [...among].filter((c) => final.has(c)).sort((a, b) => final.get(a)! - final.get(b)!)[0]
  const [byHandBest, bySketch] = [least(hand), least(best)]
  const points = count(space)
  return {
    kernel: of.kernel,
    data: name,
    points: points.isExact ? `${points.points}` : `about ${points.points}`,
    tried,
    legal: found.length,
    wrong: trials.wrong,
    hand: byHandBest?.name ?? '',
    plainMs: plain ? plain.ms : Number.NaN,
    handMs: byHandBest ? final.get(byHandBest)! : Number.NaN,
    chosenMs: chosen ? final.get(chosen)! : Number.NaN,
    guessMs: guess ? final.get(guess)! : Number.NaN,
    bestMs: bySketch ? final.get(bySketch)! : Number.NaN,
    best: bySketch?.kernel.trace ?? [],
    refused: { ...trials.refused },
  }
}

/** Coordinates that the reference visits at most to see whether it ends. */
const VISITS = 2 ** 23

/** Whether the reference cannot compute some rows of the results in about a second. */
function isTooLong(kernel: Kernel, inputs: RunInputs, device: Device): boolean {
  try {
    const extent = referenceExtent(
      new Workspace(device, kernel, flatInputs(inputs)[0], { seed: 3 }),
      1,
      VISITS,
    )
    // A single row says little, and takes long to find.
    return extent.sample?.count === 1
  } catch (e) {
    if (e instanceof SptError && e.code === 'search/reference-too-long') return true
    throw e
  }
}

/** Scalars among the parameters are none. */
const sizesOf = (params: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !['alpha', 'scale'].includes(name)))

const device = await (options.device === 'cuda'
  ? devices.cuda()
  : options.device === 'webgpu'
    ? devices.webgpu()
    : devices.cpu())
const wanted = options.kernels?.split(',')
const kernels = JUDGED.filter((k) => !wanted || wanted.includes(k.kernel))
const all = options.data ? await readData(options.data) : synthetic(Number(options.rows))
const names = options.sets?.split(',')
const sets = [
  ...all.filter((d) => !names || names.includes(d.name)),
  ...(names ?? []).filter((name) => name.includes(':')).flatMap(memberSets),
]
const fits = kernels.flatMap((k) => {
  const own = sets.filter((d) => tensorsFor(k, d))
  return (k.order === 0 ? own.slice(0, 1) : own).map((d): readonly [Judged, DataSet] => [k, d])
})
const HEAD = [
  'kernel',
  'data',
  'points',
  'tried',
  'legal',
  'plain ms',
  'by hand',
  'hand ms',
  'guess ms',
  'best ms',
  'plain/hand',
  'guess/hand',
  'chosen/hand',
  'best/hand',
]
const cells = (r: Row): (string | number)[] => [
  r.kernel,
  r.data,
  r.points,
  `${r.tried}`,
  (r.legal / r.tried).toFixed(2),
  r.plainMs.toFixed(4),
  r.hand,
  r.handMs.toFixed(4),
  r.guessMs.toFixed(4),
  r.bestMs.toFixed(4),
  r.plainMs / r.handMs,
  r.guessMs / r.handMs,
  r.chosenMs / r.handMs,
  r.bestMs / r.handMs,
]
const rows: Row[] = []
for (const [of, data] of fits) {
  let row: Row | undefined
  try {
    row = await judge(of, data, device, Number(options.minutes) / fits.length)
  } catch (error) {
    console.log(`${of.kernel} on ${data.name}: ${error instanceof Error ? error.message : error}`)
  }
  if (!row) continue
  rows.push(row)
  const refused = Object.entries(row.refused).map(([code, n]) => `${code} ${n}`)
  console.log(table(HEAD, [cells(row)]))
  console.log(`  ${row.best.join('; ')}${refused.length > 0 ? `\n  refused: ${refused.join(', ')}` : ''}`)
  writeJson(rows)
}
console.log(device.name)
if (rows.length > 1) console.log(table(HEAD, rows.map(cells)))
process.exit(rows.some((r) => r.wrong > 0) ? 1 : 0)
