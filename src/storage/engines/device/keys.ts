/** Expressions as sort keys, and what queries are asked of. */

import { boundsOf } from '../../../analysis/integers/ranges.ts'
import { add, type Expr, int, sub, variable } from '../../../ir/expr.ts'
import type { Column } from './column-types.ts'
import type { Frame } from './frame.ts'
import type { SortKey } from './order.ts'
import { reduce } from './scan.ts'

/** What queries need besides coordinates. */
export interface Scope {
  /** In the order of the dimensions. */
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** By entry of the source, of all that is at its coordinate; `null` in a pattern. */
  readonly values: Column | null
  /** No two entries have the same coordinates. */
  readonly distinct: boolean
  /** By sort: the place of each coordinate. */
  readonly places: ReadonlyMap<string, Column>
  readonly lists: ReadonlyMap<string, Column>
  /** Sets as trees: the segments of each coordinate of the first dimension, then the others level by level. */
  readonly sets: ReadonlyMap<string, readonly { readonly indptr: Column; readonly indices: Column }[]>
}

/** Expressions as keys from 0 on; what is not known of their values is measured. */
export async function keysOf(frame: Frame, exprs: readonly Expr[]): Promise<SortKey[]> {
  const range = (name: string) => frame.range(name)
  const keys: SortKey[] = []
  for (const [k, expr] of exprs.entries()) {
    const known = boundsOf(expr, range)
    const [lo, hi] = known ? [known.lo, known.hi] : await measure(frame, expr)
    if (lo >= 0) keys.push({ expr, extent: hi + 1 })
    else {
      const name = `@least ${k}`
      frame.sizes.set(name, -lo)
      keys.push({ expr: add(expr, variable(name)), extent: hi - lo + 1 })
    }
  }
  return keys
}

/** Bounds of an expression over the entries, both including 0. */
export async function measure(frame: Frame, expr: Expr): Promise<readonly [number, number]> {
  const { queue: q, n } = frame
  const t = frame.terms([expr])
  const cells = q.cells(2)
  reduce(q, {
    ...t,
    key: `bounds ${t.key}`,
    n,
    op: 'max',
    values: (e) => {
      const x = t.at(e)[0]!
      return [x, sub(int(0), x)]
    },
    count: 2,
    cells,
  })
  const [hi = 0, lo = 0] = await q.numbers([cells, cells + 1])
  return [lo === 0 ? 0 : -lo, hi]
}
