/** Statistics given by the caller, such as `{ 'longest(j)': 700 }`, for the names in a dispatch. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Choice } from '../../elaborate/index.ts'
import { expectArgument, isRecord } from '../inputs/argument-checks.ts'

/** Returns the statistics by their names in the dispatch. Throws SptError `api/argument`, `choose/unknown-name`. */
export function callerStatistics(
  { kernel, name: own, statistics }: Pick<Choice, 'kernel' | 'name' | 'statistics'>,
  given: Readonly<Record<string, number>>,
): ReadonlyMap<string, number> {
  expectArgument(isRecord(given), 'statistics', given, "numbers by name: { 'longest(j)': 700 }")
  const candidates = [...statistics.keys()]
  const known = new Map<string, number>()
  for (const [name, value] of Object.entries(given)) {
    expectArgument(
      typeof value === 'number' && value >= 0 && value < Infinity,
      `the value of ${name}`,
      value,
      'a finite number that is not negative',
    )
    const meant = candidates.find((c) => unspaced(c) === unspaced(name))
    expectArgument(
      meant === undefined || !known.has(meant),
      'statistics',
      name,
      'each statistic once, however it is spaced',
    )
    if (meant !== undefined) known.set(meant, value)
    else
      fail({
        code: 'choose/unknown-name',
        message: `${kernel}.${own} does not depend on ${name}`,
        lookup: { name, candidates },
        expected: candidates.join(', ') || 'no statistics',
      })
  }
  return known
}

/** Removes blanks, so that names match regardless of spacing. */
const unspaced = (name: string): string => name.replace(/\s+/g, '')
