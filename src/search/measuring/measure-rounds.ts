/** Prepared kernels of one device measured against each other. */
import type { PreparedKernel } from '../../api/compiled.ts'
import { expectArgument, expectOptions } from '../../ast/expect-argument.ts'
import type { Command, Device } from '../../runtime/device.ts'
import { raiseClock } from '../../runtime/full-clock.ts'
import { Timer } from '../../runtime/measure.ts'
import { EventTurns } from './event-turns.ts'
import { medianInterval } from './median-interval.ts'
import { prepareReference } from './reference-kernel.ts'
import { type RoundsOptions, type RoundsResult, raced, type Timed } from './rounds.ts'

/** A `PreparedKernel`, or another object with commands of the device. */
export type Measurable = Pick<PreparedKernel, 'commands'>

export interface MeasureRoundsOptions extends RoundsOptions {
  /** Overwrites the caches before each sample. */
  readonly flush?: boolean | undefined
  /** Runs of each candidate before the first that counts; 5. */
  readonly warmups?: number | undefined
  /**
   * Milliseconds that a sample takes at least: shorter kernels run several times in it, in one graph, but with `flush`. 0.5.
   */
  readonly sampleMs?: number | undefined
  /**
   * Reference measured in between to correct drift: a prepared one (`prepareReference`), or `null` for none. By default one
   * is prepared for the call.
   */
  readonly reference?: Measurable | null | undefined
}

/** Launches in a graph: a sample is not made longer by more. */
const MOST_COMMANDS = 4000
const PROBES = 3

/**
 * Times of candidates on a device, of which the fastest are measured best.
 * ```ts
 * const { outcomes } = await measureRounds(device, [a, b, c])
 * ```
 * One that faults is `failed`. Outputs are afterwards those of some runs.
 * @throws SptError `search/rounds`, `measure/options`; what `signal` aborts with
 */
export async function measureRounds(
  device: Device,
  candidates: readonly Measurable[],
  options: MeasureRoundsOptions = {},
): Promise<RoundsResult> {
  checkOptions(candidates, options)
  const { flush = false, warmups = 5, sampleMs = 0.5, ...rounds } = options
  const timer = new Timer(device, flush, 'graph')
  const own = options.reference === undefined ? await prepareReference(device) : null
  try {
    const reference = options.reference ?? own
    const turns = new EventTurns(rounds.signal)
    const how = { warmups, sampleMs, most: flush ? 1 : MOST_COMMANDS, turns }
    const timed = candidates.map(({ commands }) =>
      lazily(
        () => timedOf(timer, commands, how),
        // Samples that wait for each other let the clock fall.
        () => raiseClock(device, reference?.commands ?? commands),
      ),
    )
    return await raced(
      timed,
      rounds,
      reference ? lazily(() => timedOf(timer, reference.commands, how)) : undefined,
    )
  } finally {
    timer.free()
    own?.free()
    own?.kernel.release()
  }
}

/** Faults while it is warmed up are those of its first sample. */
function lazily(make: () => Promise<Timed>, before = async (): Promise<void> => {}): Timed {
  let made: Promise<Timed> | undefined
  return {
    async sample() {
      await before()
      made ??= make()
      return (await made).sample()
    },
  }
}

interface Sampling {
  readonly warmups: number
  readonly sampleMs: number
  /** Commands of a sample. */
  readonly most: number
  readonly turns: EventTurns
}

async function timedOf(
  timer: Timer,
  commands: readonly Command[],
  { warmups, sampleMs, most, turns }: Sampling,
): Promise<Timed> {
  const once = await timer.runs(commands, 1)
  const several = async (n: number, isFlushed?: boolean): Promise<number[]> => {
    const times: number[] = []
    for (let k = 0; k < n; k++) {
      await turns.next()
      times.push(...(await once(1, isFlushed)))
    }
    return times
  }
  await several(warmups, false)
  const { median } = medianInterval(await several(PROBES))
  const needed = Math.ceil(sampleMs / Math.max(median, 1e-6))
  const batch = Math.max(1, Math.min(needed, Math.floor(most / Math.max(1, commands.length))))
  const runs = batch === 1 ? once : await timer.runs(commands, batch)
  return {
    async sample() {
      await turns.next()
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
  expectArgument(Array.isArray(candidates), 'candidates', candidates, 'a list of prepared kernels')
  expectArgument(Number.isSafeInteger(warmups) && warmups >= 0, 'warmups', warmups, 'a whole number')
  expectArgument(Number.isFinite(sampleMs) && sampleMs >= 0, 'sampleMs', sampleMs, 'milliseconds')
}
