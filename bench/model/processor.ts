/** What was measured on a processor, and how good a model's choice among it is. */
import { analyticTime, type Coefficients, partsOf } from '../../src/search/model/analytic.ts'
import type { Terms } from '../../src/search/model/terms.ts'
import { rankCorrelation } from '../../src/search/rank-correlation.ts'

export interface Timing {
  readonly kernel: string
  readonly data: string
  readonly width: number
  readonly name: string
  readonly milliseconds: number
  readonly terms: Terms
}

export const casesOf = (timings: readonly Timing[]): Map<string, Timing[]> => {
  const cases = new Map<string, Timing[]>()
  for (const t of timings) {
    const key = `${t.kernel} ${t.data} ${t.width}`
    cases.set(key, [...(cases.get(key) ?? []), t])
  }
  return cases
}

const geometric = (xs: readonly number[]): number =>
  Math.exp(xs.reduce((s, x) => s + Math.log(x), 0) / xs.length)

/** By kernel, and of all: cases; share of the best time that the model's choice reaches, and what runs unasked; ranks. */
export function judgement(
  timings: readonly Timing[],
  { coefficients }: { readonly coefficients: Coefficients },
): (string | number)[][] {
  const expected = (t: Timing): number => analyticTime(partsOf(t.terms, coefficients), coefficients)
  const rows = [...casesOf(timings).values()]
    .filter((own) => own.length >= 6)
    .map((own) => {
      const best = Math.min(...own.map((t) => t.milliseconds))
      const chosen = own.reduce((a, b) => (expected(b) < expected(a) ? b : a))
      const unasked = own.find((t) => t.name.startsWith('unasked'))
      return {
        kernel: own[0]!.kernel,
        chosen: best / chosen.milliseconds,
        unasked: unasked ? best / unasked.milliseconds : 1,
        rank: rankCorrelation(
          own.map(expected),
          own.map((t) => t.milliseconds),
        ),
      }
    })
  const kernels = [...new Set(rows.map((r) => r.kernel)), 'all']
  return kernels.map((kernel) => {
    const own = rows.filter((r) => kernel === 'all' || r.kernel === kernel)
    return [
      kernel,
      String(own.length),
      geometric(own.map((r) => r.chosen)),
      Math.min(...own.map((r) => r.chosen)),
      geometric(own.map((r) => r.unasked)),
      Math.min(...own.map((r) => r.unasked)),
      own.reduce((s, r) => s + r.rank, 0) / own.length,
    ]
  })
}
