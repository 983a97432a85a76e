/**
 * Stable radix sort of entry numbers by keys, least significant digit first. A thread counts the digits of a chunk
 * of entries; one scan over all counters, laid out (segment, digit, chunk), gives each chunk the absolute place
 * of its first entry with each digit; each thread then deals out its chunk in order. Segments are sorted within
 * themselves (after Satish, Harris and Garland, IPDPS 2009, with chunks of one thread).
 */
import { add, div, type Expr, ge, int, load, min, mod, mul, search, sub, variable } from '../ir/expr.ts'
import type { Stmt } from '../ir/loops.ts'
import { before, get, loop, next, registers, scalar, store, when } from './kernel.ts'
import { type Column, type LaunchSpec, natural, type Queue, read, type Use, update, write } from './queue.ts'
import { scan } from './scan.ts'

/** A key below 2^bits (at most 31) of each entry. */
export interface Key extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly bits: number
  readonly value: (entry: Expr) => Expr
}

/** Runs of entries: `starts` has the first of each, and their number at the end. None is empty. */
export interface Segments {
  readonly starts: Column
  readonly count: number
}

/** Entries of a chunk at least. */
const SHORTEST = 32
/** Chunks that keep a device busy. */
const ENOUGH = 2 ** 16

/** Counters that a pass over `n` entries in segments has at most. */
export const counters = (q: Queue, n: number, segments: number): number =>
  (segments + n / q.tuning.chunk) * 2 ** q.tuning.digit

export const passes = (q: Queue, bits: number): number => Math.ceil(bits / q.tuning.digit)

/**
 * Entry numbers 0 … n-1 by `keys` (the most significant first), equal ones in order; `null`: there is nothing
 * to do. Each segment for itself, where there are `segments`.
 */
