/** Compiled kernels on one device with one set of inputs: compared with the reference, and timed. */

import type { Binding } from '../../api/built/binding.ts'
import type { Built } from '../../api/built/built.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { Workspace } from '../../api/resident/workspace.ts'
import { type AbortSignalLike, Work } from '../../ast/work.ts'
import type { Coverage } from '../../run/verify/compare-outputs.ts'
import { precisionOf } from '../../run/verify/verify.ts'
import type { Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import { raiseClock } from '../../runtime/measure.ts'
import { deviceKey, withDeviceLock } from '../measuring/device-lock.ts'
import { prepareReference } from '../measuring/drift.ts'
import { measureRounds, warmRuns } from '../measuring/measure-rounds.ts'
import { summarizeSamples } from '../measuring/median-interval.ts'
import type { TrialFacts } from '../records/types.ts'
import type { Outcome } from '../types.ts'
import type { EvaluationThreads } from './evaluation-threads.ts'
import { computeReferenceExtent, type Extent } from './reference-extent.ts'

export interface MeasuringOptions {
  /** Maximum number of samples of a candidate; default 30. */
  readonly rounds?: number | undefined
  /** Maximum seconds of measuring candidates together, per candidate; default 1. */
  readonly seconds?: number | undefined
  /** Seed of the sampled rows and of the orders of rounds; default 1. */
  readonly seed?: number | undefined
}

/** Ratio of a kernel's warm runs to the fastest kernel so far above which it is not measured further. */
const SLOW_FACTOR = 3
/** Ratio above which warm-up runs end earlier. */
const VERY_SLOW_FACTOR = 10
/** Milliseconds of the verification run above which a kernel slower by `VERY_SLOW_FACTOR` is not run again. */
const LONG_RUN_MS = 1000
/** On devices that compile ahead of time: milliseconds and number of warm-up runs of a slow kernel. */
const FIRST_MS = 100
const FIRST_RUNS = 50
/** A single run may be disturbed. */
const MIN_RUNS = 2
const MIN_ROUNDS = 5
/** Milliseconds of a run above which one warm-up run is sufficient. */
const LONG_MS = 10
const WARMUPS = { long: 1, short: 5 } as const
/** Sampling options for kernels compared in fresh preparations, of which all samples count. */
const FRESH_SAMPLING = { rounds: 9, seconds: 0.5, width: 0, all: true, warmups: 1 } as const

export class TestBench {
  readonly data: Workspace
  readonly #seed: number | undefined
  #extent: Extent | undefined
  #coverage: Coverage | null = null
  #reference: Binding | undefined
  #rounds = 0
  #fastest = Number.POSITIVE_INFINITY
  readonly #correct = new Map<string, TrialFacts>()
  readonly #wrong = new Map<string, Outcome>()
  /** Milliseconds of the verification run, on the host's clock. */
  readonly #verifyTimes = new WeakMap<Binding, number>()
  /** Milliseconds of first runs. */
  readonly #firstTimes = new WeakMap<Binding, number>()
  /** Milliseconds of warm runs on a CPU. */
  readonly #warmTimes = new WeakMap<Binding, readonly number[]>()

  constructor(
    readonly device: Device,
    kernel: Kernel,
    inputs: RunInputs,
    private readonly options: MeasuringOptions,
    private readonly threads: EvaluationThreads,
  ) {
    const shared = { seed: inputs.seed, shareOutputs: true, limitExpansion: true }
    this.data = new Workspace(device, kernel, flatInputs(inputs)[0], shared)
    this.#seed = inputs.seed
  }

  /**
   * Reference results; computed in another thread on the first call.
   * @throws SptError `search/reference-too-long`, errors of inputs as `bindInputs`; the abort reason of `signal`
   */
  async extent(signal?: AbortSignalLike): Promise<Extent> {
    const { seed = 1 } = this.options
    this.#extent ??= await computeReferenceExtent(this.data, seed, (request) =>
      this.threads.reference(request, signal),
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
   * @throws SptError as `bind` and `run`; the abort reason of `signal`
   */
  async verify(
    compiled: Built,
    key: string,
    signal?: AbortSignalLike,
  ): Promise<{ readonly prepared: Binding; readonly facts: TrialFacts } | { readonly wrong: Outcome }> {
    const wrong = this.#wrong.get(key)
    if (wrong) return { wrong: wrong }
    const turns = new Work({ signal })
    const prepared = await this.data.bind(compiled)
    try {
      await turns.checkpoint()
      const result = this.#correct.get(key) ?? (await this.#compare(prepared, key, signal))
      if ('status' in result) {
        prepared.free()
        return { wrong: result }
      }
      return { prepared, facts: result }
    } catch (e) {
      prepared.free()
      throw e
    }
  }

  async #compare(
    prepared: Binding,
    key: string,
    signal: AbortSignalLike | undefined,
  ): Promise<TrialFacts | Outcome> {
    const precision = precisionOf(prepared.executable.program.plan)
    const verified = await prepared.verifyAgainst(
      this.data.referenceResults({ ...(await this.extent(signal)), ...precision }),
    )
    const { ok, verdict, problems, reducerFault, maxRelativeError, sample } = verified
    const { elements, compared, undecided, weak, notANumber } = verified
    this.#coverage = { elements, compared, undecided, weak, notANumber }
    this.#verifyTimes.set(prepared, verified.runTime)
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
    const facts = { bytes, relativeError: maxRelativeError, sampled: sample !== null }
    this.#correct.set(key, facts)
    return facts
  }

  /** Runs `work` under the device's lock, which workers may share, and at full clock after idling. */
  #withLock<T>(work: () => Promise<T>, signal?: AbortSignalLike): Promise<T> {
    const workAtFullClock = async (): Promise<T> => {
      this.#reference ??= await prepareReference(this.device)
      await raiseClock(this.device, this.#reference.commands)
      return work()
    }
    return withDeviceLock(deviceKey(this.device), workAtFullClock, { signal })
  }

  /** Warms a kernel up; returns its outcome if it is far slower than the fastest. @throws the abort reason */
  warmUp(prepared: Binding, signal?: AbortSignalLike): Promise<Outcome | null> {
    return this.#withLock(() => this.#warmUpLocked(prepared, signal), signal)
  }

  async #warmUpLocked(prepared: Binding, signal?: AbortSignalLike): Promise<Outcome | null> {
    const verifyTime = this.#verifyTimes.get(prepared) ?? 0
    if (verifyTime > LONG_RUN_MS && verifyTime > VERY_SLOW_FACTOR * this.#fastest) {
      this.#firstTimes.set(prepared, verifyTime)
      return { status: 'bounded', atMost: verifyTime }
    }
    const times = await this.#runWarm(prepared, signal)
    const fastest = Math.min(...times)
    this.#firstTimes.set(prepared, fastest)
    if (this.device.kind === 'cpu') this.#warmTimes.set(prepared, times)
    return fastest > SLOW_FACTOR * this.#fastest
      ? { status: 'measured', timing: summarizeSamples(times) }
      : null
  }

  async #runWarm(prepared: Binding, signal?: AbortSignalLike): Promise<readonly number[]> {
    const turns = new Work({ signal })
    const run = async (): Promise<number> => {
      await turns.checkpoint()
      return (await prepared.time(1))[0] ?? 0
    }
    return this.device.kind === 'cpu' ? warmRuns(run) : this.#firstRuns(run)
  }

  /** On a device that compiles ahead of time: one run, or several for a kernel that is far from the fastest. */
  async #firstRuns(run: () => Promise<number>): Promise<readonly number[]> {
    const times: number[] = []
    let [total, fastest] = [0, Number.POSITIVE_INFINITY]
    const isOver = (): boolean =>
      fastest <= SLOW_FACTOR * this.#fastest ||
      (times.length >= MIN_RUNS &&
        (fastest > VERY_SLOW_FACTOR * this.#fastest || times.length >= FIRST_RUNS || total >= FIRST_MS))
    do {
      const time = await run()
      times.push(time)
      total += time
      fastest = Math.min(fastest, time)
    } while (!isOver())
    return times
  }

  /** Milliseconds of the first run; 0 if it was not timed alone. */
  firstTime(prepared: Binding): number {
    return this.#firstTimes.get(prepared) ?? 0
  }

  /** Measures kernels against each other. @param share - Fraction of the usual effort, in (0, 1] */
  async measure(
    prepared: readonly Binding[],
    share: number,
    signal?: AbortSignalLike,
  ): Promise<readonly Outcome[]> {
    if (prepared.length === 0) return []
    const { rounds = 30, seconds = 1, seed = 1 } = this.options
    const options = {
      rounds: Math.max(MIN_ROUNDS, Math.ceil(rounds * share)),
      seconds: seconds * share * prepared.length,
      seed: seed + this.#rounds++,
      ...(Number.isFinite(this.#fastest) && { fastest: this.#fastest }),
      warmups: prepared.every((p) => this.firstTime(p) > LONG_MS) ? WARMUPS.long : WARMUPS.short,
      ...(signal && { signal }),
    }
    const { outcomes: found } = await this.#withLock(
      () => measureRounds(this.device, prepared, { ...options, reference: this.#reference }),
      signal,
    )
    const outcomes = found.map((o, k) => withWarmRuns(o, this.#warmTimes.get(prepared[k]!)))
    for (const o of outcomes)
      if (o.status === 'measured') this.#fastest = Math.min(this.#fastest, o.timing.median)
    return outcomes
  }

  /**
   * Minimum milliseconds of kernels that are repeatedly prepared anew, warmed up and timed in turns, because a busy host
   * delays most runs. NaN for kernels that fault.
   * @throws SptError as `bind`; the abort reason of `signal`
   */
  async measureFresh(
    compiled: readonly Built[],
    seed: number,
    signal?: AbortSignalLike,
  ): Promise<readonly number[]> {
    const prepared: Binding[] = []
    using _ = atEnd(() => {
      for (const p of prepared) p.free()
    })
    for (const c of compiled) prepared.push(await this.data.bind(c))
    return await this.#withLock(async () => {
      for (const p of prepared) await this.#runWarm(p, signal)
      const options = { ...FRESH_SAMPLING, seed, signal, reference: this.#reference }
      const { outcomes } = await measureRounds(this.device, prepared, options)
      return outcomes.map((o) => (o.status === 'measured' ? Math.min(...o.timing.samples) : Number.NaN))
    }, signal)
  }

  free(): void {
    this.#reference?.free()
    this.#reference?.code.release()
    this.#reference = undefined
    this.data.free()
  }
}

/** Adds the warm-up runs of a candidate that was dropped early, whose few samples a busy host may have distorted. */
function withWarmRuns(o: Outcome, warmTimes: readonly number[] | undefined): Outcome {
  if (o.status !== 'measured' || !warmTimes || o.timing.samples.length >= MIN_ROUNDS) return o
  return { status: 'measured', timing: summarizeSamples([...o.timing.samples, ...warmTimes]) }
}
