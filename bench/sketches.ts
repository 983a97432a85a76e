/**
 * Whether the auto-scheduler's spaces contain what schedules by hand reach: for each kernel the best point of its space that
 * was found in the time given, the best guess without measuring, and the best schedule by hand, in one process.
 *
 *   node dist/bench/sketches.js [--device cpu|cuda|webgpu] [--kernels A,B] [--data FOLDER] [--sets A,B] [--rows N]
 *     [--width D] [--points N] [--listed N] [--minutes M] [--seed N] [--json PATH]
 *
 * The time is shared out among the kernels; a row is printed, and `--json` written, as each is done, and several processes
 * (`--kernels`) use the device in turn. Points are drawn at random, every other one as the likeliest of many where there is a
 * cost model, and from half of their number on as neighbours of the best. By hand: the schedules of the package that need no
 * arguments, its choices, and what `candidates.json` lists. A point whose result differs from the reference is reported, and makes the process end
 * with 1. The best of each are timed again, interleaved.
 */
import { parseArgs } from 'node:util'
import {
  type Device,
  devices,
  type Kernel,
  load,
  type PreparedKernel,
  SptError,
  Workspace,
} from '../src/node.ts'
import { Random } from '../src/run/bind/random-tensors.ts'
import { type Extent, referenceExtent } from '../src/search/evaluate/reference-extent.ts'
import { count, draw, neighbours, pointKey } from '../src/search/points.ts'
import { type SketchSpace, sketches } from '../src/search/sketches.ts'
import type { Point } from '../src/search/types.ts'
import {
  costModel,
  costPrior,
  deviceIdentity,
  type Prediction,
  predictor,
  withDeviceLock,
} from '../src/search.ts'
import { contest } from './contest.ts'
import { type Candidate, fieldOf, widthValues } from './gpu/candidates.ts'
import { JUDGED, type Judged, LARGE, synthetic, tensorsFor } from './sketches/judged.ts'
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
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: '1' },
    json: { type: 'string' },
  },
})
/** Candidates that are timed again. */
const FINAL = 3
const ROUNDS = 15

interface Timed {
  readonly name: string
  readonly kernel: Kernel
  /** Milliseconds, the least of some runs. */
  readonly ms: number
}

interface Row {
  readonly kernel: string
  readonly data: string
  readonly points: string
  readonly tried: number
  readonly legal: number
  readonly wrong: number
  readonly hand: string
  readonly handMs: number
  /** The kernel without steps. */
  readonly plainMs: number
  readonly guessMs: number
  readonly bestMs: number
  readonly best: readonly string[]
  readonly refused: Readonly<Record<string, number>>
}

/** Processes beside this one have the device in turn. */
const alone = <T>(device: Device, work: () => Promise<T>): Promise<T> =>
  withDeviceLock(deviceIdentity(device), work)

/** Milliseconds of a run beyond which it is not repeated. */
const LONG = 50

class Trials {
  readonly #data: Workspace
  readonly #extent: Extent
  wrong = 0
  readonly refused: Record<string, number> = {}

  constructor(data: Workspace) {
    this.#data = data
    this.#extent = referenceExtent(data, 1)
  }

  async prepare(kernel: Kernel): Promise<PreparedKernel> {
    return this.#data.prepare(await kernel.compileAsIs(this.#data.device))
  }

