/** What a run of suites shares: devices, libraries, matrices, time. Each is opened when first asked for. */
import { fail, SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { writeFile } from '../../src/io/node-files.ts'
import { devices } from '../../src/node.ts'
import { type Ceilings, ceilingsOf } from '../../src/run/explain/roofline.ts'
import type { CudaDevice } from '../../src/runtime/cuda/index.ts'
import { CuBlas } from '../peers/cublas.ts'
import { CuSparse } from '../peers/cusparse.ts'
import type { PythonResult } from '../peers/python.ts'
import { PeerStream } from '../peers/stream.ts'
import type { Case } from './case.ts'
import type { State } from './loss.ts'
import { type Csr, type Source, sources } from './matrix.ts'
import { matricesOf } from './named.ts'
import { messageOf, OurDevice } from './ours.ts'
import type { Preparation } from './preparation.ts'
import { line, progressText } from './report.ts'

export interface LayersAsked {
  /** Shares of zeros; each suite has its own where none are asked for. */
  readonly sparsities?: readonly number[]
  /** Whether the sparsity is looked for from which on pruned layers are faster. */
  readonly breakEven: boolean
  readonly on: 'cuda' | 'webgpu'
}

export interface Options {
  readonly data: string
  readonly quick: boolean
  readonly minutes: number
  readonly json: string | undefined
  readonly schedules: readonly string[]
  readonly matrices: readonly string[]
  readonly widths: readonly number[]
  /** What is asked of pruned layers. */
  readonly layers?: LayersAsked
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  /** Arguments for Node that run the same again: to go on after a fault. Without them a fault ends the run. */
  readonly again?: readonly string[]
}

/** What is opened once; a failure to open is remembered as its reason. */
class Once<T> {
  readonly #open: () => Promise<T>
  #value: Promise<T> | undefined

  constructor(open: () => Promise<T>) {
    this.#open = open
  }

  get(): Promise<T> {
    this.#value ??= this.#open()
    return this.#value
  }

  /** The value where it has been opened. */
  async opened(): Promise<T | undefined> {
    return this.#value?.catch(() => undefined)
  }
}

export class Session {
  readonly options: Options
  readonly cases: Case[] = []
  readonly libraries: Record<string, string> = {}
  readonly culprits = new Map<string, string>()
  /** Results of the Python peers, once they have run. */
  python: readonly PythonResult[] | null = null
  readonly #earlier: readonly Preparation[]
  readonly #start: number
  /** By name; `null`: the file holds no sparse matrix. */
  readonly #matrices = new Map<string, Promise<Csr | null>>()
  readonly #cuda = new Once(async () => {
    const device = new OurDevice(await devices.cuda())
    this.#chip = device.device.name
    return device
  })
  readonly #webgpu = new Once(async () => new OurDevice(await devices.webgpu()))
  readonly #stream = new Once(async () => {
    // Our device first: it tells what is missing in its own words.
    await this.cuda()
    return PeerStream.open()
  })
  readonly #cusparse = new Once(async () => {
    const library = new CuSparse(await this.stream())
    this.libraries.cuSPARSE = String(library.version)
    return library
  })
  readonly #cublas = new Once(async () => {
    const library = new CuBlas(await this.stream())
    this.libraries.cuBLAS = String(library.version)
    return library
  })
  #chip = ''

  constructor(options: Options, before: State | undefined) {
    this.options = options
    this.#start = performance.now() - (before?.milliseconds ?? 0)
    this.#earlier = before?.preparations ?? []
    this.cases.push(...(before?.cases ?? []))
    this.python = before?.python ?? null
    Object.assign(this.libraries, before?.libraries)
    for (const [name, what] of before?.culprits ?? []) this.culprits.set(name, what)
  }

  /** What a process needs that goes on from here. */
  async state(): Promise<State> {
    return {
      cases: this.cases,
      preparations: await this.preparations(),
      python: this.python,
      culprits: [...this.culprits],
      libraries: this.libraries,
      milliseconds: performance.now() - this.#start,
    }
  }

  /** Whether an earlier process has done the case. */
  has(suite: string, data: string, at: string): boolean {
    return this.cases.some((c) => c.suite === suite && c.data === data && c.at === at)
  }

  readonly cuda = (): Promise<OurDevice> => this.#cuda.get()
  readonly webgpu = (): Promise<OurDevice> => this.#webgpu.get()
  readonly stream = (): Promise<PeerStream> => this.#stream.get()
  readonly cusparse = (): Promise<CuSparse> => this.#cusparse.get()
  readonly cublas = (): Promise<CuBlas> => this.#cublas.get()

  get ceilings(): Ceilings | undefined {
    return ceilingsOf('cuda', this.#chip)
  }

  get chip(): CudaDevice['name'] {
    return this.#chip
  }

  /** The suite that runs, and cases that there was no time for: `spmm cora`. */
  suite = ''
  readonly unmeasured: string[] = []

  /** Notes what there is no time for. */
  leave(what: string): void {
    this.unmeasured.push(`${this.suite} ${what}`.trim())
  }

  /** Whether the time is up. */
  readonly late = (): boolean => performance.now() - this.#start > 60_000 * this.options.minutes

  /**
   * Matrices that were asked for and are there, while there is time; of these `only` the one of that name. What is not
   * there is said, and once which files are left out because they hold no sparse matrix.
   * @throws SptError `bench/no-matrix` where none of the files does
   */
  async *matrices(only?: string): AsyncGenerator<Csr> {
    const { data, matrices, quick } = this.options
    const asked = matricesOf(matrices, data)
    if (matrices.length > 0 && asked.length === 0) return
    const { found, missing } = sources(data, asked, quick)
    if (missing.length > 0) this.say(`not in ${data}: ${missing.join(', ')}`)
    const wanted = found.filter((s) => only === undefined || s.name === only)
    let some = wanted.length === 0
    for (const [k, source] of wanted.entries()) {
      if (this.late()) {
        for (const { name } of wanted.slice(k)) this.leave(name)
        return
      }
      const A = await this.#read(source)
      if (!A) continue
      some = true
      yield A
    }
    if (!some)
      fail({
        code: 'bench/no-matrix',
        message: `no file in '${data}' holds a sparse matrix`,
        expected: 'files of coordinates over two dimensions',
        hint: 'name the folder with --data FOLDER, its matrices with --matrices',
      })
  }

  #read(s: Source): Promise<Csr | null> {
    let known = this.#matrices.get(s.name)
    if (!known) {
      known = s.read().catch((error: unknown) => {
        if (!(error instanceof SptError)) throw error
        this.options.err(`${s.name} is left out: ${messageOf(error)}\n`)
        return null
      })
      this.#matrices.set(s.name, known)
    }
    return known
  }

  say(text: string): void {
    this.options.out(`${text}\n`)
  }

  /** A case is done: said, and written down. */
  async done(c: Case): Promise<void> {
    this.cases.push(c)
    this.say(`${((performance.now() - this.#start) / 1000).toFixed(0).padStart(4)} s  ${line(c)}`)
    for (const e of c.entries) if (e.result !== 'ok') this.say(`        ${e.name} ${e.result}: ${e.note}`)
    await this.write()
  }

  async preparations(): Promise<readonly Preparation[]> {
    const all = [await this.#cuda.opened(), await this.#webgpu.opened()]
    return [...this.#earlier, ...all.flatMap((d) => d?.preparations ?? [])]
  }

  async write(): Promise<void> {
    const { libraries, unmeasured } = this
    const facts = { chip: this.#chip, libraries, unmeasured }
    const preparations = await this.preparations()
    const { json } = this.options
    if (json !== undefined) await writeFile(json, progressText(facts, this.cases, preparations))
  }

  async close(): Promise<void> {
    const steps = [
      async () => (await this.#cusparse.opened())?.close(),
      async () => (await this.#cublas.opened())?.close(),
      async () => (await this.#stream.opened())?.close(),
      async () => (await this.#webgpu.opened())?.close(),
      async () => (await this.#cuda.opened())?.close(),
    ]
    for (const step of steps)
      try {
        await step()
      } catch (error) {
        this.say(`closing: ${messageOf(error)}`)
      }
  }
}
