/**
 * Placement of elements in ready-made arrays of formats: each is where the map puts it, in a part whose condition it
 * satisfies, as far as coordinates and lists determine this.
 */
import { neededBy } from '../../analysis/query-dependence.ts'
import { fail } from '../../ast/diagnostic.ts'
import { binary, type Expr, not, variable } from '../../ir/expr.ts'
import { someExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import type { Condition } from '../../ir/part-tree.ts'
import { type Query, sourceOf } from '../../ir/queries.ts'
import { evaluateQueries } from '../attribute-queries.ts'
import type { Column, Frame } from '../column-engine.ts'
import { pointAt, pointOf } from '../coordinate-text.ts'
import type { Coroutine } from '../coroutines.ts'
import type { Scope } from '../engine-operands.ts'
import { checkAsked } from '../table-reads.ts'

/** `dims` are columns of the frame; `coordinates` are on the format's axes, over its columns. */
export interface Standing<C> extends Pick<Scope<C>, 'dims' | 'lists'> {
  readonly instance: FormatInstance
  readonly coordinates: ReadonlyMap<string, Expr>
  /** Conditions over `dims`. */
  readonly conditions: readonly Condition[]
}

const isOfLists = (q: Query): boolean => sourceOf(q, 'list') !== undefined

/** True if coordinates and these lists determine an expression. */
const isTold = (e: Expr, queries: readonly Query[], lists: ReadonlySet<string>): boolean =>
  neededBy(e, queries).every(isOfLists) && !someExpr(e, (x) => x.kind === 'load' && !lists.has(x.buffer))

/** True if elements must be checked: maps with lists, and conditions, may contradict their placement. */
export const isToldOf = (
  { tables }: FormatInstance,
  conditions: readonly Condition[],
  lists: ReadonlyMap<string, unknown>,
): boolean =>
  tables.some((t) => t.of === 'list') ||
  conditions.some((c) => isTold(c.where, c.queries, new Set(lists.keys())))

/**
 * Checks the placement of elements. With another list than the arrays were built with, inverse maps yield other
 * coordinates, possibly repeated. @throws SptError `format/not-inverse`, `format/leak`, `format/map-range`,
 * `format/map-overflow`
 */
export function* checkStanding<C extends Column>(frame: Frame<C>, standing: Standing<C>): Coroutine<void> {
  const { instance, dims, coordinates, lists } = standing
  if (frame.n === 0 || dims.some((d) => !frame.column(d.name))) return
  yield* checkConditions(frame, standing)
  const given = new Set(instance.tables.flatMap((t) => (t.of === 'list' ? [t.name] : [])))
  if (given.size === 0) return
  const told = instance.order.flatMap((name, k) => {
    const e = instance.map[k]!
    return isTold(e, instance.queries, given) ? [{ name, e, asked: neededBy(e, instance.queries) }] : []
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

/**
 * Checks the condition of a part: elements that violate it may belong to no part, or to another one. @throws SptError
 * `format/leak`
 */
function* checkConditions<C extends Column>(
  frame: Frame<C>,
  { instance, dims, conditions, lists }: Standing<C>,
): Coroutine<void> {
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  const given = new Set(lists.keys())
  for (const { where, queries } of conditions) {
    if (!isTold(where, queries, given)) continue
    const asked = neededBy(where, queries)
    yield* evaluateQueries(frame, asked, scope)
    yield* checkAsked(frame, [where], dims, asked)
    const [at = -1] = yield* frame.engine.first(frame, [not(where)])
    if (at >= 0)
      fail({
        code: 'format/leak',
        message: `the arrays of ${instance.text} hold ${yield* pointAt(frame, dims, at)}, and its condition does not`,
        ...(where.span ? { span: where.span } : {}),
        expected: 'elements of which the condition of the part holds',
        hint: 'take it out, or give the list that the arrays were made with',
      })
    for (const { name } of asked) frame.drop(name)
  }
}
