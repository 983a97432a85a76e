/** Facts that need no data: sizes, and properties of the device. */
import { type Diagnostic, fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Var } from '../../ir/expressions/expr.ts'
import { missingValue } from '../../storage/format-operands.ts'
import { type BoundValues, sizesOf } from '../inputs/bound-inputs.ts'
import type { Facts } from './facts.ts'

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
