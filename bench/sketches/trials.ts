/** Schedules of one kernel on some data: compared with the reference, timed, and kept. */

import { appendFileSync } from 'node:fs'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Binding, Device, Kernel } from '../../src/node.ts'
import { SptError } from '../../src/node.ts'
import { type Extent, referenceExtent } from '../../src/search/evaluate/reference-extent.ts'
import { deviceKey, Workspace, withDeviceLock } from '../../src/search.ts'
import { contest } from '../contest.ts'

export interface Timed {
  readonly name: string
  readonly kernel: Kernel
  /** Milliseconds, the least of some runs. */
  readonly ms: number
}

/** What holds for all that is tried of a case. */
export interface CaseOf {
  readonly kernel: Kernel
  readonly data: string
  readonly inputs: RunInputs
  /** The same kernel with so little data that the reference can compute its results, where it is too long for `inputs`. */
  readonly small: RunInputs | null
}

/** Processes beside this one have the device in turn. */
const alone = <T>(device: Device, work: () => Promise<T>): Promise<T> =>
  withDeviceLock(deviceKey(device), work)

/** Milliseconds of a run beyond which it is not repeated. */
const LONG = 50
/** Coordinates that the reference visits at most: a second. */
const VISITS = 2 ** 23
const ROUNDS = 15

export class Trials {
  readonly #case: CaseOf
  readonly #data: Workspace
  /** What is compared. */
  readonly #checked: Workspace
  readonly #extent: Extent
  readonly #times: string | undefined
  readonly #repeats: number
  wrong = 0
  readonly refused: Record<string, number> = {}

  /** `times`: a file that gets a line of JSON for each schedule. */
  constructor(device: Device, of: CaseOf, times: string | undefined) {
    const workspace = (inputs: RunInputs): Workspace =>
      new Workspace(device, of.kernel, flatInputs(inputs)[0], { seed: 3, shareOutputs: true })
    this.#case = of
    this.#data = workspace(of.inputs)
    this.#checked = of.small ? workspace(of.small) : this.#data
    this.#extent = referenceExtent(this.#checked, 1, VISITS)
    this.#times = times
    this.#repeats = device.kind === 'cpu' ? 7 : 12
  }

  /** Nothing where it is refused or wrong. */
  async time(name: string, make: () => Kernel): Promise<Timed | undefined> {
    const { device } = this.#data
    try {
      const kernel = make()
      const compiled = await kernel.build(device, { auto: false })
      this.#data.bindOnHost(compiled)
      return await alone(device, async () => {
        const compared = await this.#checked.bind(compiled)
        let problem: string | undefined
        try {
          const { ok, problems } = await compared.verifyAgainst(this.#checked.referenceResults(this.#extent))
          if (!ok) problem = problems[0]
        } finally {
          compared.free()
        }
        if (problem !== undefined) {
          this.wrong++
          console.error(`WRONG ${name}: ${problem}\n  ${kernel.trace.join('\n  ')}`)
          return undefined
        }
        const prepared = await this.#data.bind(compiled)
        try {
          const [once = 0] = await prepared.time(1)
          const more =
            once > LONG ? [] : (await prepared.measure({ warmups: 1, repeats: this.#repeats })).times
          const ms = Math.min(once, ...more)
          this.#keep(name, kernel, ms)
          return { name, kernel, ms }
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

  #keep(name: string, kernel: Kernel, ms: number): void {
    if (this.#times === undefined) return
    const { data, inputs } = this.#case
    const line = {
      kernel: kernel.name,
      data,
      params: inputs.params,
      name,
      ms: Number(ms.toPrecision(6)),
      steps: kernel.toJSON(),
    }
    appendFileSync(this.#times, `${JSON.stringify(line)}\n`)
  }

  /** Milliseconds of each, the least of interleaved runs. */
  again(of: readonly Timed[]): Promise<ReadonlyMap<Timed, number>> {
    const { device } = this.#data
    return alone(device, async () => {
      const prepared: Binding[] = []
      for (const c of of) prepared.push(await this.#data.bind(await c.kernel.build(device, { auto: false })))
      const runs = prepared.map((p) => async () => {
        if (device.kind === 'cpu') return Math.min(...(await p.time(1)))
        return Math.min(...(await p.measure({ warmups: 2, repeats: 10, batch: 10 })).times)
      })
      const timed = await contest(Object.fromEntries(runs.map((r, k) => [`${k}`, r])), ROUNDS)
      for (const p of prepared) p.free()
      return new Map(of.map((c, k) => [c, timed[k]!.best]))
    })
  }
}
