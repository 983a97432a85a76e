/**
 * Stable LSD radix sort of entry numbers by keys. Chunks of entries are counted by digit; one scan over all counters,
 * ordered (segment, digit, chunk), yields the destination of each chunk's first entry with each digit; then chunks are
 * scattered in order (Satish, Harris and Garland, IPDPS 2009). Segments are sorted separately.
 */

import { add, div, type Expr, int, mod, mul } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import {
  type Column,
  get,
  loop,
  natural,
  next,
  read,
  registers,
  scalar,
  store,
  update,
  write,
} from '../kernels/kernel-builder.ts'
import { scan } from '../kernels/scan.ts'
import type { Queue } from '../queue/command-queue.ts'
import { countByBlock, scatterByBlock } from './radix-sort-block.ts'
import type { Base, Chunk, Key, Pass, Segments } from './radix-sort-chunks.ts'
import { chunkBases, chunkOf } from './radix-sort-chunks.ts'

/** Minimum number of entries of a thread's chunk. */
const MIN_CHUNK = 32
/** Number of chunks that saturates a device. */
const SATURATING_CHUNKS = 2 ** 16

function chunkLength({ tuning: { chunk } }: Queue, n: number): number {
  if (chunk.by === 'block') return chunk.threads * chunk.items
  return Math.min(chunk.length, Math.max(MIN_CHUNK, Math.ceil(n / SATURATING_CHUNKS)))
}

const chunkCount = (q: Queue, n: number, segments: number): number =>
  segments > 0 ? segments + Math.floor(n / chunkLength(q, n)) : Math.ceil(n / chunkLength(q, n))

/** Number of counters of a pass over `n` entries in segments; 0 segments: unsegmented. */
export const counterCount = (q: Queue, n: number, segments: number): number =>
  chunkCount(q, n, segments) * 2 ** digitBits(q, n)

/** Estimated cost of a pass, in moved entries; a partially filled block costs more than its entries. */
export function costOf(q: Queue, n: number, segments: number): number {
  const { chunk } = q.tuning
  const blockCost = chunk.by === 'block' ? 2 * chunk.threads : 0
  return n + counterCount(q, n, segments) + blockCost * chunkCount(q, n, segments)
}

/** Number of entries up to which the launch overhead dominates. */
export const FEW_ENTRIES = 2 ** 20

const digitBits = ({ tuning }: Queue, n: number): number =>
  n <= FEW_ENTRIES ? tuning.digitOfFew : tuning.digit

export const passCount = (q: Queue, n: number, bits: number): number => Math.ceil(bits / digitBits(q, n))

/** The stable permutation that sorts by `keys`, most significant first, within `segments`; `null`: the identity. */
export function radixSort(
  q: Queue,
  n: number,
  keys: readonly Key[],
  segments: Segments | null,
): Column | null {
  let order: Column | null = null
  for (const key of keys.toReversed()) {
    const count = passCount(q, n, key.bits)
    const width = Math.ceil(key.bits / Math.max(1, count))
    let storedKeys: Column | null = null
    for (let k = 0; k < count; k++) {
      const bits = Math.min(width, key.bits - k * width)
      const last = k === count - 1
      const result = runPass(q, { n, key, storedKeys, order, shift: k * width, bits, segments, last })
      q.release(order, storedKeys)
      order = result.order
      storedKeys = result.storedKeys
    }
    q.release(storedKeys)
  }
  return order
}

function runPass(q: Queue, p: Pass): { readonly order: Column; readonly storedKeys: Column | null } {
  const { n, key, storedKeys, order, segments } = p
  const { chunk } = q.tuning
  const length = chunkLength(q, n)
  const chunks = chunkCount(q, n, segments?.count ?? 0)
  const bases = segments ? chunkBases(q, segments, length) : null
  const counts = q.column(chunks * 2 ** p.bits, 'i32', 'counters')
  const base: Base = {
    name: `${storedKeys ? 'known' : key.key} ${order ? 'order' : ''} ${segments ? 'segments' : ''} ${p.shift} ${p.bits}`,
    chunks,
    sizes: {
      ...(storedKeys ? {} : key.sizes),
      x_n: n,
      x_length: length,
      x_chunks: chunks,
      ...(segments && { x_segments: segments.count }),
    },
    columns: {
      ...(storedKeys ? { x_known: natural(storedKeys) } : key.columns),
      ...(order && !storedKeys && { x_order: natural(order) }),
      ...(segments && bases && { x_starts: natural(segments.starts), x_bases: natural(bases) }),
    },
    value: (s) => (storedKeys ? get('x_known', s) : key.value(order ? get('x_order', s) : s)),
  }
  if (chunk.by === 'thread') countByThread(q, p, base, counts)
  else countByBlock(q, p, base, counts, chunk)
  scan(q, {
    key: 'places',
    n: chunks * 2 ** p.bits,
    op: '+',
    columns: { x_places: update(counts) },
    value: (e) => get('x_places', e),
    body: (e, sum) => [store('x_places', e, sum)],
  })
  const result = {
    order: q.column(n, 'i32', 'order'),
    storedKeys: p.last ? null : q.column(n, 'i32', 'keys'),
  }
  const scatterBase: Base = {
    ...base,
    columns: {
      ...base.columns,
      ...(order && { x_order: natural(order) }),
      x_counts: read(counts),
      x_to: write(result.order),
      ...(result.storedKeys && { x_keys: write(result.storedKeys) }),
    },
  }
  if (chunk.by === 'thread') scatterByThread(q, p, scatterBase)
  else scatterByBlock(q, p, scatterBase, chunk)
  q.release(counts, bases)
  return result
}

// Radix sort by threads: each thread processes one chunk serially, with a register for each digit.

const digitOf = (x: Expr, { shift, bits }: Pass): Expr => mod(div(x, int(2 ** shift)), int(2 ** bits))

const forEachEntry = ({ lo, count }: Chunk, body: (s: Expr) => readonly Stmt[]): Stmt =>
  loop('x_k', count, (k) => body(add(lo, k)))

const counterOf = ({ counter, stride }: Chunk, digit: Expr): Expr => add(counter, mul(digit, stride))

function countByThread(q: Queue, p: Pass, base: Base, counts: Column): void {
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

/** Scatters entries and keys; `x_counts` has the destination of each chunk's first entry with each digit. */
function scatterByThread(q: Queue, p: Pass, base: Base): void {
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
