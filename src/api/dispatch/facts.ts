/**
 * Facts for the conditions of dispatches and search spaces: one interface, with an implementation for each source. `SizeFacts`: sizes and
 * properties of the device. `statistics.ts`: statistics of the bound data. `last-run.ts`: measurements by runs.
 */

import { type Diagnostic, fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Var } from '../../ir/expressions/expr.ts'
import { missingValue } from '../../storage/format-operands.ts'
import { type BoundValues, sizesOf } from '../inputs/bound-inputs.ts'
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

export class SizeFacts implements Facts {
  readonly sizes: ReadonlyMap<string, number>
  readonly #by: string
  readonly #property: (v: Var) => number | undefined

  /** `property`: properties of the device by name. */
  constructor(kernel: Kernel1, given: BoundValues, property: (v: Var) => number | undefined) {
    this.sizes = sizesOf(kernel, given)
    this.#by = given.by
    this.#property = property
  }

  /** Throws SptError `bind/missing-size`, `api/argument`, `choose/unknown-…`. */
  value(variable: Var): number {
    return this.#property(variable) ?? this.sizes.get(variable.name) ?? fail(this.missing(variable.name))
  }

  missing(name: string): Diagnostic {
    return missingValue({ name, of: `(${this.#by} depends on it)` })
  }
}
