/** Requirements on sizes as conditions, in messages and dispatches. */
import type { Fact } from '../statements/loops.ts'

/** `d == 64`, or `d % 4 == 0`. */
export const factText = (f: Fact): string =>
  f.relation === 'equal' ? `${f.size} == ${f.by}` : `${f.size} % ${f.by} == 0`
