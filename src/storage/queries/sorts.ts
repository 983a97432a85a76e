/** Sorts of a format: permutations of all coordinates of a dimension, stored or not, by what is asked of them. */
import { fail, invariant } from '../../ast/diagnostic.ts'
import { allocate, gather } from '../../columns/allocate.ts'
import { applyMap } from '../../columns/coordmap.ts'
import { largest, nonNegative, starts } from '../../columns/keys.ts'
import { lexicographic } from '../../columns/lexicographic-sort.ts'
import { evaluate } from '../../ir/evaluate.ts'
import type { Expr } from '../../ir/expr.ts'
import type { Query, Sort } from '../../ir/format.ts'
import type { EntryValues, Given } from '../given.ts'
import { findSegments } from './lookups.ts'
import { evaluateQueries } from './queries.ts'

export interface SortResult {
  /** Place of each coordinate. */
  readonly place: Int32Array
  /** Coordinate at each place. */
  readonly at: Int32Array
}

/**
 * Evaluates `sort … by key within w`: ascending by key in each window of w coordinates, ties by coordinate.
 * O(entries × digits + extent).
 *
 * @param columns the coordinates that the format holds by dimension, in the dimensions' order
 * @param places of the sorts before this one
 * @param ascending as for `evaluateQueries`
 * @throws SptError `format/sort-query`, `format/sort-window`, and as `evaluateQueries`
 */
export function evaluateSort(
  sort: Sort,
  columns: ReadonlyMap<string, Int32Array>,
  values: EntryValues | null,
  given: Given,
  places: ReadonlyMap<string, Int32Array>,
  ascending?: boolean,
): SortResult {
  const extent = given.extents.get(sort.dim)
  invariant(extent !== undefined, `no extent of ${sort.dim}`)
  const all = iota(extent)
  const asked = evaluateQueries(
    sort.queries,
    columns,
    values,
    given,
    { places, tables: new Map() },
    ascending,
  )
  const domain = new Map([[sort.dim, all]])
  const onAll = (e: Sort['key']): Int32Array =>
    applyMap({ map: [e], inputs: [...domain.keys()], sizes: given.sizes }, [...domain.values()])[0]!
  for (const q of sort.queries) {
    if (q.kind === 'find') domain.set(q.name, findSegments(given.lists.get(q.list)!, onAll(q.of)))
    else if (q.kind === 'place') domain.set(q.name, gather(places.get(q.sort)!, onAll(q.of)))
    else if (q.kind === 'count') {
      const own = asked.get(q.name)
      invariant(own instanceof Int32Array, `no count ${q.name}`)
      domain.set(q.name, spread(own, columns.get(sort.dim)!, q.by.map(onAll), all))
    } else notOfDimension(sort, q)
  }
  const window = windowOf(sort, extent, (e) => evaluate(e, given.sizes))
  const windows = allocate(extent, 'coordinates')
  for (let x = 0; x < extent; x++) windows[x] = Math.floor(x / window)
  const keys = [windows, nonNegative(onAll(sort.key))]
  const at = lexicographic(keys, keys.map(largest)).order ?? all
  const place = allocate(extent, 'coordinates')
  for (let p = 0; p < extent; p++) place[at[p]!] = p
  return { place, at }
}

/** What entries count, for every coordinate: that of any entry with the same `by`, 0 where there is none. */
function spread(counts: Int32Array, dim: Int32Array, by: readonly Int32Array[], all: Int32Array): Int32Array {
  const classes = classesOf(by, all)
  const out = allocate(all.length, 'coordinates')
  const found = classes === all ? out : allocate(all.length, 'coordinates')
  for (let e = 0; e < counts.length; e++) found[classes[dim[e]!]!] = counts[e]!
  if (classes !== all) for (let x = 0; x < all.length; x++) out[x] = found[classes[x]!]!
  return out
}

/** Numbers of equal tuples, one for each coordinate. */
function classesOf(by: readonly Int32Array[], all: Int32Array): Int32Array {
  if (by.length === 1 && by[0] === all) return all
  const out = allocate(all.length, 'coordinates')
  if (by.length === 0 || all.length === 0) return out
  const keys = by.map(nonNegative)
  const { order, columns } = lexicographic(keys, keys.map(largest))
  let k = 0
  for (let s = 0; s < all.length; s++) {
    if (s > 0 && starts(columns, s)) k++
    out[order ? order[s]! : s] = k
  }
  return out
}

function iota(n: number): Int32Array {
  const out = allocate(n, 'coordinates')
  for (let x = 0; x < n; x++) out[x] = x
  return out
}

/** Coordinates in one window of a sort. @throws SptError `format/sort-window` */
export function windowOf(sort: Sort, extent: number, value: (e: Expr) => number): number {
  const window = sort.within === null ? Math.max(1, extent) : value(sort.within)
  if (window < 1)
    fail({
      code: 'format/sort-window',
      message: `the sort of ${sort.dim} is within windows of ${window} coordinates`,
      ...(sort.span ? { span: sort.span } : {}),
      expected: 'windows of at least 1 coordinate',
      hint: 'pass a positive argument, or leave `within` out to sort all of them',
    })
  return window
}

/** @throws SptError `format/sort-query` */
export function notOfDimension(sort: Sort, q: Query): never {
  fail({
    code: 'format/sort-query',
    message: `the sort of ${sort.dim} asks for ${q.kind}, which coordinates that are not stored do not have`,
    ...(q.span ? { span: q.span } : {}),
    expected: `count(… by …) with ${sort.dim} alone after by`,
    hint: 'sort by counts, or by arithmetic of the coordinate',
  })
}
