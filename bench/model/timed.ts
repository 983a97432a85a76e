/**
 * Times that hold for a chip at full speed. One that idles between short runs may lower its clock (an H100 to 345 MHz from
 * 1980), and a queue that waits for the host after each run, as that of WebGPU does, lets it idle: so there is work before
 * samples count. Whatever disturbs a run slows it: of several rounds the least is kept.
 */
import type { MeasureOptions } from '../../src/runtime/measure.ts'
import { median } from '../support.ts'
import { type Measured, summary } from './records.ts'

/** Microseconds of runs, one by one or the means of batches. */
export type Samples = (options: MeasureOptions) => Promise<readonly number[]>

type Timed = Pick<Measured, 'median' | 'low' | 'high' | 'samples' | 'back'>

/** Microseconds under which runs are timed back to back as well. */
const SHORT = 60
const BATCH = 20
/** Microseconds that the samples of a kernel may take together. */
const PATIENCE = 100_000
/** Microseconds of work before samples count, in as many runs at most. */
const WARM = 20_000
const MOST_RUNS = 512
/** Rounds agree where their medians differ by no more than this share. */
const AGREED = 0.03
const LEAST_ROUNDS = 2
const MOST_ROUNDS = 6

export async function timed(samples: Samples): Promise<Timed> {
  const once = median(await samples({ warmups: 2, repeats: 3 }))
  const warm = Math.min(MOST_RUNS, Math.max(1, Math.ceil(WARM / once)))
  const repeats = Math.max(5, Math.min(25, Math.round(PATIENCE / once)))
  const single = await settled(async () => {
    await samples({ warmups: 0, repeats: 1, batch: warm })
    return samples({ warmups: 3, repeats })
  })
  if (median(single) >= SHORT) return { ...summary(single), back: null }
  const back = await settled(() => samples({ warmups: BATCH, repeats: 9, batch: BATCH }))
  return { ...summary(single), back: median(back) }
}

/** The samples of the fastest round, once a second one agrees with it. */
export async function settled(round: () => Promise<readonly number[]>): Promise<readonly number[]> {
  const rounds: (readonly number[])[] = []
  while (rounds.length < MOST_ROUNDS) {
    rounds.push(await round())
    rounds.sort((a, b) => median(a) - median(b))
    const [first, second] = rounds
    if (rounds.length >= LEAST_ROUNDS && median(second!) <= (1 + AGREED) * median(first!)) break
  }
  return rounds[0]!
}
