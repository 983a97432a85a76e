/** Counts, ranks and values of entries as columns; the entries keep their order. */
import { boundsOf } from '../../../analysis/integers/ranges.ts'
import type { CountQuery, GroupQuery, MinimumQuery, Scope } from '../../../columns/engine-operands.ts'
import { nonNegative } from '../../../columns/key-columns.ts'
import { release } from '../../../columns/scratch-buffers.ts'
import { sortedPrefix } from '../../../columns/sort-elision.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import { positiveIn } from '../../columns/attribute-queries.ts'
import { countDistinct, rankDistinct, runsOf } from './count-distinct.ts'
import { groupMinima } from './group-minima.ts'
import { magnitudeRanks, sumDuplicates } from './magnitude-order.ts'
import { columnOf, type F, valuesOf } from './map-reduce.ts'
import { gatherColumn } from './partition.ts'

export const count = (frame: F, q: CountQuery, distinct: boolean): void =>
  countOrRank(frame, q, distinct, 'count')

export const rank = (frame: F, q: CountQuery, distinct: boolean): void =>
  countOrRank(frame, q, distinct, 'rank')

function countOrRank(
  frame: F,
  { name, by, of }: CountQuery,
  distinct: boolean,
  kind: 'count' | 'rank',
): void {
  const exprs = [...by, ...of]
  withKeys(frame, exprs, (keys) => {
    const natural = exprs.map((e, k) => {
      const maximum = upperBound(frame, e)
      return (maximum === null ? nonNegative(keys[k]!) : [keys[k]!]).map((column) => ({
        column,
        most: maximum,
      }))
    })
    const columnsOf = (groupKeys: typeof natural) => groupKeys.flat().map((key) => key.column)
    const [groups, queried] = [columnsOf(natural.slice(0, by.length)), columnsOf(natural.slice(by.length))]
    const maximum = natural.flat().map((key) => key.most)
    const isSwept =
      distinct && sortedPrefix(exprs, frame.sortedBy, frame.monotone, () => false) === exprs.length
    frame.set(
      name,
      isSwept
        ? runsOf(groups, frame.n, kind)
        : kind === 'rank'
          ? rankDistinct({
              by: groups,
              of: queried,
              entries: frame.n,
              grouped: isGrouped(frame, by),
              maxima: maximum,
            })
          : countDistinct({ by: groups, of: queried, entries: frame.n, distinct }),
    )
  })
}

/** Upper bound of the values; `null` if they may be negative. */
function upperBound(frame: F, e: Expr): number | null {
  const range = boundsOf(e, (name) => frame.range(name))
  return range && range.lo >= 0 ? range.hi : null
}

/** True if groups are known to be contiguous and in order. */
const isGrouped = (frame: F, by: readonly Expr[]): boolean =>
  sortedPrefix(by, frame.sortedBy, frame.monotone, positiveIn(frame)) === by.length

export function minimum(frame: F, { name, by, of }: MinimumQuery): void {
  withKeys(frame, [...by, of], (keys) => {
    frame.set(name, groupMinima(keys.slice(0, -1), keys.at(-1)!))
  })
}

/** Evaluates the keys, passes them to `use`, and releases those that were allocated. */
function withKeys(frame: F, exprs: readonly Expr[], use: (keys: readonly Int32Array[]) => void): void {
  const keys = exprs.map((e) => valuesOf(frame, e))
  use(keys)
  for (const [k, e] of exprs.entries()) if (!columnOf(frame, e)) release(keys[k]!)
}

/** Gathers the source's values for each entry. */
export function takeValues(frame: F, name: string, values: TypedArray): void {
  const entry = frame.entry as Int32Array | null
  frame.set(name, entry ? gatherColumn(values, entry) : values, entry !== null)
}

export function rankByMagnitude(
  frame: F,
  { name, by }: GroupQuery,
  { values, dims }: Scope<TypedArray>,
): void {
  const entry = frame.entry as Int32Array | null
  const entryValues = values
    ? entry
      ? gatherColumn(values, entry)
      : values
    : new Float64Array(frame.n).fill(1)
  withKeys(frame, by, (keys) => {
    const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
    frame.set(name, magnitudeRanks(keys, columns, entryValues as Float64Array))
  })
}

export function sumsOfEqual(
  frame: F,
  values: TypedArray,
  dtype: Dtype,
  dims: Scope<TypedArray>['dims'],
  distinct: boolean,
): Float64Array {
  const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
  return sumDuplicates(columns, { values, dtype }, distinct)
}
