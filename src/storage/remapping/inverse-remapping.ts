/**
 * Inverse coordinate remapping: from stored coordinates to those of the tensor, by expressions and the tables they
 * load. Coordinates outside of the axes, or that the inverse does not map back, are rejected.
 */
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import type { GivenList } from '../../columns/frame-knowledge.ts'
import type { CoordinateList } from '../../ir/coordinates/derived-names.ts'
import { all, type Expr, ge, int, lt, select, variable } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance, PartInstance } from '../../ir/formats/format.ts'
import { queriesIn } from '../../ir/print/print-expr.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { type FormatOperands, givenList } from '../format-operands.ts'
import { pointOf } from '../storage.ts'

/** An array that expressions load, and its value for out-of-range indices. */
export interface FilledTable<C> {
  readonly column: C
  readonly fill: number
  /** The list that it holds, if it is given with the data: out-of-range reads are rejected. */
  readonly list?: GivenList | undefined
}

export type Tables<C> = ReadonlyMap<string, FilledTable<C>>

export interface Inverse<C> {
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** One expression per dimension, over the names of the axes. */
  readonly exprs: readonly Expr[]
  readonly sizes: ReadonlyMap<string, number>
  readonly tables: Tables<C>
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

export function bindTables<C extends Column>(frame: Frame<C>, tables: Tables<C>): void {
  for (const [name, { column, fill, list }] of tables) {
    frame.tables.set(name, column)
    if (list) frame.lists.set(name, list)
    frame.fills.set(name, fill)
    frame.sizes.set(`@length ${name}`, column.length)
  }
}

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

// Diagnostics for a coordinate that a part's map puts outside its axes, or that its inverse does not map
// back.

/** A part, the coordinates that its map yields, and those that its inverse restores, over the frame. */
interface MapContext<C extends Column> {
  readonly frame: Frame<C>
  readonly part: PartInstance
  readonly coordinates: ReadonlyMap<string, Expr>
  readonly extents: ReadonlyMap<string, number>
  readonly restored: readonly Expr[]
  readonly dims: Scope<C>['dims']
}

/** Reports a coordinate outside its axis. @throws SptError `format/map-range` */
export function* rejectOutOfExtent<C extends Column>(r: MapContext<C>, entry: number): Coroutine<never> {
  const { frame, extents } = r
  const names = [...r.coordinates.keys()]
  const dims = r.dims.map((d) => d.name)
  const exprs = [...dims.map((n) => variable(n)), ...r.coordinates.values()]
  const values = yield* frame.engine.valuesAt(frame, exprs, entry)
  const mapped = values.slice(dims.length)
  const k = mapped.findIndex((x, d) => x < 0 || x >= (extents.get(names[d]!) ?? Number.POSITIVE_INFINITY))
  const name = names[k]
  invariant(name !== undefined, 'a coordinate leaves its axis')
  const extent = extents.get(name)
  const { order, map, lists } = r.part.instance
  const mapExpr = map[order.indexOf(name)] ?? lists.find((l) => l.axis.name === name)!.coordinate
  const { span } = mapExpr
  const queries = queriesIn(mapExpr, r.part.instance)
  const queryVariables = queries.map(({ name }) => variable(name))
  const queryValues =
    queryVariables.length > 0 ? yield* frame.engine.valuesAt(frame, queryVariables, entry) : []
  const queryText = queries.map(({ text }, d) => `${text} is ${queryValues[d]}`).join(' and ')
  return failWith(
    'format/map-range',
    `at ${pointOf(dims, values.slice(0, dims.length))}${queryText && `, where ${queryText},`} the coordinate on ${name} is ${mapped[k]}`,
    {
      ...(span && { span }),
      expected:
        extent === undefined ? '0 or more' : `0 to ${extent - 1}, the extent of ${name} being ${extent}`,
      hint: 'correct the map, or the extent of the axis',
    },
  )
}

/** Reports a coordinate that the inverse does not restore. @throws SptError `format/not-inverse` */
export function* rejectNotInverse<C extends Column>(r: MapContext<C>, entry: number): Coroutine<never> {
  const { instance, label } = r.part
  const names = r.dims.map((d) => d.name)
  const exprs = [...names.map((n) => variable(n)), ...r.coordinates.values(), ...r.restored]
  const values = yield* r.frame.engine.valuesAt(r.frame, exprs, entry)
  const [original, mapped] = [values.slice(0, names.length), values.slice(names.length, -names.length)]
  const restored = values.slice(-names.length)
  const culprit = instance.inverse[restored.findIndex((x, d) => x !== original[d])]
  return failWith(
    'format/not-inverse',
    `the inverse of ${instance.text} does not undo the map${label === '' ? '' : ` in part ${label}`}: ${pointOf(names, original)} goes to ${pointOf([...r.coordinates.keys()], mapped)}, and that back to (${restored.join(', ')})`,
    {
      ...(culprit?.span ? { span: culprit.span } : {}),
      expected: 'the original coordinate',
      hint: 'the map must keep different coordinates apart, and the inverse must name the old coordinates in order',
    },
  )
}