export function radixSort(
  q: Queue,
  n: number,
  keys: readonly Key[],
  segments: Segments | null,
): Column | null {
  let order: Column | null = null
  for (const key of keys.toReversed()) {
    const count = passes(q, key.bits)
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

interface Pass {
  readonly n: number
  readonly key: Key
  /** The keys of the entries in `order`, where an earlier pass left them. */
  readonly known: Column | null
  readonly order: Column | null
  readonly shift: number
  readonly bits: number
  readonly segments: Segments | null
  readonly last: boolean
}

function pass(q: Queue, p: Pass): { readonly order: Column; readonly known: Column | null } {
  const { n, key, known, order, segments } = p
  const digits = 2 ** p.bits
  const length = Math.min(q.tuning.chunk, Math.max(SHORTEST, Math.ceil(n / ENOUGH)))
  const chunks = segments ? segments.count + Math.floor(n / length) : Math.ceil(n / length)
  const bases = segments ? chunkBases(q, segments, length) : null
  const counts = q.column(chunks * digits, 'i32', 'counters')
  const base = {
    threads: chunks,
    sizes: {
      ...(known ? {} : key.sizes),
      x_n: n,
      x_length: length,
      x_chunks: chunks,
      ...(segments ? { x_segments: segments.count } : {}),
    },
  }
  const columns: Record<string, Use> = {
    ...(known ? { x_known: natural(known) } : key.columns),
    ...(order && !known ? { x_order: natural(order) } : {}),
    ...(segments && bases ? { x_starts: natural(segments.starts), x_bases: natural(bases) } : {}),
  }
  const name = `${known ? 'known' : key.key} ${order ? 'order' : ''} ${segments ? 'segments' : ''} ${p.shift} ${p.bits}`
  const value = (s: Expr): Expr =>
    known ? load('x_known', [s], 'i32') : key.value(order ? load('x_order', [s], 'i32') : s)
  const digit = (x: Expr): Expr => mod(div(x, int(2 ** p.shift)), int(digits))
  const place = registers('x_place', digits)
  q.launch({
    ...base,
    key: `count ${name}`,
    columns: { ...columns, x_counts: write(counts) },
    body: (c) => [
      place.declare,
      loop('x_zero', int(digits), (d) => [place.put(d, int(0))]),
      ...chunk(c, segments !== null, (s) => {
        const at = scalar('x_digit', digit(value(s)))
        return [...at.declare, place.put(at.value, next(place.at(at.value)))]
      }),
      ...counterOf(c, segments !== null, digits, (d, counter) => store('x_counts', counter, place.at(d))),
    ],
  })
  scan(q, {
    key: 'places',
    n: chunks * digits,
    op: '+',
    columns: { x_places: update(counts) },
    value: (e) => get('x_places', e),
    body: (e, sum) => [store('x_places', e, sum)],
  })
  const outOrder = q.column(n, 'i32', 'order')
  const outKnown = p.last ? null : q.column(n, 'i32', 'keys')
  q.launch({
    ...base,
    key: `deal ${name} ${p.last}`,
    columns: {
      ...columns,
      ...(order ? { x_order: natural(order) } : {}),
      x_counts: read(counts),
      x_to: write(outOrder),
      ...(outKnown ? { x_keys: write(outKnown) } : {}),
    },
    body: (c) => [
      place.declare,
      ...counterOf(c, segments !== null, digits, (d, counter) => place.put(d, get('x_counts', counter))),
      ...chunk(c, segments !== null, (s) => {
        const x = scalar('x_value', value(s))
        const d = scalar('x_digit', digit(x.value))
        const to = scalar('x_at', place.at(d.value))
        return [
          ...x.declare,
          ...d.declare,
          ...to.declare,
          place.put(d.value, next(to.value)),
          store('x_to', to.value, order ? get('x_order', s) : s),
          ...(outKnown ? [store('x_keys', to.value, x.value)] : []),
        ]
      }),
    ],
  })
  q.release(counts, bases)
  return { order: outOrder, known: outKnown }
}

/** The number of each segment's first chunk, and the number of all chunks. */
function chunkBases(q: Queue, { starts, count }: Segments, length: number): Column {
  const bases = q.column(count + 1, 'i32', 'chunks')
  const chunksOf = (s: Expr): Expr =>
    div(
      add(sub(get('x_starts', next(s)), get('x_starts', s)), sub(variable('x_length'), int(1))),
      variable('x_length'),
    )
  scan(q, {
    key: 'chunks',
    n: count,
    op: '+',
    columns: { x_starts: natural(starts), x_bases: write(bases) },
    sizes: { x_length: length },
    value: chunksOf,
    body: (s, sum, own) => [
      store('x_bases', s, sum),
      when(ge(next(s), variable('x_n')), [store('x_bases', next(s), add(sum, own))]),
    ],
  })
  return bases
}

/** The segment that chunk `c` lies in. */
const segmentOf = (c: Expr): Expr =>
  before(search('upper', 'x_bases', int(0), next(variable('x_segments')), c))

/** Runs through the entries of chunk `c`. */
function chunk(c: Expr, segmented: boolean, body: (s: Expr) => readonly Stmt[]): Stmt[] {
  const length = variable('x_length')
  if (!segmented) {
    const lo = mul(c, length)
    return [loop('x_k', min(length, sub(variable('x_n'), lo)), (k) => body(add(lo, k)))]
  }
  const segment = scalar('x_segment', segmentOf(c))
  const lo = scalar(
    'x_lo',
    add(get('x_starts', segment.value), mul(sub(c, get('x_bases', segment.value)), length)),
  )
  const hi = scalar('x_hi', min(add(lo.value, length), get('x_starts', next(segment.value))))
  return [
    when(lessThanAll(c), [
      ...segment.declare,
      ...lo.declare,
      ...hi.declare,
      loop('x_k', sub(hi.value, lo.value), (k) => body(add(lo.value, k))),
    ]),
  ]
}

const lessThanAll = (c: Expr): Expr => ge(before(get('x_bases', variable('x_segments'))), c)

/**
 * For each digit, its counter of chunk `c`: by segment, then digit, then chunk. Threads beyond the last chunk have
 * the counters at the end.
 */
function counterOf(
  c: Expr,
  segmented: boolean,
  digits: number,
  body: (digit: Expr, counter: Expr) => Stmt,
): Stmt[] {
  const all = int(digits)
  if (!segmented) return [loop('x_d', all, (d) => [body(d, add(mul(d, variable('x_chunks')), c))])]
  const segment = scalar('x_own', segmentOf(c))
  const first = get('x_bases', segment.value)
  const chunks = scalar('x_own_chunks', sub(get('x_bases', next(segment.value)), first))
  const at = scalar('x_own_counter', add(mul(first, all), sub(c, first)))
  return [
    when(
      lessThanAll(c),
      [
        ...segment.declare,
        ...chunks.declare,
        ...at.declare,
        loop('x_d', all, (d) => [body(d, add(mul(d, chunks.value), at.value))]),
      ],
      [loop('x_e', all, (d) => [body(d, add(mul(c, all), d))])],
    ),
  ]
}
