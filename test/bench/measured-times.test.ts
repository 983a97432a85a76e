/** What times are kept: those of the fastest round, once a second one agrees with it. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { settled } from '../../bench/model/timed.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

/** Each slower than the one before by more than what counts as agreement. */
const disturbances = fc
  .array(fc.double({ min: 1.05, max: 3, noNaN: true }), { maxLength: 4 })
  .map((steps) => steps.map((_, k) => steps.slice(0, k + 1).reduce((a, b) => a * b, 1)))
  .chain((factors) => fc.shuffledSubarray(factors, { minLength: factors.length }))

property([fc.integer({ min: 1, max: 1000 }), disturbances], { numRuns: runs(100) })(
  'disturbed rounds are ignored unless two rounds agree',
  async (us, factors) => {
    const rounds = [...factors, 1, 1.01].map((f) => f * us)
    const kept = await settled(async () => {
      const time = rounds.shift()!
      return [time, time, time]
    })
    expect(kept[0]).toBe(us)
  },
)
