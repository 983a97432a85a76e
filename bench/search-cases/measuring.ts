/** Kernels of a case on the device: compared with the reference, and timed while no other process uses it. */

import type { Binding } from '../../src/api/built/binding.ts'
import type { Built } from '../../src/api/built/built.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { SptError } from '../../src/node.ts'
import { Evaluator } from '../../src/search/evaluate/evaluator.ts'
import { type Extent, referenceExtent } from '../../src/search/evaluate/reference-extent.ts'
import { deviceKey, Workspace, withDeviceLock } from '../../src/search.ts'
import { messageOf } from '../gpu/ours.ts'
import { summary } from '../model/records.ts'
import { settled } from '../model/timed.ts'
import { median } from '../support.ts'
import type { Tried } from './case.ts'
import type { Candidate, CaseKernels } from './kernels.ts'

/** What takes so much longer than the fastest of this process is known well enough after three runs. */
const FAR = 2
/** Microseconds of work before samples count. */
const WARM = 5000
const REPEATS = 15
/** Coordinates that the reference visits. */
const VISITS = 2 ** 21

type Timing = Pick<Tried, 'median' | 'low' | 'high' | 'samples'>

export class CaseBench {
  readonly kernels: CaseKernels
  readonly #data: Workspace
  readonly #evaluator: Evaluator
  readonly #extent: Extent
  #fastest = Number.POSITIVE_INFINITY
  /** Holds the arrays that all have in common, so that they are brought to the device once. */
  #anchor: Promise<Binding> | undefined
  /** Milliseconds that the device was held. */
  #held = 0

  constructor(kernels: CaseKernels) {
    const { kernel, inputs, device } = kernels
    this.kernels = kernels
    const [bindings, { seed }] = flatInputs(inputs)
    this.#data = new Workspace(device, kernel, bindings, { seed, shareOutputs: true })
    this.#extent = referenceExtent(this.#data, 1, VISITS)
    this.#evaluator = new Evaluator({ kernel, inputs, device, timeout: 8000 })
  }

  async close(): Promise<void> {
    ;(await this.#anchor)?.free()
    this.#evaluator.close()
  }

  /** Milliseconds that the device was held since the last call. */
  heldSince(): number {
    const held = this.#held
    this.#held = 0
    return held
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    return withDeviceLock(deviceKey(this.kernels.device), async () => {
      const start = performance.now()
      try {
        return await work()
      } finally {
        this.#held += performance.now() - start
      }
    })
  }

  #compiled({ kernel, compile }: Candidate): Promise<Built> {
    return kernel ? this.#evaluator.compile(kernel) : compile!()
  }

  /** @param onLoss called with what is told of it, where the device was lost */
  async measure(candidate: Candidate, onLoss: (tried: Tried) => never): Promise<Tried> {
    const { of, text, point, predicted } = candidate
    const { device } = this.kernels
    const head = {
      device: device.kind,
      chip: device.name,
      ...this.kernels.case,
      candidate: text,
      of,
      ...(point && { point }),
      ...(predicted !== undefined && { predicted }),
    }
    let compiled: Built | undefined
    try {
      const ready = await this.#compiled(candidate)
      compiled = ready
      const prepared = await this.#prepared(ready)
      try {
        const verify = () => prepared.verifyAgainst(this.#data.referenceResults(this.#extent))
        // Among the samples of others one run is an outlier, and reading the results of GPUs takes longer than measuring.
        const { ok, problems } = await (device.kind === 'cpu' ? this.#alone(verify) : verify())
        if (!ok) return { ...head, status: 'wrong', note: problems[0] ?? 'differs' }
        return { ...head, status: 'ok', ...(await this.#alone(() => this.#timed(prepared))) }
      } finally {
        prepared.free()
      }
    } catch (error) {
      const tried = { ...head, status: 'failed', note: messageOf(error) } as const
      if (error instanceof SptError && ['device/lost', 'device/fault'].includes(error.code)) onLoss(tried)
      return tried
    } finally {
      compiled?.release()
    }
  }

  async #prepared(compiled: Built): Promise<Binding> {
    this.#anchor ??= this.#evaluator.compile(this.kernels.kernel).then((k) => this.#data.bind(k))
    await this.#anchor
    return this.#data.bind(compiled)
  }

  async #timed(prepared: Binding): Promise<Timing> {
    const samples = async (options: Parameters<typeof prepared.measure>[0]): Promise<readonly number[]> =>
      (await prepared.measure(options)).times.map((t) => 1000 * t)
    const scouted = await samples({ warmups: 2, repeats: 3 })
    const once = median(scouted)
    if (once > FAR * this.#fastest) return summary(scouted)
    await samples({ warmups: 0, repeats: 1, batch: Math.min(256, Math.max(1, Math.ceil(WARM / once))) })
    const times = summary(await samples({ warmups: 2, repeats: REPEATS }))
    this.#fastest = Math.min(this.#fastest, times.median!)
    return times
  }

  /** In rounds until two agree, one after the other and again in the other order: the least of both. */
  async finals(of: readonly Tried[]): Promise<readonly Tried[]> {
    const compiled = await Promise.all(of.map((t) => this.#compiled(this.kernels.again(t))))
    return this.#alone(async () => {
      const prepared = []
      for (const [k, t] of of.entries()) prepared.push({ t, prepared: await this.#data.bind(compiled[k]!) })
      const times = new Map<Tried, number>()
      for (const order of [prepared, [...prepared].reverse()])
        for (const { t, prepared: p } of order) {
          const batch = Math.min(512, Math.max(1, Math.ceil((4 * WARM) / t.median!)))
          const round = await settled(async () => {
            await p.measure({ warmups: 0, repeats: 1, batch })
            return (await p.measure({ warmups: 3, repeats: REPEATS })).times.map((x) => 1000 * x)
          })
          times.set(t, Math.min(times.get(t) ?? Number.POSITIVE_INFINITY, median(round)))
        }
      for (const p of prepared) p.prepared.free()
      for (const c of compiled) c.release()
      return of.map((t) => ({ ...t, median: times.get(t)!, isFinal: true as const }))
    })
  }
}
