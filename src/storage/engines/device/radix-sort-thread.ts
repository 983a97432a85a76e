/** Radix sort by threads: each thread processes one chunk serially, with a register for each digit. */
import { add, div, type Expr, int, mod, mul } from '../../../ir/expr.ts'
import type { Stmt } from '../../../ir/loops.ts'
import { type Column, write } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import { get, loop, next, registers, scalar, store } from './kernel-builder.ts'
import { type Chunk, chunkOf } from './radix-sort-chunks.ts'
import type { Base, Pass } from './radix-sort-pass.ts'

const digitOf = (x: Expr, { shift, bits }: Pass): Expr => mod(div(x, int(2 ** shift)), int(2 ** bits))

const entries = ({ lo, count }: Chunk, body: (s: Expr) => readonly Stmt[]): Stmt =>
  loop('x_k', count, (k) => body(add(lo, k)))

const counterOf = ({ counter, stride }: Chunk, digit: Expr): Expr => add(counter, mul(digit, stride))

export function countByThread(q: Queue, p: Pass, base: Base, counts: Column): void {
  const digits = 2 ** p.bits
  const place = registers('x_place', digits)
  q.launch({
    ...base,
    threads: base.chunks,
    key: `count ${base.name}`,
    columns: { ...base.columns, x_counts: write(counts) },
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      return [
        ...chunk.declare,
        place.declare,
        loop('x_zero', int(digits), (d) => [place.put(d, int(0))]),
        entries(chunk, (s) => {
          const at = scalar('x_digit', digitOf(base.value(s), p))
          return [...at.declare, place.put(at.value, next(place.at(at.value)))]
        }),
        loop('x_d', int(digits), (d) => [store('x_counts', counterOf(chunk, d), place.at(d))]),
      ]
    },
  })
}

/**
 * Scatters entries to `x_to` and `x_keys`. `x_counts` of `base` holds the destination of each chunk's first entry with
 * each digit.
 */
export function dealByThread(q: Queue, p: Pass, base: Base): void {
  const digits = 2 ** p.bits
  const place = registers('x_place', digits)
  q.launch({
    ...base,
    threads: base.chunks,
    key: `deal ${base.name} ${p.last}`,
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      return [
        ...chunk.declare,
        place.declare,
        loop('x_d', int(digits), (d) => [place.put(d, get('x_counts', counterOf(chunk, d)))]),
        entries(chunk, (s) => {
          const x = scalar('x_value', base.value(s))
          const d = scalar('x_digit', digitOf(x.value, p))
          const at = scalar('x_at', place.at(d.value))
          return [
            ...x.declare,
            ...d.declare,
            ...at.declare,
            place.put(d.value, next(at.value)),
            store('x_to', at.value, p.order ? get('x_order', s) : s),
            ...(p.last ? [] : [store('x_keys', at.value, x.value)]),
          ]
        }),
      ]
    },
  })
}
