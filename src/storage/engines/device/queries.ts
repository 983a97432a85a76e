/**
 * Counts and ranks of tuples, by putting entries in the order that makes groups runs, and a scan that starts over with
 * each. The order stays: what is built next often wants the same.
 */

import { add, binary, type Expr, int, lt, variable } from '../../../ir/expr.ts'
import { when } from '../../../ir/statement-builders.ts'
import type { Frame } from '../../column-engine.ts'
import type { Coroutine } from '../../coroutines.ts'
import type { Counting } from '../../engine-operands.ts'
import { keysOf } from '../../sort-keys.ts'
import { type Column, natural, write } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import { flag, get, next, store } from './kernel-builder.ts'
import { ranks } from './level-scans.ts'
import { differs, orderBy } from './lexicographic-order.ts'
import { termsOf } from './map-fusion.ts'
import { scan } from './scan.ts'

type F = Frame<Column>

export function* rank(q: Queue, frame: F, { name, by, of }: Counting): Coroutine<void> {
  yield* orderBy(q, frame, yield* keysOf(frame, [...by, ...of]))
  ranks(q, frame, name, { keys: [...by, ...of], cut: null }, by.length)
  frame.rising.set(name, { by, of })
}

/** The number of different tuples in the group, from its last entry to all of them by the group's number. */
export function* count(q: Queue, frame: F, { name, by, of }: Counting, apart: boolean): Coroutine<void> {
  const keys = apart ? by : [...by, ...of]
  yield* orderBy(q, frame, yield* keysOf(frame, keys))
  const { n } = frame
  const t = termsOf(q, frame, keys)
  const group = (e: Expr): readonly Expr[] => t.at(e).slice(0, by.length)
  const groups = q.column(n, 'i32', 'groups')
  const numbers = termsOf(q, frame, by)
  scan(q, {
    ...numbers,
    key: `groups ${numbers.key}`,
    n,
    op: '+',
    columns: { ...numbers.columns, x_groups: write(groups) },
    value: (e) => flag(differs(numbers.at, e)),
    body: (e, sum, own) => [store('x_groups', e, add(sum, add(own, int(-1))))],
  })
  const totals = q.column(n, 'i32', 'counts')
  const rest: Record<string, ReturnType<typeof natural>> = {
    x_groups: natural(groups),
    x_counts: write(totals),
  }
  scan(q, {
    ...t,
    key: `counts ${by.length} ${apart} ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, ...rest },
    value: (e) => (apart ? int(1) : flag(differs(t.at, e))),
    reset: (e) => differs(group, e),
    body: (e, sum, own) => {
      const last = store('x_counts', get('x_groups', e), add(sum, own))
      const ends = binary('ne', get('x_groups', e), get('x_groups', next(e)))
      return [when(lt(next(e), variable('x_n')), [when(ends, [last])], [last])]
    },
  })
  const out = q.column(n, 'i32', name)
  q.launch({
    key: 'count of group',
    threads: n,
    columns: { x_groups: natural(groups), x_counts: natural(totals), x_out: write(out) },
    body: (e) => [store('x_out', e, get('x_counts', get('x_groups', e)))],
  })
  frame.set(name, out)
  q.release(groups, totals)
}
