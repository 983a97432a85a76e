/**
 * Radix sort by blocks. Counting uses atomics in shared memory. Scattering first sorts the tile in shared memory, a few
 * bits at a time, so that entries of one digit are adjacent and memory is written in runs.
 */

import type { Expr } from '../../../../ir/expressions/expr.ts'
import { add, and, binary, cast, constant, div, int, lt, mul, sub } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import { accumulate, blockScan, runningSum } from '../kernels/block-scan.ts'
import {
  atomic,
  before,
  type Column,
  each,
  get,
  isFirst,
  loop,
  next,
  registers,
  scalar,
  shared,
  store,
  unrolled,
  write,
} from '../kernels/kernel-builder.ts'
import type { Queue } from '../queue/command-queue.ts'
import type { Tile } from '../tuning.ts'
import { type Base, type Chunk, chunkOf, type Pass } from './radix-sort-chunks.ts'

/** Maximum number of bits per round in shared memory: a thread has a counter for each value. */
const MAX_ROUND_BITS = 3
const BANKS = 32

/** Bits of a non-negative key; unsigned division by a power of two compiles to a shift. */
const bitsOf = (x: Expr, shift: number, bits: number): Expr => {
  const from = binary('quo', cast(x, 'u32'), constant(2 ** shift, 'u32'))
  return cast(binary('rem', from, constant(2 ** bits, 'u32')), 'index')
}

/** Iterates over a tile's entries such that neighbouring threads access neighbouring entries. */
function forEachStrided(
  name: string,
  { threads }: Tile,
  { count }: Chunk,
  t: Expr,
  body: (s: Expr) => readonly Stmt[],
): Stmt {
  const rounds = div(add(count, int(threads - 1)), int(threads))
  return loop(name, rounds, (k) => {
    const s = add(mul(k, int(threads)), t)
    return [when(lt(s, count), body(s))]
  })
}

export function countByBlock(q: Queue, p: Pass, base: Base, counts: Column, tile: Tile): void {
  const { threads } = tile
  const digits = 2 ** p.bits
  const digitsOf = (name: string, t: Expr, body: (d: Expr) => Stmt): Stmt =>
    loop(name, int(Math.ceil(digits / threads)), (k) => {
      const d = add(mul(k, int(threads)), t)
      return [when(lt(d, int(digits)), [body(d)])]
    })
  q.launch({
    ...base,
    threads: base.chunks,
    shared: true,
    key: `count tiles ${threads} ${base.name}`,
    columns: { ...base.columns, x_counts: write(counts) },
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      const counters = shared('x_found', digits)
      return [
        ...chunk.declare,
        counters.declare,
        each('x_t0', threads, (t) => [digitsOf('x_zero', t, (d) => counters.put(d, int(0)))]),
        each('x_t1', threads, (t) => [
          forEachStrided('x_k', tile, chunk, t, (s) => {
            const digit = bitsOf(base.value(add(chunk.lo, s)), p.shift, p.bits)
            return [atomic('+', 'x_found', digit, int(1))]
          }),
        ]),
        each('x_t2', threads, (t) => [
          digitsOf('x_d', t, (d) =>
            store('x_counts', add(chunk.counter, mul(d, chunk.stride)), counters.at(d)),
          ),
        ]),
      ]
    },
  })
}

/** Scatters entries and keys; `x_counts` has the destination of each tile's first entry with each digit. */
export function scatterByBlock(q: Queue, p: Pass, base: Base, tile: Tile): void {
  const { threads, items } = tile
  const digits = 2 ** p.bits
  q.launch({
    ...base,
    threads: base.chunks,
    shared: true,
    key: `deal tiles ${threads} ${items} ${base.name} ${p.last}`,
    body: (c) => {
      const chunk = chunkOf(c, p.segments !== null, digits)
      const keys = shared('x_tile_keys', threads * items)
      const entries = shared('x_tile_entries', threads * items)
      const starts = shared('x_tile_starts', digits)
      const digit = (s: Expr): Expr => bitsOf(keys.at(s), p.shift, p.bits)
      return [
        ...chunk.declare,
        keys.declare,
        entries.declare,
        starts.declare,
        each('x_load', threads, (t) => [
          forEachStrided('x_load_k', tile, chunk, t, (s) => {
            const from = add(chunk.lo, s)
            return [keys.put(s, base.value(from)), entries.put(s, p.order ? get('x_order', from) : from)]
          }),
        ]),
        ...orderTile(p, tile, chunk, keys, entries),
        // For all entries of a digit, the destination minus the index in the tile is constant.
        each('x_start', threads, (t) => [
          forEachStrided('x_start_k', tile, chunk, t, (s) => {
            const d = scalar('x_start_digit', digit(s))
            const startsDigit = binary(
              'or',
              isFirst(s),
              binary('ne', d.value, digit(binary('max', before(s), int(0)))),
            )
            const counter = add(chunk.counter, mul(d.value, chunk.stride))
            return [...d.declare, when(startsDigit, [starts.put(d.value, sub(get('x_counts', counter), s))])]
          }),
        ]),
        each('x_put', threads, (t) => [
          forEachStrided('x_put_k', tile, chunk, t, (s) => {
            const at = scalar('x_put_at', add(starts.at(digit(s)), s))
            return [
              ...at.declare,
              store('x_to', at.value, entries.at(s)),
              ...(p.last ? [] : [store('x_keys', at.value, keys.at(s))]),
            ]
          }),
        ]),
      ]
    },
  })
}

