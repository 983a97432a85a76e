/** Measures bindings of one device against each other. */
import type { Binding } from '../../api/built/binding.ts'
import { expectArgument, expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { Work } from '../../ast/work.ts'
import type { Command, Device } from '../../runtime/device.ts'
import { atEnd } from '../../runtime/dispose.ts'
import { raiseClock, Timer } from '../../runtime/measure.ts'
import { prepareReference } from './drift.ts'
import { medianInterval } from './median-interval.ts'
import { measureInRounds, type RoundsOptions, type RoundsResult, type Sampler } from './rounds.ts'

/** A `Binding`, or another object with commands of the device. */
export type Measurable = Pick<Binding, 'commands'>

export interface MeasureRoundsOptions extends RoundsOptions {
  /** Overwrites the caches before each sample. */
  readonly flush?: boolean | undefined
  /** Warm-up runs of each candidate; default 5. */
  readonly warmups?: number | undefined
  /** Minimum milliseconds of a sample, except with `flush`: short kernels run several times. Default 0.5. */
  readonly sampleMs?: number | undefined
  /**
   * Reference kernel measured in between to correct drift: a prepared one (`prepareReference`), or `null` for none. By
   * default, the call prepares one.
   */
  readonly reference?: Measurable | null | undefined
}

/** Maximum number of launches in a graph. */
const MAX_COMMANDS = 4000
const PROBES = 3

/**
 * Measures candidates on a device; the fastest are measured most precisely. A candidate that faults is `failed`.
 * Afterwards the outputs are those of an arbitrary run.
 * ```ts
 * const { outcomes } = await measureRounds(device, [a, b, c])
 * ```
 * @throws SptError `search/rounds`, `measure/options`; the abort reason of `signal`
 */
export async function measureRounds(
  device: Device,
  candidates: readonly Measurable[],
  options: MeasureRoundsOptions = {},
): Promise<RoundsResult> {
  checkOptions(candidates, options)
  const { flush = false, warmups = 5, sampleMs = 0.5, ...rounds } = options
  const timer = new Timer(device, flush, 'graph')
  const ownReference = options.reference === undefined ? await prepareReference(device) : null
  using _ = atEnd(() => {
    timer.free()
    ownReference?.free()
    ownReference?.code.release()
  })
  const reference = options.reference ?? ownReference
  const turns = new Work({ signal: rounds.signal })
  const sampling = { warmups, sampleMs, maxCommands: flush ? 1 : MAX_COMMANDS, turns }
  const samplers = candidates.map(({ commands }) =>
    lazySampler(
      () => createSampler(timer, commands, sampling),
      // While samples wait for each other, the clock falls.
      () => raiseClock(device, reference?.commands ?? commands),
    ),
  )
  return await measureInRounds(
    samplers,
    rounds,
    reference ? lazySampler(() => createSampler(timer, reference.commands, sampling)) : undefined,
  )
}

/** A sampler that is prepared and warmed up on its first sample, which reports faults of the preparation. */
function lazySampler(make: () => Promise<Sampler>, beforeSample = async (): Promise<void> => {}): Sampler {
  let sampler: Promise<Sampler> | undefined
  return {
    async sample() {
      await beforeSample()
      sampler ??= make()
      return (await sampler).sample()
    },
  }
}

interface SamplingOptions {
  readonly warmups: number
  readonly sampleMs: number
  readonly maxCommands: number
  readonly turns: Work
}

async function createSampler(
  timer: Timer,
  commands: readonly Command[],
  { warmups, sampleMs, maxCommands, turns }: SamplingOptions,
): Promise<Sampler> {
  const runOnce = await timer.runs(commands, 1)
  const runMany = async (n: number, isFlushed?: boolean): Promise<number[]> => {
    const times: number[] = []
    for (let k = 0; k < n; k++) {
      await turns.checkpoint()
      times.push(...(await runOnce(1, isFlushed)))
    }
    return times
  }
  await runMany(warmups, false)
  const { median } = medianInterval(await runMany(PROBES))
  const repetitions = Math.ceil(sampleMs / Math.max(median, 1e-6))
  const batch = Math.max(1, Math.min(repetitions, Math.floor(maxCommands / Math.max(1, commands.length))))
  const runs = batch === 1 ? runOnce : await timer.runs(commands, batch)
  return {
    async sample() {
      await turns.checkpoint()
      return (await runs(1))[0]!
    },
  }
}

function checkOptions(candidates: readonly Measurable[], options: MeasureRoundsOptions): void {
  expectOptions('measureRounds', options, [
    'rounds',
    'confidence',
    'width',
    'all',
    'fastest',
    'seconds',
    'seed',
    'signal',
    'now',
    'flush',
    'warmups',
    'sampleMs',
    'reference',
  ])
  const { warmups = 0, sampleMs = 0 } = options
  expectArgument(Array.isArray(candidates), 'candidates', candidates, 'a list of bindings')
  expectArgument(Number.isSafeInteger(warmups) && warmups >= 0, 'warmups', warmups, 'a whole number')
  expectArgument(Number.isFinite(sampleMs) && sampleMs >= 0, 'sampleMs', sampleMs, 'milliseconds')
}

// Warm-up by a kernel's own times: JavaScript engines compile loops while these run (100 times as long).

/** A run below this fraction of the minimum so far shows that the kernel is still getting faster. */
const FALL_RATIO = 0.9
/** Runs and milliseconds without such a run after which a kernel is warm: compilation takes that long. */
const STEADY = { runs: 8, milliseconds: 30 } as const
/** Warm-up limits: milliseconds for slow kernels, runs for short ones. */
const LIMITS = { runs: 300, milliseconds: 300 } as const

/**
 * Runs a kernel until its times stop falling.
 * @param run - Milliseconds of one run
 * @returns The times since the last fall, at least two
 */
export async function warmRuns(run: () => Promise<number>): Promise<readonly number[]> {
  let times: number[] = []
  let minimum = Number.POSITIVE_INFINITY
  let elapsed = 0
  const isWarm = (): boolean =>
    times.length > 1 &&
    (elapsed >= LIMITS.milliseconds ||
      times.length > LIMITS.runs ||
      (times.length > STEADY.runs && elapsed >= STEADY.milliseconds))
  while (!isWarm()) {
    const time = await run()
    if (time < FALL_RATIO * minimum) [times, minimum, elapsed] = [[], time, 0]
    else elapsed += time
    times.push(time)
  }
  return times
}
