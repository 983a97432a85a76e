/** Our kernels on a device: compiled once, tensors brought into their formats there, runs timed. */

import type { Binding } from '../../src/api/built/binding.ts'
import type { Built } from '../../src/api/built/built.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import {
  bindResident,
  convertForKernel,
  type ResidentParts,
  type ResidentTensor,
  releaseConversions,
  upload,
} from '../../src/device.ts'
import type { Buffer1, Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import type { CoordTensor, Selection, StoredTensor, Tensor, ValueArray } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import type { MeasureOptions } from '../../src/runtime/measure.ts'
import { type Candidate, kernelOf, programOf } from './candidates.ts'
import { axesOf, inputs, outputOf } from './declared.ts'
import { CompileClock, type Preparation, preparationOf } from './preparation.ts'
import { measureBy, scoutBy, type Times } from './timing.ts'

export interface Ready {
  readonly candidate: Candidate
  /** With a dispatch until data decide. */
  readonly compiled: Built
  /** The kernel as written. */
  readonly source: Kernel1
  /** Which schedule was chosen. */
  readonly chosen?: Selection
}

/** The first sparse input, in the format of a ready kernel. */
export interface Conversion {
  /** `null`: the kernel takes the arrays as they are, or they are brought into the format on the host. */
  readonly parts: ResidentParts | null
  /** Why that was not done on the device. */
  readonly host?: string
  readonly milliseconds: number
  readonly bytes: number
}

/** Nothing is built: what is bound is taken as it is. */
export const AS_IT_IS: Conversion = { parts: null, milliseconds: 0, bytes: 0 }

/** Runs after which a choice stays as it is on the same data: one that finds, one that is led, one that finds no other. */
const LEADING = 3

/** True if a dispatch of the program selects the schedule by the data. */
const isOpen = (compiled: Built): boolean => compiled.dispatch !== null

export const messageOf = (error: unknown): string =>
  error instanceof SptError
    ? error.diagnostics.map((d) => `${d.code}: ${d.message}`).join('; ')
    : error instanceof Error
      ? (error.message.split('\n')[0] ?? error.name)
      : String(error)

export class OurDevice {
  readonly device: Device
  readonly preparations: Preparation[] = []
  /** Whether building a format is timed, without what is compiled for it: it is built twice then. */
  times = true
  readonly #ready = new Map<string, Promise<Ready>>()
  /** Kernels of choices whose preparation is noted. */
  readonly #noted = new Set<Built['code']>()
  readonly #clock: CompileClock

  constructor(device: Device) {
    this.device = device
    this.#clock = new CompileClock(device)
  }

  /** Compiled at the first call. */
  ready(candidate: Candidate): Promise<Ready> {
    let known = this.#ready.get(candidate.text)
    if (!known) {
      known = this.#make(candidate)
      this.#ready.set(candidate.text, known)
    }
    return known
  }

  async #make(candidate: Candidate): Promise<Ready> {
    await programOf(candidate)
    const start = this.#start()
    const { kernel, plain } = await kernelOf(candidate)
    const compiled = await kernel.build(this.device)
    if (!isOpen(compiled)) await this.#note(candidate, compiled, start)
    return { candidate, compiled, source: plain.compilation.source }
  }

  /** Under the schedule that is chosen for some tensors: they are brought into its format on the device. */
  async decided(
    ready: Ready,
    tensors: Readonly<Record<string, Tensor>>,
    params: Readonly<Record<string, number>> = {},
  ): Promise<Ready> {
    if (!isOpen(ready.compiled)) return ready
    const start = this.#start()
    const kernel = await ready.compiled.choose({ ...tensors, ...params })
    if (!this.#noted.has(kernel.code)) {
      // `build` may have compiled all schedules of the dispatch together: then this one is compiled again, and timed.
      if (this.#clock.milliseconds === 0) (await kernel.code.compileFor(this.device)).release()
      await this.#note(ready.candidate, kernel, start, kernel.selection!)
    }
    this.#noted.add(kernel.code)
    return { ...ready, compiled: kernel, chosen: kernel.selection! }
  }

  #start(): number {
    this.#clock.start()
    return performance.now()
  }

  async #note(candidate: Candidate, compiled: Built, start: number, choice?: Selection): Promise<void> {
    const total = performance.now() - start
    const { ms: loading } = await programOf(candidate)
    const head = { candidate: candidate.text, loading, ...(choice ? { chosen: choice.text } : {}) }
    this.preparations.push(preparationOf(head, compiled, total, this.#clock.milliseconds))
  }

  upload(tensor: CoordTensor | StoredTensor, kernel: Kernel1): Promise<ResidentTensor> {
    return upload(this.device, tensor, axesOf(kernel, inputs(kernel)[0]!))
  }

  /** Brings `tensor` into the format that the kernel stores its first input in; the kernel has been decided. */
  async build(
    ready: Ready,
    tensor: CoordTensor | StoredTensor,
    sets: ReadonlyMap<string, readonly Int32Array[]> = new Map(),
  ): Promise<Conversion> {
    const { compiled, source } = ready
    const name = inputs(source)[0]!.name
    const formatted = compiled.compilation.kernel.reformats.some((r) =>
      r.buffers.some((b) => b.name === name),
    )
    if (!formatted) return AS_IT_IS
    let from: ResidentTensor | undefined
    try {
      from = await this.upload(tensor, source)
      // The first conversion compiles its kernels.
      if (this.times) (await convertForKernel(compiled, name, from, { sets })).free()
      const start = performance.now()
      const parts = await convertForKernel(compiled, name, from, { sets })
      return { parts, milliseconds: performance.now() - start, bytes: parts.bytes }
    } catch (error) {
      if (!(error instanceof SptError)) throw error
      return { parts: null, host: messageOf(error), milliseconds: 0, bytes: 0 }
    } finally {
      from?.free()
    }
  }

  /** Binds and runs once. `first` is bound as it is where the kernel has no format for it. */
  async prepare(
    asked: Ready,
    built: Conversion,
    first: Tensor,
    rest: Readonly<Record<string, Tensor>>,
    params: Readonly<Record<string, number>> = {},
  ): Promise<OurRun> {
    const name = inputs(asked.source)[0]!.name
    const ready = await this.decided(asked, { [name]: first, ...rest }, params)
    const { compiled } = ready
    const prepared = built.parts
      ? await bindResident(compiled, { [name]: built.parts, ...rest, ...params })
      : await compiled.bind({ [name]: first, ...rest, ...params })
    const run = new OurRun(ready, built, prepared)
    return this.#ran(run, () => run.run())
  }

  /**
   * As `prepare`, of a choice that its runs make: after those that have found what it is to be known by. How long the kernels took
   * to prepare is not noted: binding data is part of it.
   */
  async led(
    asked: Ready,
    first: Tensor,
    rest: Readonly<Record<string, Tensor>>,
    params: Readonly<Record<string, number>> = {},
  ): Promise<OurRun> {
    if (!isOpen(asked.compiled)) return this.prepare(asked, AS_IT_IS, first, rest, params)
    const name = inputs(asked.source)[0]!.name
    const prepared = await asked.compiled.bind({ [name]: first, ...rest, ...params })
    const run = new OurRun(asked, AS_IT_IS, prepared)
    return this.#ran(run, async () => {
      await run.run()
      for (let k = 1; k < LEADING && Object.keys(prepared.selection?.fillRatios ?? {}).length > 0; k++) {
        await prepared.awaitMeasurements()
        await run.run()
      }
    })
  }

  /** A run for which `work` was done, or nothing that is left of it. */
  async #ran(run: OurRun, work: () => Promise<void>): Promise<OurRun> {
    try {
      await work()
      return run
    } catch (error) {
      // After a fault freeing fails too, and the fault is the news.
      await Promise.resolve()
        .then(() => run.free())
        .catch(() => {})
      throw error
    }
  }

  async close(): Promise<void> {
    await releaseConversions(this.device)
    await this.device.dispose()
  }
}

