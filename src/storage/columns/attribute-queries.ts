/**
 * Attribute queries (Chou, Kjolstad and Amarasinghe, PLDI 2020, section 5): one value for each stored coordinate,
 * computed by the data-parallel operations that their declarations name (`ir/formats/queries.ts`).
 */

import { rankFrom } from '../../analysis/dependence/query-dependence.ts'
import type { Interval } from '../../analysis/integers/interval.ts'
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { type Expr, int, variable } from '../../ir/expressions/expr.ts'
import type { Query, Tables } from '../../ir/formats/queries.ts'
import { asFields, boundsOfQuery, declarationOf, operandsOf, sourceOf } from '../../ir/formats/queries.ts'
import { printWithQueries } from '../../ir/print/print-expr.ts'
import { boundsIn } from './expression-bounds.ts'
import { count, minimum, rank, rankByMagnitude } from './group-queries.ts'
import { checkExpressions } from './table-reads.ts'

/**
 * Adds a column for each query under its name; queries may mention earlier ones, and those of `before`, which have columns
 * already. @throws SptError `format/map-range`, `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function* evaluateQueries<C extends Column>(
  frame: Frame<C>,
  queries: readonly Query[],
  scope: Scope<C>,
  before: readonly Query[] = [],
): Coroutine<void> {
  const tables = tablesOf(frame, scope)
  for (const [k, q] of queries.entries()) {
    const { column, dtype } = declarationOf(q)
    const derivedRank = q.kind === 'rank' ? rankFrom(q.of, q.by, queries.slice(0, k), frame.isPositive) : null
    const value = typeof column === 'function' ? column(asFields(q), tables) : derivedRank
    const sort = sourceOf(q, 'sort')
    const placeCount = sort === undefined ? undefined : lookUpGiven(scope.places, sort).length
    const sortOperand = placeCount === undefined ? undefined : { of: q, count: placeCount }
    const earlierQueries = [...before, ...queries.slice(0, k)]
    yield* checkExpressions(frame, operandsOf(q), scope.dims, earlierQueries, sortOperand)
    const bounded = column === 'least' ? checkNotNegative(frame, q, queries) : value
    const range =
      bounded && placeCount === undefined
        ? rangeOf(frame, q, bounded)
        : { lo: 0, hi: placeCount === undefined ? frame.n : Math.max(0, placeCount - 1) }
    if (!range || range.lo < 0) frame.signed.add(q.name)
    if (value) frame.engine.compute(frame, q.name, value)
    else yield* evaluateOverEntries(frame, q, scope)
    if (range && !dtype) frame.bounds.set(q.name, [range.lo, range.hi])
  }
}

/** Bounds of a query, from its expression and declaration; segments of values that are not negative are at least 0. */
function rangeOf<C extends Column>(
  frame: Frame<C>,
  q: Query,
  column: Expr,
): { readonly lo: number; readonly hi: number } | undefined {
  const boundsOfExpr = (e: Expr): Interval | undefined => boundsIn(frame, e)
  const { least } = boundsOfQuery(q, {
    distinctTuples: () => undefined,
    list: (_, of) => ((boundsOfExpr(of)?.lo ?? -1) >= 0 ? { least: int(0) } : {}),
    sort: () => ({}),
  })
  const range = boundsOfExpr(column)
  return range && least?.kind === 'const'
    ? { lo: Math.max(range.lo, least.value), hi: Math.max(range.hi, least.value) }
    : range
}

function* evaluateOverEntries<C extends Column>(frame: Frame<C>, q: Query, scope: Scope<C>): Coroutine<void> {
  const { engine } = frame
  const { column } = declarationOf(q)
  if (column === 'takeValues') {
    if (!scope.values) return engine.compute(frame, q.name, int(1))
    frame.signed.add(q.name)
    return engine.takeValues(frame, q.name, scope.values)
  }
  invariant('by' in q, `${q.kind} has groups`)
  if (column === 'rankByMagnitude') return yield* rankByMagnitude(frame, q, scope)
  if (q.kind === 'least') return yield* minimum(frame, q)
  if (q.kind === 'rank') return yield* rank(frame, q)
  invariant(q.kind === 'count', `${q.kind} counts`)
  const queriedNames = new Set([...q.by, ...q.of].flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
  const distinct = scope.distinct && scope.dims.every((d) => queriedNames.has(d.name))
  yield* count(frame, q, distinct)
}

/** The operand of a minimum, checked to be non-negative. @throws SptError `format/least-range` */
function checkNotNegative<C extends Column>(frame: Frame<C>, q: Query, queries: readonly Query[]): Expr {
  const operand = operandsOf(q)[0]!
  const range = boundsIn(frame, operand)
  if (frame.n === 0 || (range && range.lo >= 0)) return operand
  return failWith(
    'format/least-range',
    `the argument ${printWithQueries(operand, queries)} of ${q.kind} may be negative`,
    {
      ...(q.span && { span: q.span }),
      expected: 'an expression that is not negative for any coordinates',
      hint: 'use a remainder (e % 65536) or max(e, 0)',
    },
  )
}

function lookUpGiven<T>(byName: ReadonlyMap<string, T>, name: string): T {
  const value = byName.get(name)
  invariant(value, `${name} comes with the data`)
  return value
}

function tablesOf<C extends Column>(frame: Frame<C>, scope: Scope<C>): Tables {
  return {
    dims: scope.dims.map((d) => variable(d.name)),
    list(name) {
      const list = lookUpGiven(scope.lists, name)
      const knownList = frame.lists.get(name)
      frame.tables.set(`@list ${name}`, list)
      if (knownList) frame.lists.set(`@list ${name}`, knownList)
      return { table: `@list ${name}`, length: frame.bindSize(list.length, `@length ${name}`) }
    },
    sort(name) {
      frame.tables.set(`@places ${name}`, lookUpGiven(scope.places, name))
      return `@places ${name}`
    },
    set(name) {
      const levels = lookUpGiven(scope.sets, name)
      if (levels.some((l) => l.indices.length === 0)) return null
      return levels.map((level, k) => {
        const [indptr, indices] = [`@set ${k} indptr`, `@set ${k} indices`]
        frame.tables.set(indptr, level.indptr)
        frame.tables.set(indices, level.indices)
        return { indptr, indices }
      })
    },
  }
}
