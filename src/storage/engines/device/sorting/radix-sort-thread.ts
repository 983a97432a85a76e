/** Radix sort by threads: each thread processes one chunk serially, with a register for each digit. */
import { add, div, type Expr, int, mod, mul } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { type Column, write } from '../kernels/column-types.ts'
import { get, loop, next, registers, scalar, store } from '../kernels/kernel-builder.ts'
import type { Queue } from '../queue/command-queue.ts'
import { type Chunk, chunkOf } from './radix-sort-chunks.ts'
import type { Base, Pass } from './radix-sort-pass.ts'

const digitOf = (x: Expr, { shift, bits }: Pass): Expr => mod(div(x, int(2 ** shift)), int(2 ** bits))

const forEachEntry = ({ lo, count }: Chunk, body: (s: Expr) => readonly Stmt[]): Stmt =>
  loop('x_k', count, (k) => body(add(lo, k)))

const counterOf = ({ counter, stride }: Chunk, digit: Expr): Expr => add(counter, mul(digit, stride))

export function countByThread(q: Queue, p: Pass, base: Base, counts: Column): void {
  const digits = 2 ** p.bits
  const counters = registers('x_place', digits)
  q.launch({
    ...base,
    threads: base.chunks,
    key: `count ${base.name}`,
    columns: { ...base.columns, x_counts: write(counts) },
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      return [
        ...chunk.declare,
        counters.declare,
        loop('x_zero', int(digits), (d) => [counters.put(d, int(0))]),
        forEachEntry(chunk, (s) => {
          const digit = scalar('x_digit', digitOf(base.value(s), p))
          return [...digit.declare, counters.put(digit.value, next(counters.at(digit.value)))]
        }),
        loop('x_d', int(digits), (d) => [store('x_counts', counterOf(chunk, d), counters.at(d))]),
      ]
    },
  })
}

/**
 * Scatters entries to `x_to` and `x_keys`. `x_counts` of `base` holds the destination of each chunk's first entry with
 * each digit.
 */
export function scatterByThread(q: Queue, p: Pass, base: Base): void {
  const digits = 2 ** p.bits
  const counters = registers('x_place', digits)
  q.launch({
    ...base,
    threads: base.chunks,
    key: `deal ${base.name} ${p.last}`,
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      return [
        ...chunk.declare,
        counters.declare,
        loop('x_d', int(digits), (digit) => [counters.put(digit, get('x_counts', counterOf(chunk, digit)))]),
        forEachEntry(chunk, (s) => {
          const key = scalar('x_value', base.value(s))
          const digit = scalar('x_digit', digitOf(key.value, p))
          const destination = scalar('x_at', counters.at(digit.value))
          return [
            ...key.declare,
            ...digit.declare,
            ...destination.declare,
            counters.put(digit.value, next(destination.value)),
            store('x_to', destination.value, p.order ? get('x_order', s) : s),
            ...(p.last ? [] : [store('x_keys', destination.value, key.value)]),
          ]
        }),
      ]
    },
  })
}
