/** Scan over the threads of a block: the sum of all preceding threads, in three phases. */

import { add, div, type Expr, eq, int, lt, max, mul, select } from '../../../ir/expr.ts'
import type { Stmt } from '../../../ir/loops.ts'
import { when } from '../../../ir/statement-builders.ts'
import { loop, type Scalar, scalar, shared, unrolled } from './kernel-builder.ts'

/** Number of threads whose sums are added by one thread. */
const GROUP = 16

export type Op = '+' | 'max'

export const combine = (op: Op, a: Expr, b: Expr): Expr => (op === '+' ? add(a, b) : max(a, b))

/** A segmented running sum: the sum since the last segment start, and whether there was one. */
export interface Running {
  readonly sum: Scalar
  readonly any: Scalar
}

export const running = (name: string, initial: Expr): Running & { readonly declare: readonly Stmt[] } => {
  const sum = scalar(`${name}_sum`, initial)
  const any = scalar(`${name}_any`, int(0))
  return { declare: [...sum.declare, ...any.declare], sum, any }
}

/** Continues the sum with `value`; if `any` is 1, a segment starts before it (`null`: never). */
export const goOn = (op: Op, { sum, any }: Running, value: Expr, began: Expr | null): Stmt[] =>
  began
    ? [
        sum.set(select(eq(began, int(1)), value, combine(op, sum.value, value))),
        any.set(max(any.value, began)),
      ]
    : [sum.set(combine(op, sum.value, value))]

/** Shared memory for the scan of `threads` sums, a multiple of 16 or fewer. */
export function meeting(name: string, threads: number, op: Op, segmented: boolean) {
  const group = Math.min(GROUP, threads)
  const groups = threads / group
  // Padding: sums of neighbouring groups reside in different banks.
  const sums = shared(`${name}_sums`, threads + groups)
  const begins = shared(`${name}_begins`, threads + groups)
  const sumsOf = shared(`${name}_groups`, groups)
  const beginsOf = shared(`${name}_group_begins`, groups)
  const at = (t: Expr): Expr => add(t, div(t, int(group)))
  const goOver = (r: Running, count: Expr, loopName: string): Stmt =>
    loop(loopName, count, (g) => goOn(op, r, sumsOf.at(g), segmented ? beginsOf.at(g) : null))
  return {
    declare: [sums, sumsOf, ...(segmented ? [begins, beginsOf] : [])].map((m) => m.declare),
    /** Phase 1, by every thread: store its sum. */
    put: (t: Expr, { sum, any }: Running): Stmt[] => [
      sums.put(at(t), sum.value),
      ...(segmented ? [begins.put(at(t), any.value)] : []),
    ],
    /** Phase 2, by every thread: scan within groups. */
    join: (t: Expr): Stmt => {
      const r = running(`${name}_join`, int(0))
      const value = scalar(`${name}_own`, int(0))
      const began = scalar(`${name}_began`, int(0))
      return when(lt(t, int(groups)), [
        ...r.declare,
        ...value.declare,
        ...began.declare,
        unrolled(`${name}_k`, group, (k) => {
          const s = add(mul(t, int(group + 1)), k)
          return [
            value.set(sums.at(s)),
            sums.put(s, r.sum.value),
            ...(segmented ? [began.set(begins.at(s)), begins.put(s, r.any.value)] : []),
            ...goOn(op, r, value.value, segmented ? began.value : null),
          ]
        }),
        sumsOf.put(t, r.sum.value),
        ...(segmented ? [beginsOf.put(t, r.any.value)] : []),
      ])
    },
    /** Phase 3: adds the sums of all threads before `t` to `r`. */
    before: (r: Running, t: Expr): Stmt[] => [
      goOver(r, div(t, int(group)), `${name}_before`),
      ...goOn(op, r, sums.at(at(t)), segmented ? begins.at(at(t)) : null),
    ],
    /** Phase 3: adds the sums of all threads to `r`. */
    all: (r: Running): Stmt => goOver(r, int(groups), `${name}_all`),
  }
}
