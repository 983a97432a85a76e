/**
 * Queries: one value for each stored coordinate (attribute queries, Chou, Kjolstad and Amarasinghe, PLDI 2020,
 * section 5). Each is O(entries × digits); entries that are in order already are not ordered again.
 */
import { fail, invariant } from '../../ast/diagnostic.ts'
import { allocate } from '../../columns/allocate.ts'
import { applyMap, point } from '../../columns/coordmap.ts'
import type { Column, MapTable } from '../../columns/expression-program.ts'
import { ascends } from '../../columns/keys.ts'
import { giveBack } from '../../columns/scratch.ts'
import type { Expr } from '../../ir/expr.ts'
import type { Query } from '../../ir/format.ts'
import type { EntryValues, Given } from '../given.ts'
import { countDistinct, rankDistinct, runsOf } from './distinct.ts'
import { findSegments, membership } from './lookups.ts'
import { placesByMagnitude, sumOfEqual } from './magnitude.ts'

/** What sorts give to expressions: the place of each coordinate by sort, and tables by name. */
export interface Sorted {
  readonly places: ReadonlyMap<string, Int32Array>
  readonly tables: ReadonlyMap<string, MapTable>
}

const NOTHING: Sorted = { places: new Map(), tables: new Map() }

interface Scope extends Sorted {
  readonly columns: ReadonlyMap<string, Int32Array>
  readonly values: EntryValues | null
  readonly given: Given
}

/**
 * A column for each query by name; queries may mention the ones before them.
 *
 * @param columns the coordinates of the scope by dimension, in the dimensions' order
 * @param ascending whether entries ascend, so that no two are equal; left out: it is looked at where it matters
 * @throws SptError `format/map-range`, `format/map-overflow`, `format/map-expression`, `format/unknown-name`
 */
export function evaluateQueries(
  queries: readonly Query[],
  columns: ReadonlyMap<string, Int32Array>,
  values: EntryValues | null,
  given: Given,
  sorted: Sorted = NOTHING,
  ascending?: boolean,
): Map<string, Column> {
  const out = new Map<string, Column>()
  if (queries.length === 0) return out
  const scope: Scope = { columns, values, given, ...sorted }
  const dims = [...columns.values()]
  let known = ascending
  const distinct = (): boolean => {
    known ??= ascends(dims)
    return known
  }
  for (const q of queries) out.set(q.name, evaluateQuery(q, scope, dims, out, distinct))
  return out
}

function evaluateQuery(
  q: Query,
  scope: Scope,
  dims: readonly Int32Array[],
  done: ReadonlyMap<string, Column>,
  distinct: () => boolean,
): Column {
  const keys = (exprs: readonly Expr[]): Int32Array[] => keyColumns(exprs, scope, done)
  switch (q.kind) {
    case 'count':
    case 'rank': {
      const leading = leadingOf(q, [...scope.columns.keys()])
      if (leading >= 0 && distinct()) return runsOf(dims.slice(0, leading), dims[0]?.length ?? 0, q.kind)
      const bare = new Set([...q.by, ...q.of].flatMap((e) => (e.kind === 'var' ? [e.name] : [])))
      const all = [...scope.columns.keys()].every((d) => bare.has(d))
      const grouped = { by: keys(q.by), of: keys(q.of), entries: dims[0]?.length ?? 0 }
      const found =
        q.kind === 'rank' ? rankDistinct(grouped) : countDistinct({ ...grouped, apart: all && distinct() })
      giveBackOf([...grouped.by, ...grouped.of], [...dims, ...done.values()])
      return found
    }
    case 'value':
      return sumOfEqual(dims, scope.values, distinct())
    case 'largest':
      return placesByMagnitude(keys(q.by), dims, sumOfEqual(dims, scope.values, distinct()))
    case 'held': {
      const set = scope.given.sets.get(q.set)
      invariant(set, `no set ${q.set}`)
      return membership(set, dims)
    }
    case 'place': {
      const places = scope.places.get(q.sort)
      invariant(places, `no sort ${q.sort}`)
      return placesOf(q, keys([q.of])[0]!, places, scope)
    }
    case 'find': {
      const list = scope.given.lists.get(q.list)
      invariant(list, `no list ${q.list}`)
      return findSegments(list, keys([q.of])[0]!)
    }
  }
}

/** Gives back columns that are not kept. Equal ones are one. */
export function giveBackOf(columns: readonly Column[], kept: readonly Column[]): void {
  for (const c of new Set(columns)) if (c instanceof Int32Array && !kept.includes(c)) giveBack(c)
}

/** How many leading dimensions are what `by` lists, where `of` lists all the others in order; -1: it is not so. */
function leadingOf(q: Extract<Query, { kind: 'count' | 'rank' }>, dims: readonly string[]): number {
  if (q.of.length === 0 || q.by.length + q.of.length !== dims.length) return -1
  const all = [...q.by, ...q.of]
  return all.every((e, k) => e.kind === 'var' && e.name === dims[k]) ? q.by.length : -1
}

function keyColumns(exprs: readonly Expr[], scope: Scope, done: ReadonlyMap<string, Column>): Int32Array[] {
  if (exprs.length === 0) return []
  const inputs = [...scope.columns.keys(), ...done.keys()]
  const columns = [...scope.columns.values(), ...done.values()]
  const { tables, given } = scope
  return applyMap({ map: exprs, inputs, sizes: given.sizes, tables, temporary: true }, columns)
}

function placesOf(
  q: Extract<Query, { kind: 'place' }>,
  at: Int32Array,
  places: Int32Array,
  scope: Scope,
): Int32Array {
  const out = allocate(at.length, 'entries')
  for (let e = 0; e < at.length; e++) {
    const x = at[e]!
    if (x < 0 || x >= places.length)
      fail({
        code: 'format/map-range',
        message: `at ${point([...scope.columns.keys()], [...scope.columns.values()], e)} the place of coordinate ${x} is asked for`,
        ...(q.span ? { span: q.span } : {}),
        expected: `a coordinate from 0 to ${places.length - 1}`,
        hint: `ask ${q.sort}[…] for coordinates of the dimension that is sorted`,
      })
    out[e] = places[x]!
  }
  return out
}
