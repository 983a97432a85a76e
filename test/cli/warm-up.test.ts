/** `spt run` reports warm runs, and the first one by itself. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { warmUp } from '../../src/cli/run/phase-timer.ts'
import { property } from '../support/property.ts'

property([fc.integer({ min: 0, max: 400 }), fc.integer({ min: 0, max: 40 })])(
  'runs are repeated until the total time suffices, however fast they become',
  async (cold, warm) => {
    let [now, done] = [0, 0]
    const run = async (): Promise<void> => {
      now += done++ === 0 ? cold : warm
    }
    const { first, runs } = await warmUp(run, () => now)
    expect([first, runs]).toEqual([cold, done])
    // A long first run is the only one; others go on.
    const wanted = cold >= 100 ? 1 : warm === 0 ? 50 : Math.min(50, 1 + Math.ceil((100 - cold) / warm))
    expect(runs).toBe(wanted)
  },
)
