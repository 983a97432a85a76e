/** Reductions of groups that are runs of entries, by a segmented scan. */

import type { GroupReduction } from '../../../../columns/engine-operands.ts'
import { binary, type Expr, int, sub } from '../../../../ir/expressions/expr.ts'
import { INT_RANGE } from '../../../../ir/values/dtype.ts'
import { combine, type Op } from '../kernels/block-scan.ts'
import { flag, get, natural, next, store, whereLast, write } from '../kernels/kernel-builder.ts'
import { runNumbers } from '../kernels/level-scans.ts'
import { type Terms, termsOf } from '../kernels/map-reduce.ts'
import { scan } from '../kernels/scan.ts'
import { type DeviceEngine, queueIn } from '../queue/command-queue.ts'
import { differs } from './lexicographic-order.ts'

interface Reduction {
  readonly op: Op
  /** The value of entry `e`; `of`: the index of the first key after those of the group. */
  readonly value: (at: Terms['at'], e: Expr, of: number) => Expr
  readonly result: (total: Expr) => Expr
}

const complement = (x: Expr): Expr => sub(int(INT_RANGE.i32[1]), x)

/** A minimum is computed as a maximum of complements, because scans support only + and max. */
const REDUCTIONS: Readonly<Record<GroupReduction, Reduction>> = {
  entries: { op: '+', value: () => int(1), result: (total) => total },
  tuples: { op: '+', value: (at, e) => flag(differs(at, e)), result: (total) => total },
  minimum: { op: 'max', value: (at, e, of) => complement(at(e)[of]!), result: complement },
}

/** Distributes the result from the last entry of a group to all of its entries. */
export const reduceGroups: DeviceEngine['reduceGroups'] = (frame, name, by, of, reduction) => {
  const q = queueIn(frame)
  const { n } = frame
  const { op, value, result } = REDUCTIONS[reduction]
  const t = termsOf(frame, [...by, ...of])
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const groups = runNumbers(frame, 'groups', { keys: by, cut: null })
  const totals = q.column(n, 'i32', 'totals')
  scan(q, {
    ...t,
    key: `${reduction} ${by.length} ${t.key}`,
    n,
    op,
    columns: { ...t.columns, x_groups: natural(groups), x_totals: write(totals) },
    value: (e) => value(t.at, e, by.length),
    reset: (e) => differs(group, e),
    body: (e, before, own) => {
      const isLast = binary('ne', get('x_groups', e), get('x_groups', next(e)))
      return [whereLast(e, isLast, store('x_totals', get('x_groups', e), combine(op, before, own)))]
    },
  })
  const out = q.column(n, 'i32', name)
  q.launch({
    key: `${reduction} of group`,
    threads: n,
    columns: { x_groups: natural(groups), x_totals: natural(totals), x_out: write(out) },
    body: (e) => [store('x_out', e, result(get('x_totals', get('x_groups', e))))],
  })
  frame.set(name, out)
  q.release(groups, totals)
}
