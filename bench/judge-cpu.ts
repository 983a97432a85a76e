/**
 * The cost model on cpu, judged on schedules that were measured there: of each case some points of the kernel's space for cpu
 * and of its sketches, and what runs unasked, interleaved.
 *
 * ```
 * node dist/bench/judge-cpu.js --out times.jsonl [--data FOLDER] [--matrices road:4000:1,cora] [--minutes 10] [--share K/N]
 * node dist/bench/judge-cpu.js [--measured FILE.jsonl.gz] [--data FOLDER] [--model FILE.json] [--fit FILE.json]
 * ```
 * The first measures, appends lines of JSON and goes on where it stopped. The second prints what share of the best time is reached by
 * the choice of the package's model, or that of FILE (`spt calibrate --out FILE`), and by what runs unasked; with
 * `--fit`, after its coefficients were fitted to what was measured of generated families, which FILE then holds.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { expectedTime, fitCoefficients, learnableNames } from '../src/cost-model/learned/fitting.ts'
import type { CostModel } from '../src/cost-model/learned/model.ts'
import { packagedModel } from '../src/cost-model/learned/trained-models.ts'
import { chipOf } from '../src/io/package/calibrations.ts'
import { devices } from '../src/node.ts'
import { Random } from '../src/run/bind/sources/random-tensors.ts'
import { measureRounds, predictor, samplePoint } from '../src/search.ts'
import { FAMILIES } from './families.ts'
import { type Csr, describe, sources } from './gpu/matrix.ts'
import {
  caseOf,
  judgement,
  type Problem,
  problemOf,
  spacesOf,
  type Timing,
  type Told,
  told,
  UNASKED,
  unaskedOf,
  underSchedule,
} from './model/processor.ts'
import { linesIn, linesOf } from './model/records.ts'
import { count, option, table } from './support.ts'

/** Kernels with their widths. */
const SUITES: readonly (readonly [kernel: string, widths: readonly number[]])[] = [
  ['spmm', [8, 32, 128]],
  ['spmv', [1]],
  ['sddmm', [16, 64]],
  ['softmax', [1]],
]
const MATRICES = [...Object.keys(FAMILIES).map((f) => `${f}:5000:3`), 'cora']
/** Of each space. */
const POINTS = count('points', 18)
/**
 * Runs before the first that counts, while code is compiled; and samples of all alike: of copies of one kernel, in one process or
 * in several, the least of so many are within 0.01 of each other, even where other processes take a third of the time.
 */
const WARMUPS = 5
const ROUNDS = 30
/** What is expected to take so many times the least is not measured: it would take most of the time. */
const FAR = 4
/** Elements times width: what takes longer says nothing else. */
const MOST = 4e7

/** What runs unasked, and points that are the same for all matrices, where they are points there. */
async function schedulesOf(problem: Problem, width: number): Promise<string[]> {
  const out = new Set([await unaskedOf(problem)])
  const random = new Random(7 + width)
  for (const { prefix, space } of await spacesOf(problem)) {
    const most = out.size + POINTS
    for (let tries = 0; tries < 10 * POINTS && out.size < most; tries++) {
      const point = samplePoint(space, () => random.next())
      if (point) out.add(`${prefix}${JSON.stringify(point)}`)
    }
  }
  return [...out]
}

const refusal = (e: unknown): string => (e instanceof Error ? e.message : String(e)).split('\n')[0]!

