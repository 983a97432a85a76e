/**
 * Measures its share of a case's kernels: applied, compiled and brought into their formats beside others that do the same,
 * compared with the reference and timed while no other does.
 */
import type { CompiledSchedule, PreparedKernel } from '../../src/api/compiled.ts'
import { devices, type Kernel, load, SptError, Workspace } from '../../src/node.ts'
import { Random } from '../../src/run/bind/random-tensors.ts'
import type { Device } from '../../src/runtime/device.ts'
import { Evaluator } from '../../src/search/evaluate/evaluator.ts'
import { type Extent, referenceExtent } from '../../src/search/evaluate/reference-extent.ts'
import type { KernelSpace, Point } from '../../src/search/types.ts'
import {
  costModel,
  deviceIdentity,
  draw,
  libraryRoutines,
  pointKey,
  predictor,
  withDeviceLock,
} from '../../src/search.ts'
import { fieldOf, widthValues } from '../gpu/candidates.ts'
import { inputs as inputsOf, structured } from '../gpu/declared.ts'
import { sources } from '../gpu/matrix.ts'
import { messageOf } from '../gpu/ours.ts'
import { summary } from '../model/records.ts'
import { settled } from '../model/timed.ts'
import { median, packageFile } from '../support.ts'
import type { Answer, SearchCase, Task, Tried } from './case.ts'

/** Of so many drawn points, the likeliest are measured. */
const DRAWN_FOR_EACH = 3
/** Of the points of the space, those that the model expects most of, and those that chance picks. */
const LIKELY = 0.5
/** What takes so much longer than the fastest of this process is known well enough after three runs. */
const FAR = 2.5
/** Microseconds of work before samples count. */
const WARM = 5000
const REPEATS = 15
/** Coordinates that the reference visits. */
const VISITS = 2 ** 21

interface Candidate {
  readonly of: Tried['of']
  readonly text: string
  readonly point?: Point
  readonly predicted?: number | undefined
  compile(): Promise<CompiledSchedule>
}

type Timing = Pick<Tried, 'median' | 'low' | 'high' | 'samples'>

class CaseBench {
  readonly #case: SearchCase
  readonly #device: Device
  readonly #kernel: Kernel
  readonly #inputs: ConstructorParameters<typeof Workspace>[2]
  readonly #space: KernelSpace<Kernel>
  readonly #data: Workspace
  readonly #evaluator: Evaluator
  readonly #extent: Extent
  readonly #predict: (k: Kernel) => number | undefined
  #fastest = Number.POSITIVE_INFINITY
  /** Holds the arrays that all have in common, so that they are brought to the device once. */
  #anchor: Promise<PreparedKernel> | undefined

