/**
 * Counts, ranks and minima of groups of entries: entries are sorted such that groups are runs, unless the engine ranks
 * unsorted entries. A device keeps the entries sorted, because the next step often needs the same order.
 */

import type { Coroutine } from '../../ast/work.ts'
import type { Column, Frame } from '../../columns/column-engine.ts'
import type {
  CountQuery,
  GroupQuery,
  MinimumQuery,
  OpenSortKey,
  Scope,
  SortKey,
} from '../../columns/engine-operands.ts'
import { add, type Expr, int, load, mul, variable } from '../../ir/expressions/expr.ts'
import { keysOf } from './expression-bounds.ts'

/** Adds a column with the number of distinct tuples. `distinct`: no two entries agree in `by` and `of`. */
export function* count<C extends Column>(
  frame: Frame<C>,
  { name, by, of }: CountQuery,
  distinct: boolean,
): Coroutine<void> {
  // All empty tuples are equal.
  if (of.length === 0) return frame.engine.compute(frame, name, int(1))
  const ranked = distinct ? null : yield* rankUnsorted(frame, '@rank', by, of)
  if (ranked) {
    frame.tables.set('@lengths', ranked.lengths)
    frame.engine.compute(frame, name, load('@lengths', [ranked.group ?? int(0)]))
    frame.tables.delete('@lengths')
    frame.drop('@rank')
    return dropKeys(frame, ranked.lengths)
  }
  yield* inRuns(frame, name, distinct ? by : [...by, ...of], (sorted) =>
    distinct
      ? sorted.engine.reduceGroups(sorted, name, by, [], 'entries')
      : sorted.engine.reduceGroups(sorted, name, by, of, 'tuples'),
  )
}

/** Adds a column with the number of smaller distinct tuples. */
export function* rank<C extends Column>(frame: Frame<C>, { name, by, of }: CountQuery): Coroutine<void> {
  if (of.length === 0) return frame.engine.compute(frame, name, int(0))
  const keys = [...by, ...of]
  const ranked = yield* rankUnsorted(frame, name, by, of)
  if (ranked) dropKeys(frame, ranked.lengths)
  else
    yield* inRuns(frame, name, keys, (sorted) =>
      sorted.engine.ranks(sorted, name, { keys, cut: null }, by.length),
    )
  frame.monotone.set(name, { column: by, of })
}

/** Adds a column with the minimum of each group. */
export function* minimum<C extends Column>(frame: Frame<C>, { name, by, of }: MinimumQuery): Coroutine<void> {
  yield* inRuns(frame, name, by, (sorted) => sorted.engine.reduceGroups(sorted, name, by, [of], 'minimum'))
}

/** Adds a column with the rank by decreasing magnitude; ties by coordinate, and equal coordinates share a rank. */
export function* rankByMagnitude<C extends Column>(
  frame: Frame<C>,
  { name, by }: GroupQuery,
  { values, dims }: Scope<C>,
): Coroutine<void> {
  const magnitudes = Array.from({ length: values ? frame.engine.magnitudes(frame, values) : 0 }, (_, k) => ({
    expr: variable(`@magnitude ${k}`),
    extent: k === 2 ? 2 : 2 ** 31,
  }))
  const coordinates = dims.map((d) => ({ expr: variable(d.name), extent: d.extent }))
  const groups = by.map((expr) => ({ expr }))
  // Equal coordinates have equal values.
  const starts = { keys: [...by, ...coordinates.map((c) => c.expr)], cut: null }
  const sorted = yield* frame.engine.order(frame, [...groups, ...magnitudes, ...coordinates])
  for (const k of magnitudes.keys()) frame.drop(`@magnitude ${k}`)
  if (sorted === frame) frame.sortedBy = frame.sortedBy.slice(0, by.length)
  sorted.engine.ranks(sorted, name, starts, by.length)
  frame.engine.restore(frame, sorted, name, variable(name))
}

/** Adds a column that `compute` adds to the entries in order of `keys`. */
function* inRuns<C extends Column>(
  frame: Frame<C>,
  name: string,
  keys: readonly Expr[],
  compute: (sorted: Frame<C>) => void,
): Coroutine<void> {
  const sorted = yield* frame.engine.order(
    frame,
    keys.map((expr): OpenSortKey => ({ expr })),
  )
  compute(sorted)
  frame.engine.restore(frame, sorted, name, variable(name))
}

const [GROUP, MEMBER] = ['@group', '@member']

/** Adds a column of ranks, if the engine can do so without sorting; returns the number of distinct tuples by group. */
function* rankUnsorted<C extends Column>(
  frame: Frame<C>,
  name: string,
  by: readonly Expr[],
  of: readonly Expr[],
): Coroutine<{ readonly lengths: C; readonly group: Expr | null } | null> {
  const { engine, n } = frame
  if (!engine.rankInSegments || n === 0) return null
  const keys: SortKey[] = []
  // A measured extent is often far smaller than the possible one.
  for (const { expr, extent } of yield* keysOf(frame, [...by, ...of]))
    keys.push({ expr, extent: extent < n ? extent : 1 + (yield* engine.bounds(frame, expr))[1] })
  const groups = combine(keys.slice(0, by.length))
  const members = combine(keys.slice(by.length))
  if (keys.length > by.length + of.length || !groups || !members) return null
  const group = by.length > 0 ? engine.materialize(frame, GROUP, groups.expr) : null
  const coordinate = engine.materialize(frame, MEMBER, members.expr)
  const segments = { parent: group, parents: groups.extent, coordinate, extent: members.extent }
  const lengths = engine.rankInSegments(frame, name, segments, keys)
  if (lengths) return { lengths, group }
  dropKeys(frame, null)
  return null
}

function dropKeys<C extends Column>(frame: Frame<C>, lengths: C | null): void {
  frame.engine.release(lengths)
  frame.drop(GROUP)
  frame.drop(MEMBER)
}

/** The keys as one mixed-radix number; `null` if it does not fit 31 bits. */
function combine([first, ...others]: readonly SortKey[]): SortKey | null {
  if (!first) return { expr: int(0), extent: 1 }
  const combined = others.reduce<SortKey>(
    (sum, k) => ({ expr: add(mul(sum.expr, int(k.extent)), k.expr), extent: sum.extent * k.extent }),
    first,
  )
  return combined.extent < 2 ** 31 ? combined : null
}
