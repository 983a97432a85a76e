/**
 * Inverse coordinate remapping: from stored coordinates to those of the tensor, by expressions and the tables they
 * load.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { GivenList } from '../../columns/frame-knowledge.ts'
import type { CoordinateList } from '../../ir/coordinates/coordinate-lists.ts'
import { all, type Expr, ge, int, lt, select, variable } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { type FormatOperands, givenList } from '../format-operands.ts'

/** An array that expressions load, and its value for out-of-range indices. */
export interface FilledTable<C> {
  readonly column: C
  readonly fill: number
  /** The list that it holds, if it is given with the data: out-of-range reads are rejected. */
  readonly list?: GivenList | undefined
}

export type Tables<C> = ReadonlyMap<string, FilledTable<C>>

/** The map from stored coordinates back to those of the tensor. */
export interface Inverse<C> {
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** One expression per dimension, over the names of the axes. */
  readonly exprs: readonly Expr[]
  readonly sizes: ReadonlyMap<string, number>
  readonly tables: Tables<C>
  /** The coordinate lists that the expressions load. */
  readonly lists?: readonly CoordinateList[]
}

/** Guards loads such that out-of-range indices read `fill`. */
export function guardLoads<C extends Column>(frame: Frame<C>, e: Expr, tables: Tables<C>): Expr {
  if (frame.engine.fillsTables) return e
  return rewriteExpr(e, (x) => {
    if (x.kind !== 'load') return undefined
    const table = tables.get(x.buffer)
    const index = x.index[0]
    if (!table || !index) return undefined
    return select(all([ge(index, int(0)), lt(index, variable(`@length ${x.buffer}`))]), x, int(table.fill))
  })
}

/** Binds tables and their lengths to a frame. */
export function bindTables<C extends Column>(frame: Frame<C>, tables: Tables<C>): void {
  for (const [name, { column, fill, list }] of tables) {
    frame.tables.set(name, column)
    if (list) frame.lists.set(name, list)
    frame.fills.set(name, fill)
    frame.sizes.set(`@length ${name}`, column.length)
  }
}

/** The tables that a format's inverse map loads. */
export function inverseTables<C>(
  instance: FormatInstance,
  tables: ReadonlyMap<string, C>,
  sizes: ReadonlyMap<string, number>,
  given: Pick<FormatOperands, 'lists'>,
): Tables<C> {
  return new Map(
    instance.tables.map(({ name, kind: of, source, fill }) => {
      const column = tables.get(name)
      invariant(column, `nothing gives the table ${name}`)
      const list = of === 'list' ? givenList(given, source) : undefined
      return [name, { column, fill: evaluate(fill, sizes), list }]
    }),
  )
}
