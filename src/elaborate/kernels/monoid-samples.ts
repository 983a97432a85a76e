/**
 * Checks of a reducer's properties (associativity, commutativity, identity) on samples. The samples are positive,
 * because a reducer may be meant for a part of the numbers (weights, counts). Values in bound data are checked if
 * results differ (`run/verify/reducer-faults.ts`).
 */
import { isFloat } from '../../ir/values/dtype.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { monoidLaws } from '../../reference/evaluation/monoid-laws.ts'

const SAMPLES = 24

/** Describes a violated property, with numbers; null if every sample satisfies all properties. */
export function violation(m: Monoid): string | null {
  const laws = monoidLaws(m)
  let state = 12345
  const next = (): number => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state / 0x80000000
  }
  const sample = (k: number): number[] =>
    m.fields.map((f) =>
      isFloat(f.dtype)
        ? 0.1 + 4 * next()
        : f.dtype === 'bool'
          ? Math.floor(2 * next())
          : 1 + ((k * 7 + Math.floor(next() * 6)) % 19),
    )
  for (let k = 0; k < SAMPLES; k++) {
    const wrong = laws.violation(sample(3 * k), sample(3 * k + 1), sample(3 * k + 2))
    if (wrong) return wrong
  }
  return null
}
