/**
 * Placement of elements in ready-made arrays of formats: each element must be at the coordinate that the map
 * yields, in a part whose condition it satisfies. This is checked as far as coordinates and lists determine
 * it.
 */
import { neededBy } from '../../analysis/dependence/query-dependence.ts'
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Coroutine } from '../../columns/coroutines.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { binary, type Expr, not, variable } from '../../ir/expressions/expr.ts'
import { someExpr } from '../../ir/expressions/expr-tree.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import type { Condition } from '../../ir/formats/part-tree.ts'
import { type Query, sourceOf } from '../../ir/formats/queries.ts'
import { evaluateQueries } from '../columns/attribute-queries.ts'
import { checkExpressions } from '../columns/table-reads.ts'
import { pointAt, pointOf } from '../coordinate-checks.ts'

/** `dims` are columns of the frame; `coordinates` are on the format's axes, over its columns. */
export interface Placement<C> extends Pick<Scope<C>, 'dims' | 'lists'> {
  readonly instance: FormatInstance
  readonly coordinates: ReadonlyMap<string, Expr>
  /** Conditions over `dims`. */
  readonly conditions: readonly Condition[]
}

const readsList = (q: Query): boolean => sourceOf(q, 'list') !== undefined

/** True if the coordinates and the given lists determine the value of an expression. */
const isDetermined = (e: Expr, queries: readonly Query[], lists: ReadonlySet<string>): boolean =>
  neededBy(e, queries).every(readsList) && !someExpr(e, (x) => x.kind === 'load' && !lists.has(x.buffer))

/**
 * True if the placement of elements must be checked, because a map with lists, or a condition, may contradict
 * it.
 */
export const needsPlacementCheck = (
  { tables }: FormatInstance,
  conditions: readonly Condition[],
  lists: ReadonlyMap<string, unknown>,
): boolean =>
  tables.some((t) => t.kind === 'list') ||
  conditions.some((c) => isDetermined(c.where, c.queries, new Set(lists.keys())))

/**
 * Checks the placement of elements. If the list differs from the one that the arrays were built with, inverse
 * maps yield other coordinates, possibly repeated. @throws SptError `format/not-inverse`, `format/leak`,
 * `format/map-range`, `format/map-overflow`
 */
export function* checkPlacement<C extends Column>(frame: Frame<C>, placement: Placement<C>): Coroutine<void> {
  const { instance, dims, coordinates, lists } = placement
  if (frame.n === 0 || dims.some((d) => !frame.column(d.name))) return
  yield* checkConditions(frame, placement)
  const listNames = new Set(instance.tables.flatMap((t) => (t.kind === 'list' ? [t.name] : [])))
  if (listNames.size === 0) return
  const determined = instance.order.flatMap((name, k) => {
    const e = instance.map[k]!
    return isDetermined(e, instance.queries, listNames)
      ? [{ name, e, needed: neededBy(e, instance.queries) }]
      : []
  })
  const queries = instance.queries.filter((q) => determined.some((t) => t.needed.includes(q)))
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  yield* evaluateQueries(frame, queries, scope)
  yield* checkExpressions(
    frame,
    determined.map(({ e }) => e),
    dims,
    queries,
  )
  const mismatches = determined.map(({ name, e }) => binary('ne', e, coordinates.get(name)!))
  const [entry = -1] =
    mismatches.length === 0
      ? []
      : yield* frame.engine.findFirst(frame, [mismatches.reduce((a, b) => binary('or', a, b))])
  if (entry >= 0) {
    const storedExprs = determined.map(({ name }) => coordinates.get(name)!)
    const exprs = [...dims.map((d) => variable(d.name)), ...storedExprs, ...determined.map(({ e }) => e)]
    const values = yield* frame.engine.valuesAt(frame, exprs, entry)
    const [n, k] = [dims.length, determined.length]
    const dimensions = pointOf(
      dims.map((d) => d.name),
      values.slice(0, n),
    )
    const storedPoint = pointOf(
      determined.map((t) => t.name),
      values.slice(n, n + k),
    )
    fail({
      code: 'format/not-inverse',
      message: `the arrays of ${instance.text} hold ${dimensions} at ${storedPoint}, and the map puts it at (${values.slice(n + k).join(', ')})`,
      expected: 'elements where the map puts them',
      hint: 'give the list that the arrays were made with',
    })
  }
  for (const { name } of queries) frame.drop(name)
}

/**
 * Checks the condition of a part: elements that violate it may belong to no part, or to another part. @throws
 * SptError `format/leak`
 */
function* checkConditions<C extends Column>(
  frame: Frame<C>,
  { instance, dims, conditions, lists }: Placement<C>,
): Coroutine<void> {
  const scope = { dims, lists, values: null, distinct: false, places: new Map(), sets: new Map() }
  const listNames = new Set(lists.keys())
  for (const { where, queries } of conditions) {
    if (!isDetermined(where, queries, listNames)) continue
    const needed = neededBy(where, queries)
    yield* evaluateQueries(frame, needed, scope)
    yield* checkExpressions(frame, [where], dims, needed)
    const [entry = -1] = yield* frame.engine.findFirst(frame, [not(where)])
    if (entry >= 0)
      fail({
        code: 'format/leak',
        message: `the arrays of ${instance.text} hold ${yield* pointAt(frame, dims, entry)}, and its condition does not`,
        ...(where.span ? { span: where.span } : {}),
        expected: 'elements of which the condition of the part holds',
        hint: 'remove the element, or give the list that the arrays were made with',
      })
    for (const { name } of needed) frame.drop(name)
  }
}
