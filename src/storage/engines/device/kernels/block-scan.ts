/** Scan over the threads of a block: the sum of all preceding threads, in three phases. */

import { add, div, type Expr, eq, int, lt, max, mul, select } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { loop, type Scalar, scalar, shared, unrolled } from './kernel-builder.ts'

/** Number of threads whose sums one thread adds. */
const GROUP = 16

export type Op = '+' | 'max'

export const combine = (op: Op, a: Expr, b: Expr): Expr => (op === '+' ? add(a, b) : max(a, b))

/** A segmented running sum: the sum since the last segment start, and 1 if there was a segment start. */
export interface RunningSum {
  readonly sum: Scalar
  readonly restarted: Scalar
}

export const runningSum = (
  name: string,
  initial: Expr,
): RunningSum & { readonly declare: readonly Stmt[] } => {
  const sum = scalar(`${name}_sum`, initial)
  const restarted = scalar(`${name}_any`, int(0))
  return { declare: [...sum.declare, ...restarted.declare], sum, restarted }
}

/** Adds `value` to the sum. If `restart` is 1, a segment starts before the value (`null`: never). */
export const accumulate = (
  op: Op,
  { sum, restarted }: RunningSum,
  value: Expr,
  restart: Expr | null,
): Stmt[] =>
  restart
    ? [
        sum.set(select(eq(restart, int(1)), value, combine(op, sum.value, value))),
        restarted.set(max(restarted.value, restart)),
      ]
    : [sum.set(combine(op, sum.value, value))]

/** The scan of `threads` sums, a multiple of 16 or fewer; scans that follow each other may have one `memory`. */
export function blockScan(name: string, threads: number, op: Op, segmented: boolean, memory = name) {
  const group = Math.min(GROUP, threads)
  const groups = threads / group
  // Padding: sums of neighbouring groups reside in different banks.
  const sums = shared(`${memory}_sums`, threads + groups)
  const threadStarts = shared(`${memory}_begins`, threads + groups)
  const groupSums = shared(`${memory}_groups`, groups)
  const groupStarts = shared(`${memory}_group_begins`, groups)
  const paddedIndex = (t: Expr): Expr => add(t, div(t, int(group)))
  const accumulateGroups = (r: RunningSum, count: Expr, loopName: string): Stmt =>
    loop(loopName, count, (g) => accumulate(op, r, groupSums.at(g), segmented ? groupStarts.at(g) : null))
  return {
    declare: [sums, groupSums, ...(segmented ? [threadStarts, groupStarts] : [])].map((m) => m.declare),
    /** Phase 1, by every thread: store its sum. */
    storeSum: (t: Expr, { sum, restarted }: RunningSum): Stmt[] => [
      sums.put(paddedIndex(t), sum.value),
      ...(segmented ? [threadStarts.put(paddedIndex(t), restarted.value)] : []),
    ],
    /** Phase 2, by every thread: scan within groups. */
    scanGroups: (t: Expr): Stmt => {
      const r = runningSum(`${name}_join`, int(0))
      const value = scalar(`${name}_own`, int(0))
      const restart = scalar(`${name}_began`, int(0))
      return when(lt(t, int(groups)), [
        ...r.declare,
        ...value.declare,
        ...restart.declare,
        unrolled(`${name}_k`, group, (k) => {
          const s = add(mul(t, int(group + 1)), k)
          return [
            value.set(sums.at(s)),
            sums.put(s, r.sum.value),
            ...(segmented ? [restart.set(threadStarts.at(s)), threadStarts.put(s, r.restarted.value)] : []),
            ...accumulate(op, r, value.value, segmented ? restart.value : null),
          ]
        }),
        groupSums.put(t, r.sum.value),
        ...(segmented ? [groupStarts.put(t, r.restarted.value)] : []),
      ])
    },
    /** Phase 3: adds the sums of all threads before `t` to `r`. */
    addPreceding: (r: RunningSum, t: Expr): Stmt[] => [
      accumulateGroups(r, div(t, int(group)), `${name}_before`),
      ...accumulate(op, r, sums.at(paddedIndex(t)), segmented ? threadStarts.at(paddedIndex(t)) : null),
    ],
    /** Phase 3: adds the sums of all threads to `r`. */
    addAll: (r: RunningSum): Stmt => accumulateGroups(r, int(groups), `${name}_all`),
  }
}
