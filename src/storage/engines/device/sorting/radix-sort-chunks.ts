/** Chunks of the radix sort, within one segment each; counters are ordered by segment, digit, chunk. */
import {
  add,
  and,
  div,
  type Expr,
  ge,
  int,
  lt,
  max,
  min,
  mul,
  search,
  select,
  sub,
  variable,
} from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import type { Column, LaunchSpec, Use } from '../kernels/kernel-builder.ts'
import { before, get, natural, next, scalar, store, write } from '../kernels/kernel-builder.ts'
import { scan } from '../kernels/scan.ts'
import type { Queue } from '../queue/command-queue.ts'

/** Non-empty runs of entries: `starts` has the first entry of each, followed by the number of entries. */
export interface Segments {
  readonly starts: Column
  readonly count: number
}

/** The number of each segment's first chunk, followed by the number of all chunks. */
export function chunkBases(q: Queue, { starts, count }: Segments, length: number): Column {
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

export interface Chunk {
  readonly declare: readonly Stmt[]
  readonly lo: Expr
  readonly count: Expr
  /** Index of the counter of the chunk's first digit, and the stride to the counter of the next digit. */
  readonly counter: Expr
  readonly stride: Expr
}

/** Excess chunks are empty, and are not guarded, because threads of a block may synchronise inside. */
export function chunkOf(c: Expr, segmented: boolean, digits: number): Chunk {
  const length = variable('x_length')
  if (!segmented) {
    const lo = mul(c, length)
    const count = max(int(0), min(length, sub(variable('x_n'), lo)))
    return { declare: [], lo, count, counter: c, stride: variable('x_chunks') }
  }
  const segments = variable('x_segments')
  const digitCount = int(digits)
  const isUsed = lt(c, get('x_bases', segments))
  const searched = scalar('x_segment', before(search('upper', 'x_bases', int(0), next(segments), c)))
  const segment = scalar('x_of', min(searched.value, before(segments)))
  const first = scalar('x_first', get('x_bases', segment.value))
  const chunks = scalar('x_own_chunks', sub(get('x_bases', next(segment.value)), first.value))
  const lo = scalar('x_lo', add(get('x_starts', segment.value), mul(sub(c, first.value), length)))
  const remaining = sub(get('x_starts', next(segment.value)), lo.value)
  const count = scalar('x_count', select(isUsed, min(length, remaining), int(0)))
  const counter = scalar(
    'x_counter',
    select(isUsed, add(mul(first.value, digitCount), sub(c, first.value)), mul(c, digitCount)),
  )
  const stride = scalar('x_stride', select(and(isUsed, ge(chunks.value, int(1))), chunks.value, int(1)))
  return {
    declare: [searched, segment, first, chunks, lo, count, counter, stride].flatMap((s) => s.declare),
    lo: lo.value,
    count: count.value,
    counter: counter.value,
    stride: stride.value,
  }
}

// A pass of the radix sort: the parameters of its count and scatter kernels.

/** A key of each entry, below 2^bits (at most 31 bits). */
export interface Key extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly bits: number
  readonly value: (entry: Expr) => Expr
}

export interface Pass {
  readonly n: number
  readonly key: Key
  /** The keys of the entries in `order`, if an earlier pass stored them. */
  readonly storedKeys: Column | null
  readonly order: Column | null
  readonly shift: number
  readonly bits: number
  readonly segments: Segments | null
  readonly last: boolean
}

export interface Base {
  readonly name: string
  readonly chunks: number
  readonly sizes: Readonly<Record<string, number>>
  /** The columns that `value` reads, and the segments. */
  readonly columns: Readonly<Record<string, Use>>
  readonly value: (s: Expr) => Expr
}
