/**
 * Counts and ranks of tuples: entries are sorted such that groups are runs, then a segmented scan is applied. The
 * entries stay sorted, because the next step often needs the same order.
 */

import { binary, type Expr, int, sub } from '../../../../ir/expressions/expr.ts'
import { INT_RANGE } from '../../../../ir/values/dtype.ts'
import { keysOf } from '../../../columns/sort-permutations.ts'
import { combine } from '../kernels/block-scan.ts'
import { flag, get, natural, next, store, whereLast, write } from '../kernels/kernel-builder.ts'
import { ranks, runNumbers } from '../kernels/level-scans.ts'
import { termsOf } from '../kernels/map-reduce.ts'
import { scan } from '../kernels/scan.ts'
import { type DeviceEngine, type F, queueIn } from '../queue/command-queue.ts'
import { differs, orderBy } from './lexicographic-order.ts'

export const rank: DeviceEngine['rank'] = function* (frame, { name, by, of }) {
  yield* orderBy(frame, yield* keysOf(frame, [...by, ...of]))
  ranks(frame, name, { keys: [...by, ...of], cut: null }, by.length)
  frame.monotone.set(name, { column: by, of })
}

export const count: DeviceEngine['count'] = function* (frame, { name, by, of }, distinct) {
  const keys = distinct ? by : [...by, ...of]
  yield* orderBy(frame, yield* keysOf(frame, keys))
  reduceGroups(frame, name, by, {
    key: `counts ${distinct}`,
    keys,
    op: '+',
    value: (at, e) => (distinct ? int(1) : flag(differs(at, e))),
    result: (total) => total,
  })
}

/** The minimum per group is computed as a maximum of complements, because scans support only + and max. */
export const minimum: DeviceEngine['minimum'] = function* (frame, { name, by, of }) {
  const [, largestInt] = INT_RANGE.i32
  yield* orderBy(frame, yield* keysOf(frame, by))
  reduceGroups(frame, name, by, {
    key: 'least',
    keys: [...by, of],
    op: 'max',
    value: (at, e) => sub(int(largestInt), at(e)[by.length]!),
    result: (total) => sub(int(largestInt), total),
  })
}

interface GroupReduction {
  readonly key: string
  readonly keys: readonly Expr[]
  readonly op: '+' | 'max'
  readonly value: (at: (e: Expr) => readonly Expr[], e: Expr) => Expr
  readonly result: (total: Expr) => Expr
}

/** Reduces groups that are runs, and distributes the result from the last entry of a group to all of its entries. */
function reduceGroups(frame: F, name: string, by: readonly Expr[], r: GroupReduction): void {
  const q = queueIn(frame)
  const { n } = frame
  const t = termsOf(frame, r.keys)
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const groups = runNumbers(frame, 'groups', { keys: by, cut: null })
  const totals = q.column(n, 'i32', 'totals')
  scan(q, {
    ...t,
    key: `${r.key} ${by.length} ${t.key}`,
    n,
    op: r.op,
    columns: { ...t.columns, x_groups: natural(groups), x_totals: write(totals) },
    value: (e) => r.value(t.at, e),
    reset: (e) => differs(group, e),
    body: (e, before, own) => {
      const isLast = binary('ne', get('x_groups', e), get('x_groups', next(e)))
      return [whereLast(e, isLast, store('x_totals', get('x_groups', e), combine(r.op, before, own)))]
    },
  })
  const out = q.column(n, 'i32', name)
  q.launch({
    key: `${r.key} of group`,
    threads: n,
    columns: { x_groups: natural(groups), x_totals: natural(totals), x_out: write(out) },
    body: (e) => [store('x_out', e, r.result(get('x_totals', get('x_groups', e))))],
  })
  frame.set(name, out)
  q.release(groups, totals)
}