/** One kernel with data, which has run. */
export class OurRun {
  readonly ready: Ready
  readonly built: Conversion
  readonly prepared: Binding

  constructor(ready: Ready, built: Conversion, prepared: Binding) {
    this.ready = ready
    this.built = built
    this.prepared = prepared
  }

  get inputs(): readonly Buffer1[] {
    return inputs(this.ready.source)
  }

  get output(): Buffer1 {
    return outputOf(this.ready.source)
  }

  /** Runs once on poisoned outputs. */
  async run(): Promise<void> {
    await this.prepared.executable.poison()
    await this.prepared.run()
  }

  /** The format's building, and which schedule was chosen where there was a choice. */
  get facts(): Readonly<Record<string, number | string>> {
    const { parts, host, milliseconds, bytes } = this.built
    const choice = this.prepared.selection ?? this.ready.chosen
    return {
      ...(parts ? { 'build ms': milliseconds, bytes } : {}),
      ...(host === undefined ? {} : { 'built on the host': host }),
      ...(choice ? { chosen: choice.text, because: choice.reason } : {}),
    }
  }

  /** The values of a dense output. */
  values(name: string): Promise<ValueArray> {
    return this.prepared.executable.values(name)
  }

  /** The values of an output with the first input's structure, in the order of that input's elements. */
  async elements(
    name: string,
    count: number,
    slots: readonly Int32Array[] | null,
  ): Promise<ArrayLike<number>> {
    if (this.built.host !== undefined) return (await this.prepared.get(name)).values ?? []
    if (!slots) return this.values(name)
    const { kernel } = this.ready.compiled.compilation
    const parts = kernel.reformats.flatMap((r) => r.buffers).find((b) => b.name === name)?.parts ?? [name]
    const out = new Float32Array(count).fill(Number.NaN)
    for (const [k, part] of parts.entries()) {
      const values = await this.values(part)
      const element = slots[k]
      if (!element || element.length < values.length)
        throw new Error(`${part} has other slots than its structure`)
      for (let s = 0; s < values.length; s++) if (element[s]! >= 0) out[element[s]!] = values[s]!
    }
    return out
  }

  /** Microseconds of a few runs; of one where that takes long. */
  scout(): Promise<number> {
    return scoutBy((options) => this.samples(options))
  }

  measure(scouted: number): Promise<Times> {
    return measureBy((options) => this.samples(options), scouted)
  }

  /** Microseconds. */
  async samples(options: MeasureOptions): Promise<readonly number[]> {
    const { times } = await this.prepared.executable.measure(options)
    return times.map((t) => 1000 * t)
  }

  free(): void {
    this.prepared.free()
  }
}
