/** Sorts of a format on a device: permutations of all coordinates of a dimension by what is asked of them. */
import { invariant } from '../../../ast/diagnostic.ts'
import { add, div, type Expr, load, mul, variable } from '../../../ir/expr.ts'
import type { Query, Sort } from '../../../ir/format.ts'
import { notOfDimension, windowOf } from '../../queries/sorts.ts'
import { type Column, natural, update, write } from './column-types.ts'
import { Frame } from './frame.ts'
import { get, store } from './kernel.ts'
import { keysOf, type Scope } from './keys.ts'
import { orderBy } from './order.ts'
import { evaluateQueries } from './queries.ts'
import type { Queue } from './queue.ts'

export interface SortResult {
  /** Place of each coordinate. */
  readonly place: Column
  /** Coordinate at each place. */
  readonly at: Column
}

/**
 * Ascending by key in each window, ties by coordinate.
 * @throws SptError `format/sort-query`, `format/sort-window`, and as `evaluateQueries`
 */
export async function evaluateSort(frame: Frame, sort: Sort, scope: Scope): Promise<SortResult> {
  const { queue: q } = frame
  const dim = scope.dims.find((d) => d.name === sort.dim)
  invariant(dim, `no dimension ${sort.dim}`)
  const domain = domainOf(frame, dim)
  for (const query of sort.queries) {
    if (query.kind === 'count') await spread(frame, domain, query, scope)
    else if (query.kind === 'find' || query.kind === 'place') await evaluateQueries(domain, [query], scope)
    else notOfDimension(sort, query)
  }
  const window = windowOf(sort, dim.extent, (e) => frame.size(e))
  domain.sizes.set('@window', window)
  // What is measured is often far less than what can be.
  for (const query of sort.queries) domain.bounds.delete(query.name)
  const windows = {
    expr: div(variable(sort.dim), variable('@window')),
    extent: Math.ceil(dim.extent / window),
  }
  await orderBy(domain, [windows, ...(await keysOf(domain, [sort.key]))])
  const at = domain.entry ?? iota(q, dim.extent)
  const place = q.column(dim.extent, 'i32', sort.place)
  q.launch({
    key: 'inverse permutation',
    threads: dim.extent,
    columns: { x_at: natural(at), x_place: write(place) },
    body: (p) => [store('x_place', get('x_at', p), p)],
  })
  domain.keep(at)
  domain.release()
  return { place, at }
}

/** All coordinates of a dimension, stored or not. */
function domainOf(frame: Frame, dim: Scope['dims'][number]): Frame {
  const domain = new Frame(frame.queue, dim.extent, frame.sizes, frame.tables)
  domain.set(dim.name, iota(frame.queue, dim.extent))
  domain.bounds.set(dim.name, [0, Math.max(0, dim.extent - 1)])
  return domain
}

function iota(q: Queue, n: number): Column {
  const out = q.column(n, 'i32', 'coordinates')
  q.launch({
    key: 'iota',
    threads: n,
    columns: { x_out: write(out) },
    body: (e) => [store('x_out', e, e)],
  })
  return out
}

/** What entries count, for every coordinate: that of any entry with the same `by`, 0 where there is none. */
async function spread(
  frame: Frame,
  domain: Frame,
  query: Extract<Query, { kind: 'count' }>,
  scope: Scope,
): Promise<void> {
  const { queue: q } = frame
  await evaluateQueries(frame, [query], scope)
  const keys = await keysOf(domain, query.by)
  const size = keys.reduce((n, k) => n * k.extent, 1)
  const found = q.column(Math.max(1, size), 'i32', query.name)
  q.clear(found)
  keys.forEach((k, n) => {
    for (const f of [frame, domain]) f.sizes.set(`@class ${n}`, k.extent)
  })
  for (const [name, value] of domain.sizes) if (name.startsWith('@least')) frame.sizes.set(name, value)
  const key = keys.reduce<Expr | null>(
    (sum, k, n) => (sum ? add(mul(sum, variable(`@class ${n}`)), k.expr) : k.expr),
    null,
  )
  invariant(key, `${query.name} counts by the coordinate`)
  const t = frame.terms([key, variable(query.name)])
  q.launch({
    ...t,
    key: `spread ${t.key}`,
    threads: frame.n,
    columns: { ...t.columns, x_found: update(found) },
    body: (e) => {
      const [k, n] = t.at(e) as [Expr, Expr]
      return [store('x_found', k, n)]
    },
  })
  domain.tables.set('@found', found)
  domain.compute(query.name, load('@found', [key], 'i32'))
  domain.tables.delete('@found')
  frame.drop(query.name)
  q.release(found)
}
