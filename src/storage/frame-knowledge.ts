/** What is known of the columns, sizes and tables of a frame, wherever they lie. */
import { evaluate } from '../ir/evaluate.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { GivenList } from './format-operands.ts'
import type { Rising } from './sort-elision.ts'
import { unknownName } from './unknown-name.ts'

export class FrameKnowledge {
  /** Columns and tables with other elements than non-negative i32. */
  readonly signed = new Set<string>()
  readonly sizes: Map<string, number>
  /** Lists among the tables, which come with the data. Nothing is read beyond them. */
  readonly lists = new Map<string, GivenList>()
  /** What loads beyond other tables read, where the engine does so. */
  readonly fills = new Map<string, number>()
  /** Least and greatest value, where known: by column or size. */
  readonly bounds = new Map<string, readonly [number, number]>()
  /** Columns that are known to rise. */
  readonly rising = new Map<string, Rising>()
  /** Expressions of which it was looked at that 32 bits hold all that they compute. */
  readonly fitting = new WeakSet<Expr>()

  constructor(sizes: ReadonlyMap<string, number>) {
    this.sizes = new Map(sizes)
  }

  /** Least and greatest value of a column or size, where known. */
  range(name: string): readonly [number, number] | undefined {
    const size = this.sizes.get(name)
    return this.bounds.get(name) ?? (size === undefined ? undefined : [size, size])
  }

  /** Value of an expression over sizes. */
  size(e: Expr): number {
    for (const name of freeVars(e)) if (!this.sizes.has(name)) unknownName(name, [...this.sizes.keys()])
    return evaluate(e, this.sizes)
  }

  /** Whether an expression is over sizes that are known. */
  isKnown(e: Expr): boolean {
    return [...freeVars(e)].every((v) => this.sizes.has(v))
  }

  /** A size of its own for a number, so that kernels serve other sizes. */
  sized(value: number, name = `@size ${this.sizes.size}`): Expr {
    this.sizes.set(name, value)
    return variable(name)
  }
}