  /** Nothing where it is refused or wrong. */
  async time(name: string, make: () => Kernel, repeats: number): Promise<Timed | undefined> {
    try {
      const kernel = make()
      const compiled = await kernel.compileAsIs(this.#data.device)
      this.#data.bind(compiled)
      return await alone(this.#data.device, async () => {
        const prepared = await this.#data.prepare(compiled)
        try {
          const { ok, problems } = await prepared.verifyAgainst(this.#data.expected(this.#extent))
          if (!ok) {
            this.wrong++
            console.error(`WRONG ${name}: ${problems[0]}\n  ${kernel.trace.join('\n  ')}`)
            return undefined
          }
          const [once = 0] = await prepared.time(1)
          const more = once > LONG ? [] : await prepared.time(repeats)
          return { name, kernel, ms: Math.min(once, ...more) }
        } finally {
          prepared.free()
        }
      })
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      const { code } = e.diagnostics[0]!
      this.refused[code] = (this.refused[code] ?? 0) + 1
      return undefined
    }
  }
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
  const trials = new Trials(
    new Workspace(device, kernel, { tensors, params, seed: 3 }, { shareOutputs: true }),
  )
  const space = sketches(kernel, {
    device: device.kind,
    sizes: sizesOf(params),
    formats: gpu ? of.formats : {},
  })
  const repeats = gpu ? 30 : 7
  const until = performance.now() + minutes * 60_000

  // On threads it may be all on one of them, which takes minutes.
  const plain = gpu ? undefined : await trials.time('no schedule', () => kernel, repeats)
  const hand: Timed[] = plain ? [plain] : []
  for (const name of kernel.schedules) {
    if (kernel.parameters(name).some((p) => p.required) || (gpu ? name === 'cpu' : name !== 'cpu')) continue
    const timed = await trials.time(name, () => kernel.schedule(name), repeats)
    if (timed) hand.push(timed)
  }
  for (const name of kernel.choices) {
    if (!gpu || kernel.parameters(name).some((p) => p.required)) continue
    const { kernel: chosen } = await kernel.schedule(name).choose(device, { tensors, params })
    const timed = await trials.time(name, () => chosen, repeats)
    if (timed) hand.push(timed)
  }
  for (const c of gpu ? listed(of.kernel, params).slice(0, Number(options.listed)) : []) {
    const timed = await trials.time(c.text, () => kernel.schedule(c.schedule, ...c.args), repeats)
    if (timed) hand.push(timed)
  }
  for (const code of Object.keys(trials.refused)) delete trials.refused[code]

  const model =
    costModel(device.kind) && predictor(kernel, { device: device.kind, inputs: { tensors, params } })
  console.log(`${of.kernel}: by hand ${hand.map((h) => `${h.name} ${h.ms.toFixed(4)}`).join(', ')}`)
  const { tried, found } = await search(space, trials, until, repeats, model ?? undefined)
  const best = [...found].sort((a, b) => a.ms - b.ms)
  const guess = best.find((c) => c.name === 'guess')
  const finalists = [
    ...[...hand].sort((a, b) => a.ms - b.ms).slice(0, FINAL),
    ...best.slice(0, FINAL),
    ...(guess && best.indexOf(guess) >= FINAL ? [guess] : []),
  ]
  const final = await alone(device, () => again(finalists, trials, gpu))
  const least = (among: readonly Timed[]): Timed | undefined =>
    [...among].filter((c) => final.has(c)).sort((a, b) => final.get(a)! - final.get(b)!)[0]
  const [byHand, bySketch] = [least(hand), least(best)]
  const points = count(space)
  return {
    kernel: of.kernel,
    data: of.order === 0 ? 'dense' : data.name,
    points: points.isExact ? `${points.points}` : `> ${points.points}`,
    tried,
    legal: found.length,
    wrong: trials.wrong,
    hand: byHand?.name ?? '',
    plainMs: plain ? plain.ms : Number.NaN,
    handMs: byHand ? final.get(byHand)! : Number.NaN,
    guessMs: guess ? final.get(guess)! : Number.NaN,
    bestMs: bySketch ? final.get(bySketch)! : Number.NaN,
    best: bySketch?.kernel.trace ?? [],
    refused: { ...trials.refused },
  }
}

/** What `candidates.json` has for the kernel, by its own schedules. */
function listed(kernel: string, { d = 32 }: Readonly<Record<string, number>>): readonly Candidate[] {
  try {
    return fieldOf(kernel, [], widthValues(d)).candidates.filter(
      (c) => c.kernel === kernel && c.schedule !== 'auto' && c.args.length > 0,
    )
  } catch {
    return []
  }
}

/** Scalars among the parameters are none. */
const sizesOf = (params: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(params).filter(([name]) => !['alpha', 'scale'].includes(name)))

async function search(
  space: SketchSpace,
  trials: Trials,
  until: number,
  repeats: number,
  model: ((k: Kernel) => Prediction) | undefined,
): Promise<{ readonly tried: number; readonly found: readonly Timed[] }> {
  const random = new Random(Number(options.seed))
  const seen = new Set<string>()
  const found: { candidate: Timed; point: Point }[] = []
  const most = Number(options.points)
  const start = performance.now()
  const attempt = async (name: string, point: Point): Promise<void> => {
    if (seen.has(pointKey(point))) return
    seen.add(pointKey(point))
    const candidate = await trials.time(name, () => space.kernel(point), repeats)
    if (candidate) found.push({ candidate, point })
    if (name === 'guess') console.log(`${space.name}: guess ${candidate?.ms.toFixed(4)} ms`)
  }
  await attempt('guess', space.guess)
  const likely = model ? likeliest(space, model, () => random.next()) : []
  for (let idle = 0; seen.size < most && performance.now() < until && idle < 100; ) {
    const before = seen.size
    const late = performance.now() - start > (until - start) / 2 || seen.size > most / 2
    const best = [...found].sort((a, b) => a.candidate.ms - b.candidate.ms).slice(0, 4)
    const near = late ? best.flatMap(({ point }) => neighbours(space, point)) : []
    const fresh = near.find((p) => !seen.has(pointKey(p)))
    const next = seen.size % 2 === 0 ? likely.shift() : undefined
    const point = fresh ?? next ?? draw(space, () => random.next())
    if (!point) break
    await attempt(pointKey(point), point)
    idle = seen.size > before ? 0 : idle + 1
  }
  return { tried: seen.size, found: found.map((f) => f.candidate) }
}

/** Points that are drawn, those first of which the model expects most. */
const DRAWN = 120

function likeliest(space: SketchSpace, model: (k: Kernel) => Prediction, random: () => number): Point[] {
  const drawn = Array.from({ length: DRAWN }, () => draw(space, random)).filter((p) => p !== null)
  const all = [...new Map(drawn.map((p) => [pointKey(p), p])).values()]
  const expected = costPrior(space, model)(all)
  return all
    .map((point, k) => ({ point, ms: expected[k]! }))
    .filter(({ ms }) => Number.isFinite(ms))
    .sort((a, b) => a.ms - b.ms)
    .map(({ point }) => point)
}

/** Milliseconds of each, the least of interleaved runs. */
async function again(
  of: readonly Timed[],
  trials: Trials,
  gpu: boolean,
): Promise<ReadonlyMap<Timed, number>> {
  const prepared = await Promise.all(of.map((c) => trials.prepare(c.kernel)))
  const runs = prepared.map((p) => async () => {
    if (!gpu) return Math.min(...(await p.time(1)))
    return Math.min(...(await p.measure({ warmups: 2, repeats: 10, batch: 10 })).times)
  })
  const timed = await contest(Object.fromEntries(runs.map((r, k) => [`${k}`, r])), ROUNDS)
  for (const p of prepared) p.free()
  return new Map(of.map((c, k) => [c, timed[k]!.best]))
}

const device = await (options.device === 'cuda'
  ? devices.cuda()
  : options.device === 'webgpu'
    ? devices.webgpu()
    : devices.cpu())
const wanted = options.kernels?.split(',')
const kernels = JUDGED.filter((k) => !wanted || wanted.includes(k.kernel))
const all = options.data ? await readData(options.data) : synthetic(Number(options.rows))
const sets = all.filter((d) => !options.sets || options.sets.split(',').includes(d.name))
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
  'guess/hand',
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
  r.guessMs / r.handMs,
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
