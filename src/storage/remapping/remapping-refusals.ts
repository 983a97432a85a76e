/** Diagnostics for a coordinate that a part's map puts outside its axes, or that its inverse does not map back. */
import { fail, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Coroutine } from '../../columns/coroutines.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { type Expr, variable } from '../../ir/expressions/expr.ts'
import type { PartInstance } from '../../ir/formats/format.ts'
import { queriesIn } from '../../ir/print/print-queries.ts'
import { pointOf } from '../coordinate-checks.ts'

/**
 * A part, the coordinates that its map yields, and the coordinates that its inverse restores (over the
 * frame).
 */
export interface MapContext<C extends Column> {
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
  return fail({
    code: 'format/map-range',
    message: `at ${pointOf(dims, values.slice(0, dims.length))}${queryText && `, where ${queryText},`} the coordinate on ${name} is ${mapped[k]}`,
    ...(span ? { span } : {}),
    expected:
      extent === undefined ? '0 or more' : `0 to ${extent - 1}, the extent of ${name} being ${extent}`,
    hint: 'correct the map, or the extent of the axis',
  })
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
  return fail({
    code: 'format/not-inverse',
    message: `the inverse of ${instance.text} does not undo the map${label === '' ? '' : ` in part ${label}`}: ${pointOf(names, original)} goes to ${pointOf([...r.coordinates.keys()], mapped)}, and that back to (${restored.join(', ')})`,
    ...(culprit?.span ? { span: culprit.span } : {}),
    expected: 'the original coordinate',
    hint: 'the map must keep different coordinates apart, and the inverse must name the old coordinates in order',
  })
}
