/**
 * Times that hold for a chip at full speed, to which `measure` brings it (`src/runtime/measure.ts`). Whatever disturbs a run
 * slows it: of several rounds the least is kept.
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
/** Rounds agree where their medians differ by no more than this share. */
const AGREED = 0.03
const LEAST_ROUNDS = 2
const MOST_ROUNDS = 6

export async function timed(samples: Samples): Promise<Timed> {
  const once = median(await samples({ warmups: 2, repeats: 3 }))
  const repeats = Math.max(5, Math.min(25, Math.round(PATIENCE / once)))
  const single = await settled(() => samples({ warmups: 3, repeats }))
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
