/** Ready-made arrays of formats that take lists: elements stand where the map puts them, as far as lists alone say. */
import { neededBy } from '../../analysis/query-dependence.ts'
import { fail } from '../../ast/diagnostic.ts'
import { binary, type Expr, variable } from '../../ir/expr.ts'
import { someExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { type Query, sourceOf } from '../../ir/queries.ts'
import { evaluateQueries } from '../attribute-queries.ts'
import type { Column, Frame } from '../column-engine.ts'
import { pointOf } from '../coordinate-text.ts'
import type { Coroutine } from '../coroutines.ts'
import type { Scope } from '../engine-operands.ts'
import { checkAsked } from '../table-reads.ts'

/** `dims` are columns of the frame; `coordinates`: on the format's axes, over its columns. */
export interface Standing<C> extends Pick<Scope<C>, 'dims' | 'lists'> {
  readonly instance: FormatInstance
  readonly coordinates: ReadonlyMap<string, Expr>
}

/**
 * Under another list than the one that arrays were made with, inverse maps give other coordinates, some of them twice.
 * @throws SptError `format/not-inverse`
 */
export function* checkStanding<C extends Column>(
  frame: Frame<C>,
  { instance, dims, coordinates, lists }: Standing<C>,
): Coroutine<void> {
  const given = new Set(instance.tables.flatMap((t) => (t.of === 'list' ? [t.name] : [])))
  if (given.size === 0 || frame.n === 0 || dims.some((d) => !frame.column(d.name))) return
  const found = (q: Query): boolean => sourceOf(q, 'list') !== undefined
  const told = instance.order.flatMap((name, k) => {
    const e = instance.map[k]!
    const asked = neededBy(e, instance.queries)
    const loads = someExpr(e, (x) => x.kind === 'load' && !given.has(x.buffer))
    return asked.every(found) && !loads ? [{ name, e, asked }] : []
  })
  const asked = instance.queries.filter((q) => told.some((t) => t.asked.includes(q)))
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  yield* evaluateQueries(frame, asked, scope)
  yield* checkAsked(
    frame,
    told.map(({ e }) => e),
    dims,
    asked,
  )
  const wrong = told.map(({ name, e }) => binary('ne', e, coordinates.get(name)!))
  const [at = -1] =
    wrong.length === 0 ? [] : yield* frame.engine.first(frame, [wrong.reduce((a, b) => binary('or', a, b))])
  if (at >= 0) {
    const stands = told.map(({ name }) => coordinates.get(name)!)
    const exprs = [...dims.map((d) => variable(d.name)), ...stands, ...told.map(({ e }) => e)]
    const values = yield* frame.engine.valuesAt(frame, exprs, at)
    const [n, k] = [dims.length, told.length]
    const dimensions = pointOf(
      dims.map((d) => d.name),
      values.slice(0, n),
    )
    const place = pointOf(
      told.map((t) => t.name),
      values.slice(n, n + k),
    )
    fail({
      code: 'format/not-inverse',
      message: `the arrays of ${instance.text} hold ${dimensions} at ${place}, and the map puts it at (${values.slice(n + k).join(', ')})`,
      expected: 'elements where the map puts them',
      hint: 'give the list that the arrays were made with',
    })
  }
  for (const { name } of asked) frame.drop(name)
}
