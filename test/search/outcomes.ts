/** Outcomes of points, drawn and made up. */
import type { Outcome, Point } from '../../src/search/types.ts'
import type { Choices } from '../support/choices.ts'

export const measured = (ms: number): Outcome => ({
  status: 'measured',
  timing: { median: ms, interval: [ms, ms], samples: [ms] },
})

/** Of every kind, medians that no clock gives among them. */
export function drawnOutcome(c: Choices): Outcome {
  const kind = c.below(8)
  if (kind === 0) return { status: 'rejected', code: c.pick(['schedule/a', 'emit/b']), message: 'no' }
  if (kind === 1) return { status: 'failed', code: 'device/out-of-memory', message: 'no' }
  if (kind === 2) return { status: 'wrong', message: 'differs' }
  if (kind === 3)
    return measured(c.pick([0, Number.NaN, Number.POSITIVE_INFINITY, -1, 1e-300, Number.MAX_VALUE]))
  return measured(1 + c.below(100))
}

/** A number for a point by its values, the same each time. */
export function landscape(point: Point): number {
  let h = 2166136261
  for (const ch of JSON.stringify(point)) h = Math.imul(h ^ ch.charCodeAt(0), 16777619) >>> 0
  return 1 + (h % 1000) / 100
}
