/**
 * Facts for the conditions of dispatches and search spaces: one interface, with an implementation for each source. `size-facts.ts`: sizes
 * and properties of the device. `statistics.ts`: statistics of the bound data. `last-run.ts`: measurements by runs.
 */
import type { Var } from '../../ir/expressions/expr.ts'
import type { Lookup } from './dispatch-conditions.ts'

/** Facts of one source. */
export interface Facts {
  /** The value of a name in conditions; Booleans are 0 and 1. Undefined if another source has the name. Throws SptError of an unknown value. */
  value(variable: Var): number | undefined
}

/** Evaluates a name by the first source that has the name; the remaining names are sizes. */
export const lookupIn =
  (sources: readonly Facts[], sizes: { value(variable: Var): number }): Lookup =>
  (variable) => {
    for (const facts of sources) {
      const value = facts.value(variable)
      if (value !== undefined) return value
    }
    return sizes.value(variable)
  }

/** Facts that are given as numbers. */
export const givenFacts = (values: ReadonlyMap<string, number>): Facts => ({
  value: ({ name }) => values.get(name),
})

/** All fill ratios as `ratio`, except that of `one`, which is 0. */
export const equalRatios = (live: ReadonlyMap<string, unknown>, ratio: number, one?: string): Facts =>
  givenFacts(new Map([...live.keys()].map((name) => [name, name === one ? 0 : ratio])))
