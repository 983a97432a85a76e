/**
 * Stable LSD radix sort of entry numbers by keys. Chunks of entries are counted by digit; one scan over all counters,
 * ordered (segment, digit, chunk), yields the destination of each chunk's first entry with each digit; then chunks are
 * scattered in order (Satish, Harris and Garland, IPDPS 2009). Segments are sorted separately.
 */
import { type Column, natural, read, update, write } from './column-types.ts'
import type { Queue } from './command-queue.ts'
import { get, store } from './kernel-builder.ts'
import { countByBlock, dealByBlock } from './radix-sort-block.ts'
import { chunkBases, type Segments } from './radix-sort-chunks.ts'
import type { Base, Key, Pass } from './radix-sort-pass.ts'
import { countByThread, dealByThread } from './radix-sort-thread.ts'
import { scan } from './scan.ts'

/** Fewest entries of a thread's chunk. */
const SHORTEST = 32
/** Number of chunks that saturates a device. */
const ENOUGH = 2 ** 16

/** Entries per chunk. */
function lengthOf({ tuning: { chunk } }: Queue, n: number): number {
  if (chunk.by === 'block') return chunk.threads * chunk.items
  return Math.min(chunk.length, Math.max(SHORTEST, Math.ceil(n / ENOUGH)))
}

const chunksOf = (q: Queue, n: number, segments: number): number =>
  segments > 0 ? segments + Math.floor(n / lengthOf(q, n)) : Math.ceil(n / lengthOf(q, n))

/** Number of counters of a pass over `n` entries in segments; 0 segments: unsegmented. */
export const counters = (q: Queue, n: number, segments: number): number =>
  chunksOf(q, n, segments) * 2 ** digitOf(q, n)

/** Estimated cost of a pass, in moved entries; a partially filled block costs more than its entries. */
export function costOf(q: Queue, n: number, segments: number): number {
  const { chunk } = q.tuning
  const fixed = chunk.by === 'block' ? 2 * chunk.threads : 0
  return n + counters(q, n, segments) + fixed * chunksOf(q, n, segments)
}

/** Number of entries up to which the launch overhead dominates. */
export const FEW = 2 ** 20

const digitOf = ({ tuning }: Queue, n: number): number => (n <= FEW ? tuning.digitOfFew : tuning.digit)

export const passes = (q: Queue, n: number, bits: number): number => Math.ceil(bits / digitOf(q, n))

/**
 * The permutation of 0 … n−1 that sorts by `keys` (most significant first), stable; `null` for the identity. Each of
 * the `segments` is sorted separately.
 */
export function radixSort(
  q: Queue,
  n: number,
  keys: readonly Key[],
  segments: Segments | null,
): Column | null {
  let order: Column | null = null
  for (const key of keys.toReversed()) {
    const count = passes(q, n, key.bits)
    const width = Math.ceil(key.bits / Math.max(1, count))
    let known: Column | null = null
    for (let k = 0; k < count; k++) {
      const bits = Math.min(width, key.bits - k * width)
      const last = k === count - 1
      const made = pass(q, { n, key, known, order, shift: k * width, bits, segments, last })
      q.release(order, known)
      order = made.order
      known = made.known
    }
    q.release(known)
  }
  return order
}

function pass(q: Queue, p: Pass): { readonly order: Column; readonly known: Column | null } {
  const { n, key, known, order, segments } = p
  const { chunk } = q.tuning
  const length = lengthOf(q, n)
  const chunks = chunksOf(q, n, segments?.count ?? 0)
  const bases = segments ? chunkBases(q, segments, length) : null
  const counts = q.column(chunks * 2 ** p.bits, 'i32', 'counters')
  const base: Base = {
    name: `${known ? 'known' : key.key} ${order ? 'order' : ''} ${segments ? 'segments' : ''} ${p.shift} ${p.bits}`,
    chunks,
    sizes: {
      ...(known ? {} : key.sizes),
      x_n: n,
      x_length: length,
      x_chunks: chunks,
      ...(segments ? { x_segments: segments.count } : {}),
    },
    columns: {
      ...(known ? { x_known: natural(known) } : key.columns),
      ...(order && !known ? { x_order: natural(order) } : {}),
      ...(segments && bases ? { x_starts: natural(segments.starts), x_bases: natural(bases) } : {}),
    },
    value: (s) => (known ? get('x_known', s) : key.value(order ? get('x_order', s) : s)),
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
  const made = {
    order: q.column(n, 'i32', 'order'),
    known: p.last ? null : q.column(n, 'i32', 'keys'),
  }
  const dealt: Base = {
    ...base,
    columns: {
      ...base.columns,
      ...(order ? { x_order: natural(order) } : {}),
      x_counts: read(counts),
      x_to: write(made.order),
      ...(made.known ? { x_keys: write(made.known) } : {}),
    },
  }
  if (chunk.by === 'thread') dealByThread(q, p, dealt)
  else dealByBlock(q, p, dealt, chunk)
  q.release(counts, bases)
  return made
}
