/** Compiled kernels on one device with one set of inputs: compared with the reference, and timed. */
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { CompiledSchedule, PreparedKernel } from '../../api/compiled.ts'
import type { Kernel } from '../../api/kernel.ts'
import { Workspace } from '../../api/workspace.ts'
import type { Coverage } from '../../run/compare-outputs.ts'
import { precisionOf } from '../../run/instruction-precision.ts'
import type { Device } from '../../runtime/device.ts'
import { raiseClock } from '../../runtime/full-clock.ts'
import { deviceKey } from '../measuring/device-key.ts'
import { withDeviceLock } from '../measuring/device-lock.ts'
import { EventTurns } from '../measuring/event-turns.ts'
import { measureRounds } from '../measuring/measure-rounds.ts'
import { summarizeSamples } from '../measuring/median-interval.ts'
import { prepareReference } from '../measuring/reference-kernel.ts'
import { warmRuns } from '../measuring/warm-runs.ts'
import type { Outcome } from '../types.ts'
import type { EvaluationThreads } from './evaluation-threads.ts'
import { type Extent, referenceExtentBy } from './reference-extent.ts'

export interface Compared {
  /** On the device. */
  readonly bytes: number
  /** Largest |x - r| / max(|r|, scale of r) of its outputs. */
  readonly relativeError: number
  /** True if only a sample of the results was compared. */
  readonly sampled: boolean
}

export interface MeasuringOptions {
  /** Samples of a candidate at most; 30. */
  readonly rounds?: number | undefined
  /** Seconds that measuring candidates together takes at most, for each of them; 1. */
  readonly seconds?: number | undefined
  /** Seed of the sampled rows and of the orders of rounds; 1. */
  readonly seed?: number | undefined
}

/** A kernel whose warm runs are slower than the fastest so far by that much is measured no further. */
const HOPELESS = 3
/** A kernel that is slower by that much is given up sooner. */
const BEYOND = 10
/** Milliseconds of a run, while the kernel was compared, beyond which one that is slower by `BEYOND` is not run again. */
const LONG_ENOUGH_MS = 1000
/** On devices that compile before they run: runs of a kernel that is far from the fastest, until they took so long together. */
const FIRST_MS = 100
const FIRST_RUNS = 50
/** A single run may be held up by anything. */
const LEAST_RUNS = 2
const LEAST_ROUNDS = 5
/** Milliseconds beyond which a kernel is warm after few runs. */
const LONG = 10
const WARMUPS = { long: 1, short: 5 } as const
/** Samples of kernels that are compared in fresh preparations, all of which count. */
const FRESH = { rounds: 9, seconds: 0.5, width: 0, all: true, warmups: 1 } as const

export class TestBench {
  readonly device: Device
  readonly data: Workspace
  readonly #options: MeasuringOptions
  readonly #seed: number | undefined
  readonly #threads: EvaluationThreads
  #extent: Extent | undefined
  #coverage: Coverage | null = null
  #reference: PreparedKernel | undefined
  #rounds = 0
  #fastest = Number.POSITIVE_INFINITY
  /** Comparisons by steps as JSON. */
  readonly #right = new Map<string, Compared>()
  readonly #wrong = new Map<string, Outcome>()
  /** Milliseconds of runs that were compared, on the host's clock. */
  readonly #ran = new WeakMap<PreparedKernel, number>()
  /** Milliseconds of first runs. */
  readonly #first = new WeakMap<PreparedKernel, number>()
  /** Those of warm runs on a processor. */
  readonly #warm = new WeakMap<PreparedKernel, readonly number[]>()

  constructor(
    device: Device,
    kernel: Kernel,
    inputs: RunInputs,
    options: MeasuringOptions,
    threads: EvaluationThreads,
  ) {
    this.#threads = threads
    this.device = device
    this.data = new Workspace(device, kernel, inputs, { shareOutputs: true, limitExpansion: true })
    this.#options = options
    this.#seed = inputs.seed
  }

