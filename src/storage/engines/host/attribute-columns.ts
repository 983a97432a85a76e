/** Counts, ranks and values of entries as columns; the entries keep their order. */
import { boundsOf } from '../../../analysis/integers/ranges.ts'
import { nonNegative } from '../../../columns/key-columns.ts'
import { giveBack } from '../../../columns/scratch-buffers.ts'
import type { TypedArray } from '../../../ir/arrays.ts'
import type { Dtype } from '../../../ir/dtype.ts'
import { type Expr, variable } from '../../../ir/expr.ts'
import { positiveIn } from '../../attribute-queries.ts'
import type { Counting, Grouped, Reduced, Scope } from '../../engine-operands.ts'
import { sortedPrefix } from '../../sort-elision.ts'
import { countDistinct, rankDistinct, runsOf } from './count-distinct.ts'
import { leastOf } from './group-minima.ts'
import { placesByMagnitude, sumOfEqual } from './magnitude-order.ts'
import { columnOf, type F, valuesOf } from './map-reduce.ts'
import { gathered } from './partition.ts'

export const count = (frame: F, q: Counting, apart: boolean): void => grouped(frame, q, apart, 'count')

export const rank = (frame: F, q: Counting, apart: boolean): void => grouped(frame, q, apart, 'rank')

function grouped(frame: F, { name, by, of }: Counting, apart: boolean, what: 'count' | 'rank'): void {
  const all = [...by, ...of]
  withKeys(frame, all, (keys) => {
    const natural = all.map((e, k) => {
      const most = mostOf(frame, e)
      return (most === null ? nonNegative(keys[k]!) : [keys[k]!]).map((column) => ({ column, most }))
    })
    const columnsOf = (some: typeof natural) => some.flat().map((key) => key.column)
    const [groups, objects] = [columnsOf(natural.slice(0, by.length)), columnsOf(natural.slice(by.length))]
    const most = natural.flat().map((key) => key.most)
    const inRuns = apart && sortedPrefix(all, frame.sortedBy, frame.rising, () => false) === all.length
    frame.set(
      name,
      inRuns
        ? runsOf(groups, frame.n, what)
        : what === 'rank'
          ? rankDistinct({ by: groups, of: objects, entries: frame.n, grouped: isGrouped(frame, by), most })
          : countDistinct({ by: groups, of: objects, entries: frame.n, apart }),
    )
  })
}

/** Upper bound of the values; `null` if they may be negative. */
function mostOf(frame: F, e: Expr): number | null {
  const range = boundsOf(e, (name) => frame.range(name))
  return range && range.lo >= 0 ? range.hi : null
}

/** True if groups are known to be contiguous and in order. */
const isGrouped = (frame: F, by: readonly Expr[]): boolean =>
  sortedPrefix(by, frame.sortedBy, frame.rising, positiveIn(frame)) === by.length

export function least(frame: F, { name, by, of }: Reduced): void {
  withKeys(frame, [...by, of], (keys) => {
    frame.set(name, leastOf(keys.slice(0, -1), keys.at(-1)!))
  })
}

/** Evaluates the keys, passes them to `use`, and releases those that were allocated. */
function withKeys(frame: F, exprs: readonly Expr[], use: (keys: readonly Int32Array[]) => void): void {
  const keys = exprs.map((e) => valuesOf(frame, e))
  use(keys)
  for (const [k, e] of exprs.entries()) if (!columnOf(frame, e)) giveBack(keys[k]!)
}

/** Gathers the source's values for each entry. */
export function takeValues(frame: F, name: string, values: TypedArray): void {
  const entry = frame.entry as Int32Array | null
  frame.set(name, entry ? gathered(values, entry) : values, entry !== null)
}

export function largestFirst(frame: F, { name, by }: Grouped, { values, dims }: Scope<TypedArray>): void {
  const entry = frame.entry as Int32Array | null
  const own = values ? (entry ? gathered(values, entry) : values) : new Float64Array(frame.n).fill(1)
  withKeys(frame, by, (keys) => {
    const columns = dims.map((d) => valuesOf(frame, variable(d.name)))
    frame.set(name, placesByMagnitude(keys, columns, own as Float64Array))
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
  return sumOfEqual(columns, { values, dtype }, distinct)
}