  private constructor(
    of: SearchCase,
    device: Device,
    kernel: Kernel,
    inputs: ConstructorParameters<typeof Workspace>[2],
    space: KernelSpace<Kernel>,
  ) {
    this.#case = of
    this.#device = device
    this.#kernel = kernel
    this.#inputs = inputs
    this.#space = space
    this.#data = new Workspace(device, kernel, inputs, { shareOutputs: true })
    this.#extent = referenceExtent(this.#data, 1, VISITS)
    this.#evaluator = new Evaluator({ space, kernel, inputs, device, timeout: 8000 })
    const model = costModel(device.kind) && predictor(kernel, { device: device.kind, inputs })
    this.#predict = (k) => {
      try {
        return model ? model(k).milliseconds : undefined
      } catch {
        return undefined
      }
    }
  }

  static async open(of: SearchCase, device: Device, folder: string): Promise<CaseBench> {
    const [source] = sources(folder, [of.data], false).found
    const A = await source!.read()
    const kernel = (await load(packageFile(`kernels/${of.suite}.spt`))).kernel(of.suite)
    const first = inputsOf(kernel.source)[0]!.name
    const tensors = { [first]: structured(kernel.source, [A.rows, A.columns], A, A.values, 'f32') }
    const params = kernel.source.params.some((p) => p.name === 'd') ? { d: of.width } : {}
    const inputs = { tensors, params, seed: 1 }
    const space = await kernel.space(device.kind === 'cpu' ? 'cpu_space' : 'gpu_space').on(device, inputs)
    return new CaseBench(of, device, kernel, inputs, space)
  }

  async close(): Promise<void> {
    ;(await this.#anchor)?.free()
    this.#evaluator.close()
  }

  get #head(): Pick<Tried, 'device' | 'chip' | 'suite' | 'data' | 'width'> {
    return { device: this.#device.kind, chip: this.#device.name, ...this.#case }
  }

  #own(
    of: Tried['of'],
    text: string,
    kernel: Kernel,
    more: Pick<Candidate, 'point' | 'predicted'> = {},
  ): Candidate {
    return { of, text, ...more, compile: () => this.#evaluator.compiled(kernel) }
  }

  #called(name: string, args: readonly number[]): string {
    const { suite } = this.#case
    return `${suite}.spt:${suite}.${name}${args.length > 0 ? `(${args.join(',')})` : ''}`
  }

  #textOf(point: Point): string {
    const call = this.#space.call?.(point)
    return call ? this.#called(call.name, call.args) : `${this.#space.name}.spt:${pointKey(point)}`
  }

  /** What runs unasked, and libraries. */
  async others(): Promise<Candidate[]> {
    const { routines, absent } = libraryRoutines(this.#kernel, this.#device)
    for (const a of absent) say(a.why)
    const libraries = routines.map(
      (r): Candidate => ({ of: 'library', text: r.name, compile: () => r.compile() }),
    )
    if (this.#kernel.choice === null) return libraries
    const { kernel, chosen } = await this.#kernel.choose(this.#device, this.#inputs)
    const predicted = this.#predict(kernel)
    return [
      ...libraries,
      this.#own('chosen', this.#called(chosen.schedule, chosen.args), kernel, { predicted }),
    ]
  }

  /** By hand. */
  listed(): Candidate[] {
    const { suite, width } = this.#case
    if (this.#device.kind === 'cpu') return []
    return fieldOf(suite, [], widthValues(width)).candidates.flatMap((c) => {
      if (c.kernel !== suite || this.#kernel.choices.includes(c.schedule)) return []
      try {
        const kernel = this.#kernel.schedule(c.schedule, ...c.args)
        const predicted = this.#predict(kernel)
        return [this.#own('listed', this.#called(c.schedule, c.args), kernel, { predicted })]
      } catch {
        return []
      }
    })
  }

  /** Of the space: the likeliest of many, and as many that chance picks. */
  drawn(count: number, random: Random, until: number): Candidate[] {
    const all = new Map<string, Candidate>()
    for (let k = 0; k < DRAWN_FOR_EACH * count && Date.now() < until; k++) {
      const point = draw(this.#space, () => random.next())
      if (!point) break
      const text = this.#textOf(point)
      if (all.has(text)) continue
      try {
        const kernel = this.#space.kernel(point)
        all.set(text, this.#own('drawn', text, kernel, { point, predicted: this.#predict(kernel) }))
      } catch (e) {
        if (!(e instanceof SptError)) throw e
      }
    }
    const list = [...all.values()]
    const expected = (c: Candidate): number => c.predicted ?? Number.POSITIVE_INFINITY
    const likely = [...list]
      .sort((a, b) => expected(a) - expected(b))
      .slice(0, Math.floor(LIKELY * count))
      .map((c): Candidate => ({ ...c, of: 'likely' }))
    const known = new Set(likely.map((c) => c.text))
    const others = list.filter((c) => !known.has(c.text)).slice(0, count - likely.length)
    // In turns: a case that ends early has some of each.
    return Array.from({ length: Math.max(likely.length, others.length) }, (_, k) => [likely[k], others[k]])
      .flat()
      .filter((c) => c !== undefined)
  }

  async measure(candidate: Candidate): Promise<Tried> {
    const { of, text, point, predicted } = candidate
    const head = {
      ...this.#head,
      candidate: text,
      of,
      ...(point && { point }),
      ...(predicted !== undefined && { predicted }),
    }
    let compiled: CompiledSchedule | undefined
    try {
      compiled = await candidate.compile()
      this.#data.bind(compiled)
      const ready = compiled
      const timing = await withDeviceLock(deviceIdentity(this.#device), () => this.#timed(ready))
      return 'wrong' in timing
        ? { ...head, status: 'wrong', note: timing.wrong }
        : { ...head, status: 'ok', ...timing }
    } catch (error) {
      if (error instanceof SptError && ['device/lost', 'device/fault'].includes(error.diagnostics[0]!.code)) {
        answer({ kind: 'tried', tried: { ...head, status: 'failed', note: messageOf(error) } })
        process.exit(75)
      }
      return { ...head, status: 'failed', note: messageOf(error) }
    } finally {
      compiled?.release()
    }
  }

  async #timed(compiled: CompiledSchedule): Promise<Timing | { readonly wrong: string }> {
    this.#anchor ??= this.#evaluator.compiled(this.#kernel).then((k) => this.#data.prepare(k))
    await this.#anchor
    const prepared = await this.#data.prepare(compiled)
    try {
      const { ok, problems } = await prepared.verifyAgainst(this.#data.expected(this.#extent))
      if (!ok) return { wrong: problems[0] ?? 'differs' }
      const samples = async (options: Parameters<typeof prepared.measure>[0]): Promise<readonly number[]> =>
        (await prepared.measure(options)).times.map((t) => 1000 * t)
      const scouted = await samples({ warmups: 2, repeats: 3 })
      const once = median(scouted)
      if (once > FAR * this.#fastest) return summary(scouted)
      await samples({ warmups: 0, repeats: 1, batch: Math.min(256, Math.max(1, Math.ceil(WARM / once))) })
      const times = summary(await samples({ warmups: 2, repeats: REPEATS }))
      this.#fastest = Math.min(this.#fastest, times.median!)
      return times
    } finally {
      prepared.free()
    }
  }

  /** In rounds until two agree, one after the other and again in the other order: the least of both. */
  async finals(of: readonly Tried[], make: (t: Tried) => Promise<CompiledSchedule>): Promise<Tried[]> {
    const prepared = []
    for (const t of of) {
      const compiled = await make(t)
      prepared.push({ t, compiled, prepared: await this.#data.prepare(compiled) })
    }
    const times = new Map<Tried, number>()
    for (const order of [prepared, [...prepared].reverse()])
      for (const { t, prepared: p } of order) {
        const round = await settled(async () => {
          await p.measure({
            warmups: 0,
            repeats: 1,
            batch: Math.min(512, Math.max(1, Math.ceil((4 * WARM) / t.median!))),
          })
          return (await p.measure({ warmups: 3, repeats: REPEATS })).times.map((x) => 1000 * x)
        })
        times.set(t, Math.min(times.get(t) ?? Number.POSITIVE_INFINITY, median(round)))
      }
    for (const p of prepared) {
      p.prepared.free()
      p.compiled.release()
    }
    return of.map((t) => ({ ...t, median: times.get(t)!, isFinal: true }))
  }

  /** What a line was measured of. */
  async again(t: Tried): Promise<CompiledSchedule> {
    if (t.of === 'library') {
      const routine = libraryRoutines(this.#kernel, this.#device).routines.find((r) => r.name === t.candidate)
      return routine!.compile()
    }
    if (t.point) return this.#evaluator.compiled(this.#space.kernel(t.point))
    const [, name = '', list] = /\.spt:\w+\.(\w+)(?:\((.*)\))?$/.exec(t.candidate) ?? []
    const args = list ? list.split(',').map(Number) : []
    return this.#evaluator.compiled(this.#kernel.schedule(name, ...args))
  }
}

const answer = (a: Answer): void => void process.send!(a)
const say = (text: string): void => answer({ kind: 'said', text })

const [kind, folder = 'data', which = '0', all = '1'] = process.argv.slice(2)
const device = await devices[kind as 'cpu' | 'cuda']()
let bench: { readonly of: string; readonly at: CaseBench } | undefined

async function benchOf(of: SearchCase): Promise<CaseBench> {
  const key = JSON.stringify(of)
  if (bench?.of !== key) {
    await bench?.at.close()
    bench = undefined
    bench = { of: key, at: await CaseBench.open(of, device, folder) }
  }
  return bench.at
}

/** The same draws in every run. */
const seedOf = (text: string): number =>
  [...text].reduce((h, c) => (Math.imul(h, 31) + c.charCodeAt(0)) | 0, 7) >>> 0

async function work(task: Task): Promise<void> {
  const at = await benchOf(task.case)
  if (task.kind === 'finals') {
    const tried = await withDeviceLock(deviceIdentity(device), () => at.finals(task.of, (t) => at.again(t)))
    for (const t of tried) answer({ kind: 'tried', tried: t })
    return
  }
  const [me, workers] = [Number(which), Number(all)]
  const listed = at.listed().filter((_, k) => k % workers === me)
  const first = me === 0 ? await at.others() : []
  const known = new Set(task.known)
  const each = async (list: readonly Candidate[]): Promise<void> => {
    for (const c of list) {
      if (Date.now() > task.until) return
      if (known.has(c.text) && c.of !== 'chosen') continue
      known.add(c.text)
      answer({ kind: 'tried', tried: await at.measure(c) })
    }
  }
  await each([...first, ...listed])
  const random = new Random(seedOf(`${task.case.suite} ${task.case.data} ${task.case.width} ${me}`))
  await each(at.drawn(Math.ceil(task.points / workers), random, task.until - 2000))
}

process.on('message', (task: Task) => {
  void work(task)
    .catch((e: unknown) => say(messageOf(e)))
    .then(() => answer({ kind: 'done' }))
})
process.on('disconnect', () => process.exit(0))