  /**
   * Reference results; computed in another thread on the first call.
   * @throws SptError `search/reference-too-long`, errors of inputs as `bindInputs`; the abort reason of `signal`
   */
  async extent(signal?: AbortSignal): Promise<Extent> {
    const { seed = 1 } = this.#options
    this.#extent ??= await referenceExtentBy(this.data, seed, (asked) =>
      this.#threads.reference(asked, signal),
    )
    return this.#extent
  }

  /** True if a sample of the results is compared; false as long as this is unknown. */
  get isSampled(): boolean {
    return this.#extent?.sample !== undefined
  }

  /** Share of the results on which the latest candidate was compared; `null` before the first. */
  get coverage(): Coverage | null {
    return this.#coverage
  }

  /**
   * Prepares a kernel on the device, and compares it with the reference, once for equal steps (`key`).
   * @throws SptError as `prepare` and `run`; the abort reason of `signal`
   */
  async checked(
    compiled: CompiledSchedule,
    key: string,
    signal?: AbortSignal,
  ): Promise<{ readonly prepared: PreparedKernel; readonly found: Compared } | { readonly wrong: Outcome }> {
    const known = this.#wrong.get(key)
    if (known) return { wrong: known }
    const turns = new EventTurns(signal)
    const prepared = await this.data.prepare(compiled)
    try {
      await turns.next()
      const found = this.#right.get(key) ?? (await this.#compared(prepared, key, signal))
      if ('status' in found) {
        prepared.free()
        return { wrong: found }
      }
      return { prepared, found }
    } catch (e) {
      prepared.free()
      throw e
    }
  }

  async #compared(
    prepared: PreparedKernel,
    key: string,
    signal: AbortSignal | undefined,
  ): Promise<Compared | Outcome> {
    const precision = precisionOf(prepared.executable.program.plan)
    const verified = await prepared.verifyAgainst(
      this.data.referenceResults({ ...(await this.extent(signal)), ...precision }),
    )
    const { ok, verdict, problems, reducerFault, maxRelativeError, sample } = verified
    const { elements, compared, undecided, weak, notANumber } = verified
    this.#coverage = { elements, compared, undecided, weak, notANumber }
    this.#ran.set(prepared, verified.runTime)
    if (!ok) {
      const message = problems.join('; ')
      const outcome: Outcome = reducerFault
        ? { status: 'rejected', code: 'check/monoid-law', message: reducerFault }
        : verdict === 'undecided'
          ? { status: 'rejected', code: 'search/nothing-compared', message }
          : { status: 'wrong', message, trace: key, seed: this.#seed }
      this.#wrong.set(key, outcome)
      return outcome
    }
    const { bytes } = prepared.executable
    const found = { bytes, relativeError: maxRelativeError, sampled: sample !== null }
    this.#right.set(key, found)
    return found
  }

  /**
   * Holds the device's lock for one measurement: workers and the final comparison may share the device. It was idle during
   * compilation, for different times.
   */
  #alone<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const warm = async (): Promise<T> => {
      this.#reference ??= await prepareReference(this.device)
      await raiseClock(this.device, this.#reference.commands)
      return work()
    }
    return withDeviceLock(deviceKey(this.device), warm, { signal })
  }

  /**
   * Warms a kernel up; returns its outcome if its warm-up runs are far slower than the fastest, otherwise `null`.
   * @throws the abort reason of `signal`
   */
  hopeless(prepared: PreparedKernel, signal?: AbortSignal): Promise<Outcome | null> {
    return this.#alone(() => this.#hopeless(prepared, signal), signal)
  }

  async #hopeless(prepared: PreparedKernel, signal?: AbortSignal): Promise<Outcome | null> {
    const ran = this.#ran.get(prepared) ?? 0
    if (ran > LONG_ENOUGH_MS && ran > BEYOND * this.#fastest) {
      this.#first.set(prepared, ran)
      return { status: 'bounded', atMost: ran }
    }
    const times = await this.#warmed(prepared, signal)
    const least = Math.min(...times)
    this.#first.set(prepared, least)
    if (this.device.kind === 'cpu') this.#warm.set(prepared, times)
    return least > HOPELESS * this.#fastest ? { status: 'measured', timing: summarizeSamples(times) } : null
  }

  async #warmed(prepared: PreparedKernel, signal?: AbortSignal): Promise<readonly number[]> {
    const turns = new EventTurns(signal)
    const run = async (): Promise<number> => {
      await turns.next()
      return (await prepared.time(1))[0] ?? 0
    }
    return this.device.kind === 'cpu' ? warmRuns(run) : this.#firstRuns(run)
  }

  /** On a device that compiles before it runs: one run, or several of a kernel that is far from the fastest. */
  async #firstRuns(run: () => Promise<number>): Promise<readonly number[]> {
    const times: number[] = []
    let [spent, least] = [0, Number.POSITIVE_INFINITY]
    const isOver = (): boolean =>
      least <= HOPELESS * this.#fastest ||
      (times.length >= LEAST_RUNS &&
        (least > BEYOND * this.#fastest || times.length >= FIRST_RUNS || spent >= FIRST_MS))
    do {
      const time = await run()
      times.push(time)
      spent += time
      least = Math.min(least, time)
    } while (!isOver())
    return times
  }

  /** Milliseconds of its first run; 0 if it did not run alone. */
  firstTime(prepared: PreparedKernel): number {
    return this.#first.get(prepared) ?? 0
  }

  /** Measures kernels against each other. `share`: how much of the usual effort, in (0, 1]. */
  async measured(
    prepared: readonly PreparedKernel[],
    share: number,
    signal?: AbortSignal,
  ): Promise<readonly Outcome[]> {
    if (prepared.length === 0) return []
    const { rounds = 30, seconds = 1, seed = 1 } = this.#options
    const options = {
      rounds: Math.max(LEAST_ROUNDS, Math.ceil(rounds * share)),
      seconds: seconds * share * prepared.length,
      seed: seed + this.#rounds++,
      ...(Number.isFinite(this.#fastest) && { fastest: this.#fastest }),
      warmups: prepared.every((p) => this.firstTime(p) > LONG) ? WARMUPS.long : WARMUPS.short,
      ...(signal ? { signal } : {}),
    }
    const { outcomes: found } = await this.#alone(
      () => measureRounds(this.device, prepared, { ...options, reference: this.#reference }),
      signal,
    )
    const outcomes = found.map((o, k) => withMore(o, this.#warm.get(prepared[k]!)))
    for (const o of outcomes)
      if (o.status === 'measured') this.#fastest = Math.min(this.#fastest, o.timing.median)
    return outcomes
  }

  /**
   * Minimum milliseconds of kernels that are repeatedly prepared anew, warmed up and timed in turns, because a busy host
   * delays most runs. NaN for kernels that fault.
   * @throws SptError as `prepare`; the abort reason of `signal`
   */
  async fresh(
    compiled: readonly CompiledSchedule[],
    seed: number,
    signal?: AbortSignal,
  ): Promise<readonly number[]> {
    const prepared: PreparedKernel[] = []
    try {
      for (const c of compiled) prepared.push(await this.data.prepare(c))
      return await this.#alone(async () => {
        for (const p of prepared) await this.#warmed(p, signal)
        const options = { ...FRESH, seed, signal, reference: this.#reference }
        const { outcomes } = await measureRounds(this.device, prepared, options)
        return outcomes.map((o) => (o.status === 'measured' ? Math.min(...o.timing.samples) : Number.NaN))
      }, signal)
    } finally {
      for (const p of prepared) p.free()
    }
  }

  free(): void {
    this.#reference?.free()
    this.#reference?.kernel.release()
    this.#reference = undefined
    this.data.free()
  }
}

/** Adds the warm-up runs of a candidate that was dropped early, whose few samples a busy host may have distorted. */
function withMore(o: Outcome, warm: readonly number[] | undefined): Outcome {
  if (o.status !== 'measured' || !warm || o.timing.samples.length >= LEAST_ROUNDS) return o
  return { status: 'measured', timing: summarizeSamples([...o.timing.samples, ...warm]) }
}
