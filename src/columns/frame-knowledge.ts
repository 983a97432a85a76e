/** Known properties of the columns, sizes and tables of a frame, independent of their location. */

import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { type Expr, variable } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import { evaluate } from '../ir/values/evaluate.ts'
import type { Monotone } from './engine-operands.ts'

/** A list given with the data: its name there, and its ascending boundaries. */
export interface GivenList {
  readonly name: string
  readonly values: Int32Array
}

export class FrameKnowledge {
  /** Columns and tables whose elements are not all non-negative i32. */
  readonly signed = new Set<string>()
  readonly sizes: Map<string, number>
  /** The tables that are lists given with the data. Out-of-range reads are rejected. */
  readonly lists = new Map<string, GivenList>()
  /** Values of out-of-range reads of other tables, on engines that support them. */
  readonly fills = new Map<string, number>()
  /** Minimum and maximum by column or size, if known. */
  readonly bounds = new Map<string, readonly [number, number]>()
  /** Columns known to ascend within groups of entries. */
  readonly monotone = new Map<string, Monotone>()
  /** Expressions verified not to exceed 32 bits. */
  readonly rangeChecked = new WeakSet<Expr>()

  constructor(sizes: ReadonlyMap<string, number>) {
    this.sizes = new Map(sizes)
  }

  /** Minimum and maximum of a column or size, if known. */
  range(name: string): readonly [number, number] | undefined {
    const size = this.sizes.get(name)
    return this.bounds.get(name) ?? (size === undefined ? undefined : [size, size])
  }

  /** The value of an expression over sizes. @throws SptError `format/unknown-name` */
  size(e: Expr): number {
    for (const name of freeVars(e)) if (!this.sizes.has(name)) unknownName(name, [...this.sizes.keys()])
    return evaluate(e, this.sizes)
  }

  isKnown(e: Expr): boolean {
    return [...freeVars(e)].every((v) => this.sizes.has(v))
  }

  /** True if an expression is over known sizes, with a value of at least 1. */
  readonly isPositive = (e: Expr): boolean => this.isKnown(e) && this.size(e) >= 1

  /** Binds a number to a new size, so that kernels do not depend on its value. */
  bindSize(value: number, name = `@size ${this.sizes.size}`): Expr {
    this.sizes.set(name, value)
    return variable(name)
  }
}

// The error for unknown names in expressions over a frame.

/** Reports an unknown name. @throws SptError `format/unknown-name` */
export function unknownName(name: string, candidates: readonly string[]): never {
  return failWith('format/unknown-name', `${name} is not a coordinate, size or table here`, {
    lookup: { name, candidates },
    expected: `one of ${candidates.join(', ')}`,
    hint: 'a map uses coordinates, sizes and queries of the format',
  })
}