type Memory = ReturnType<typeof shared>

/** Stable, a few bits per round: threads count own entries; a scan over (value, thread) yields destinations. */
function orderTile(p: Pass, tile: Tile, chunk: Chunk, keys: Memory, entries: Memory): Stmt[] {
  const { threads, items } = tile
  const rounds = Math.ceil(p.bits / MAX_ROUND_BITS)
  const width = Math.ceil(p.bits / rounds)
  const values = 2 ** width
  // Counter c resides at c + c / BANKS, which avoids bank conflicts both between neighbouring threads and between the
  // values of one thread.
  const counters = shared('x_own', (values * threads * (BANKS + 1)) / BANKS)
  const scanOf = (name: string) => blockScan(name, threads, '+', false, 'x_digits')
  const key = registers('x_key', items)
  const entry = registers('x_entry_at', items)
  const tileRounds = div(add(chunk.count, int(threads - 1)), int(threads))
  /** Entries per thread in this tile: an odd number. */
  const perThread = scalar('x_items', add(tileRounds, sub(int(1), binary('rem', tileRounds, int(2)))))
  const counterIndex = (value: Expr, t: Expr): Expr =>
    add(mul(value, int(threads + threads / BANKS)), add(t, div(t, int(BANKS))))
  const chunkCounter = (t: Expr, k: Expr): Expr =>
    add(add(mul(t, int(values)), div(t, int(BANKS / values))), k)
  const forEachOwn = (name: string, t: Expr, body: (k: Expr, s: Expr) => readonly Stmt[]): Stmt =>
    unrolled(name, items, (k) => {
      const s = add(mul(t, perThread.value), k)
      return [when(and(lt(k, perThread.value), lt(s, chunk.count)), body(k, s))]
    })
  const round = (r: number): Stmt[] => {
    const bits = Math.min(width, p.bits - r * width)
    const digitOfItem = (k: Expr): Expr => bitsOf(key.at(k), p.shift + r * width, bits)
    const name = (what: string): string => `x_${what}${r}`
    const scan = scanOf(name('digits'))
    return [
      each(name('count'), threads, (t) => [
        unrolled(name('zero'), values, (v) => [counters.put(counterIndex(v, t), int(0))]),
        forEachOwn(name('mine'), t, (k, s) => {
          const counter = counterIndex(digitOfItem(k), t)
          return [
            key.put(k, keys.at(s)),
            entry.put(k, entries.at(s)),
            counters.put(counter, next(counters.at(counter))),
          ]
        }),
      ]),
      each(name('sum'), threads, (t) => {
        const total = runningSum(name('sum_of'), int(0))
        const value = scalar(name('counted'), int(0))
        return [
          ...total.declare,
          ...value.declare,
          unrolled(name('v'), values, (v) => [
            value.set(counters.at(chunkCounter(t, v))),
            counters.put(chunkCounter(t, v), total.sum.value),
            ...accumulate('+', total, value.value, null),
          ]),
          ...scan.storeSum(t, total),
        ]
      }),
      each(name('group'), threads, (t) => [scan.scanGroups(t)]),
      each(name('spread'), threads, (t) => {
        const before = runningSum(name('before'), int(0))
        return [
          ...before.declare,
          ...scan.addPreceding(before, t),
          unrolled(name('w'), values, (v) => [
            counters.put(chunkCounter(t, v), add(counters.at(chunkCounter(t, v)), before.sum.value)),
          ]),
        ]
      }),
      each(name('place'), threads, (t) => [
        forEachOwn(name('again'), t, (k) => {
          const counter = counterIndex(digitOfItem(k), t)
          return [
            keys.put(counters.at(counter), key.at(k)),
            entries.put(counters.at(counter), entry.at(k)),
            counters.put(counter, next(counters.at(counter))),
          ]
        }),
      ]),
    ]
  }
  return [
    counters.declare,
    ...scanOf('x_digits').declare,
    key.declare,
    entry.declare,
    ...perThread.declare,
    ...Array.from({ length: rounds }, (_, r) => round(r)).flat(),
  ]
}
