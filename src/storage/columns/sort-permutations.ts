/** Permutations by sorting: all coordinates of a dimension, stored or not, by a format's sort key. */
import { decidedBy, neededBy } from '../../analysis/dependence/query-dependence.ts'
import { failWith, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Coroutine } from '../../ast/work.ts'
import { type Column, ENTRY, Frame } from '../../columns/column-engine.ts'
import type { Scope } from '../../columns/engine-operands.ts'
import { add, div, type Expr, int, load, mul, variable } from '../../ir/expressions/expr.ts'
import type { Sort } from '../../ir/formats/format.ts'
import { declarationOf, determiningExprs, type Query } from '../../ir/formats/queries.ts'
import { evaluateQueries } from './attribute-queries.ts'
import { keysOf } from './expression-bounds.ts'
import { rank } from './group-queries.ts'
import { checkExpressions, measure } from './table-reads.ts'

interface SortResult<C> {
  /** The place of each coordinate. */
  readonly place: C
  /** The coordinate at each place. */
  readonly at: C
}

/**
 * Evaluates `sort … by key within w`: ascending by key in windows of w coordinates, ties by coordinate. @throws SptError
 * `format/sort-query`, `format/sort-window`, and as `evaluateQueries`
 */
export function* evaluateSort<C extends Column>(
  frame: Frame<C>,
  sort: Sort,
  scope: Scope<C>,
): Coroutine<SortResult<C>> {
  const { engine } = frame
  const sortedDim = scope.dims.find((d) => d.name === sort.dim)
  const dim = sortedDim ?? { name: sort.dim, extent: Math.max(0, frame.size(sort.extent)) }
  const domain = new Frame(engine, dim.extent, frame.sizes, frame.tables)
  engine.compute(domain, dim.name, variable(ENTRY))
  domain.bounds.set(dim.name, [0, Math.max(0, dim.extent - 1)])
  for (const [name, list] of frame.lists) domain.lists.set(name, list)
  // Queries of groups are evaluated over the entries, together with all queries on which they depend. The
  // coordinates receive the values of queries on which the key depends.
  const deciding = decidedBy(sort.key, sort.queries)
  const groups = deciding.filter((q) => declarationOf(q).per === 'group')
  const needed = groups.flatMap((q) => neededBy(variable(q.name), sort.queries))
  const entryQueries = sort.queries.filter((q) => needed.includes(q))
  yield* evaluateQueries(frame, entryQueries, scope)
  let reordered = false
  // Coordinates that no entry has are known on this dimension only.
  const domainScope = { ...scope, dims: [dim] }
  for (const [k, query] of deciding.entries()) {
    if (groups.includes(query)) reordered = (yield* propagateAnswers(frame, domain, query, sort)) || reordered
    else if (declarationOf(query).per === 'coordinate')
      yield* evaluateQueries(domain, [query], domainScope, deciding.slice(0, k))
    else rejectQuery(sort, query)
  }
  yield* checkExpressions(domain, [sort.key], [dim], sort.queries)
  for (const { name } of entryQueries) frame.drop(name)
  const window = windowOf(sort, dim.extent, frame)
  // Measured ranges are often far smaller than the possible ones.
  for (const { name } of sort.queries) if (domain.column(name)) yield* measure(domain, name)
  const windows = {
    expr: div(variable(sort.dim), domain.bindSize(window, '@window')),
    extent: Math.ceil(dim.extent / window),
  }
  const ties = reordered ? [{ expr: variable(dim.name), extent: dim.extent }] : []
  const sorted = yield* engine.order(domain, [windows, { expr: sort.key }, ...ties])
  const at = sorted.column(dim.name)
  invariant(at, 'a domain has its coordinates')
  const place = engine.empty(dim.extent, sort.place)
  engine.scatter(sorted, place, variable(dim.name), variable(ENTRY))
  sorted.keep(at)
  sorted.release()
  return { place, at }
}

/** Possible key values per coordinate and entry beyond which the occurring ones are numbered first. */
const MAX_CLASSES_PER_ENTRY = 64

/** Copies a query's values to all coordinates with the same `by` (0: no entry); true if the domain was reordered. */
function* propagateAnswers<C extends Column>(
  frame: Frame<C>,
  domain: Frame<C>,
  query: Query,
  { dim, queries }: Sort,
): Coroutine<boolean> {
  const { engine } = frame
  const by = determiningExprs(query) ?? []
  yield* checkExpressions(domain, by, [{ name: dim }], queries)
  const keys = yield* keysOf(domain, by)
  keys.forEach((k, n) => {
    domain.bindSize(k.extent, `@class ${n}`)
  })
  for (const [name, value] of domain.sizes)
    if (name.startsWith('@least') || name.startsWith('@class')) frame.sizes.set(name, value)
  let size = keys.reduce((n, k) => n * k.extent, 1)
  let key = keys.reduce<Expr>(
    (sum, k, n) => (n > 0 ? add(mul(sum, variable(`@class ${n}`)), k.expr) : k.expr),
    int(0),
  )
  let classes: C | null = null
  if (size > MAX_CLASSES_PER_ENTRY * (frame.n + domain.n) + 2 ** 20) {
    yield* rank(domain, { name: '@number', of: by, by: [] })
    classes = engine.empty(domain.n, 'classes')
    engine.scatter(domain, classes, variable(dim), variable('@number'))
    for (const f of [frame, domain]) f.tables.set('@classes', classes)
    key = load('@classes', [variable(dim)])
    size = domain.n
  }
  const answers = engine.filled(Math.max(1, size), 0, query.name)
  engine.scatter(frame, answers, key, variable(query.name))
  domain.tables.set('@found', answers)
  engine.compute(domain, query.name, load('@found', [key]))
  const range = frame.range(query.name)
  if (range) domain.bounds.set(query.name, [Math.min(0, range[0]), Math.max(0, range[1])])
  domain.tables.delete('@found')
  engine.release(answers, classes)
  return classes !== null
}

/** The number of coordinates in one window of a sort. @throws SptError `format/sort-window` */
function windowOf<C extends Column>(sort: Sort, extent: number, frame: Frame<C>): number {
  const window = sort.within === null ? Math.max(1, extent) : frame.size(sort.within)
  if (window < 1)
    failWith('format/sort-window', `the sort of ${sort.dim} is within windows of ${window} coordinates`, {
      ...(sort.span && { span: sort.span }),
      expected: 'windows of at least 1 coordinate',
      hint: 'pass a positive argument, or leave `within` out to sort all of them',
    })
  return window
}

function rejectQuery(sort: Sort, q: Query): never {
  failWith(
    'format/sort-query',
    `the sort of ${sort.dim} uses ${q.kind}, which is undefined for coordinates that are not stored`,
    {
      ...(q.span && { span: q.span }),
      expected: `count(… by …) with ${sort.dim} alone after by`,
      hint: 'sort by counts, or by arithmetic of the coordinate',
    },
  )
}