async function measured(name: string, A: Csr, width: number): Promise<Timing[]> {
  const cpu = await devices.cpu()
  const problem = await problemOf(name, A, width)
  const ready = []
  const { kernel, tensors, params } = problem
  const predict = predictor(kernel, { device: 'cpu', inputs: { tensors, params } })
  const times = new Map<string, number>()
  for (const schedule of await schedulesOf(problem, width))
    times.set(schedule, predict(await underSchedule(problem, schedule)).milliseconds)
  const most = FAR * Math.min(...times.values())
  for (const [schedule, expected] of times)
    try {
      if (expected > most && !schedule.startsWith(UNASKED)) continue
      const compiled = await (await underSchedule(problem, schedule)).build(cpu, { auto: false })
      const prepared = await compiled.bind({ ...problem.tensors, ...problem.params }, { seed: 1 })
      ready.push({ schedule, compiled, prepared })
    } catch (e) {
      console.log(`  ${schedule}: ${refusal(e)}`)
    }
  const seconds = Number(option('seconds') ?? 12)
  const { outcomes } = await measureRounds(
    cpu,
    ready.map((r) => r.prepared),
    { rounds: ROUNDS, seconds, warmups: WARMUPS, sampleMs: 0.1, width: 0, all: true, reference: null },
  )
  for (const r of ready) {
    r.prepared.free()
    r.compiled.release()
  }
  const chip = chipOf(cpu).name
  return ready.flatMap(({ schedule }, k) => {
    const o = outcomes[k]!
    if (o.status !== 'measured') return []
    // The least: what else the machine does only adds to it (but for drift, which is not looked at).
    const milliseconds = Number(Math.min(...o.timing.samples).toPrecision(5))
    return [{ chip, kernel: name, data: A.name, width, schedule, milliseconds }]
  })
}

const matrices = (names: readonly string[]) => sources(option('data') ?? 'data', names, false).found

async function collect(out: string): Promise<void> {
  const done = new Set(linesOf<Timing>(out).map(caseOf))
  const end = performance.now() + 60_000 * Number(option('minutes') ?? 10)
  const [share = 0, shares = 1] = (option('share') ?? '0/1').split('/').map(Number)
  const names = (option('matrices')?.split(',') ?? MATRICES).filter((_, k) => k % shares === share)
  for (const source of matrices(names)) {
    if (performance.now() > end) return
    const A = await source.read()
    console.log(describe(A))
    for (const [kernel, widths] of SUITES)
      for (const width of widths) {
        if (performance.now() > end) return
        if (done.has(caseOf({ kernel, data: A.name, width })) || A.indices.length * width > MOST) continue
        const times = await measured(kernel, A, width)
        appendFileSync(out, times.map((t) => `${JSON.stringify(t)}\n`).join(''))
      }
  }
}

async function judge(path: string): Promise<void> {
  const timings = linesIn<Timing>(gunzipSync(readFileSync(path)).toString())
  const given = option('model')
  let model =
    given === undefined ? packagedModel('cpu') : (JSON.parse(readFileSync(given, 'utf8')) as CostModel)
  if (!model) throw new Error('the package has no model for cpu')
  const all: Told[] = []
  const drawn = (t: Timing): boolean => t.data.split(':')[0]! in FAMILIES
  const known = timings.filter((t) => option('data') !== undefined || drawn(t) || t.data === 'cora')
  for (const source of matrices([...new Set(known.map((t) => t.data))]))
    all.push(
      ...(await told(
        await source.read(),
        known.filter((t) => t.data === source.name),
      )),
    )
  const fit = option('fit')
  if (fit !== undefined) {
    const { coefficients, error } = fitCoefficients(all.filter(drawn), model.coefficients, {
      names: learnableNames(model.coefficients),
    })
    console.log(`fitted: ${(100 * (Math.exp(error) - 1)).toFixed(0)} % off on average`)
    model = { ...model, chip: all[0]!.chip, coefficients }
    writeFileSync(fit, `${JSON.stringify(model)}\n`)
  }
  const { coefficients } = model
  const head = ['kernel', 'cases', 'chosen', 'worst', 'unasked', 'worst', 'Spearman']
  console.log(
    table(
      head,
      judgement(all, (t) => expectedTime(t.terms, coefficients)),
    ),
  )
}

const out = option('out')
if (out !== undefined) await collect(out)
else await judge(option('measured') ?? 'bench/model/measured/h100-host-cpu.jsonl.gz')
