/**
 * Exclusive scans and reductions over columns of i32. Chunks of a thread, or tiles of a block, are reduced first; then
 * each is scanned from the sum of its predecessors.
 */

import { add, div, type Expr, eq, int, lt, min, mul, sub, variable } from '../../../../ir/expressions/expr.ts'
import type { Stmt } from '../../../../ir/statements/loops.ts'
import { when } from '../../../../ir/statements/statement-builders.ts'
import type { Queue } from '../queue/command-queue.ts'
import type { Cells } from '../queue/readback.ts'
import type { Tile } from '../tuning.ts'
import { accumulate, blockScan, combine, type Op, type RunningSum, runningSum } from './block-scan.ts'
import type { LaunchSpec, Use } from './kernel-builder.ts'
import { atomic, each, get, loop, read, scalar, store, THREADS, update, write } from './kernel-builder.ts'

interface ScanDomain extends Pick<LaunchSpec, 'key' | 'columns' | 'sizes'> {
  readonly n: number
}

export interface Scan extends ScanDomain {
  /** `max`: over non-negative values. Both start at 0. */
  readonly op: Op
  readonly value: (e: Expr) => Expr
  /** True at the start of a segment, at which the scan restarts. */
  readonly reset?: (e: Expr) => Expr
  /** Statements at `e`, given the scan of the preceding elements (of its segment) and its own value. */
  readonly body: (e: Expr, before: Expr, value: Expr) => readonly Stmt[]
  /** Cell that receives the scan of all elements (of the last segment). */
  readonly total?: Cells | undefined
}

/** O(n) work in two launches, or four for very many elements. `body` may overwrite the inputs of `value`. */
export function scan(q: Queue, s: Scan): void {
  runScan(q, s, false)
}

/** Maximum number of tiles whose sums each block adds by itself. */
const MAX_UNSCANNED_TILES = 2 ** 12

/** `carry`: `body` receives the sum of the preceding elements even if a segment starts at `e`. */
function runScan(q: Queue, s: Scan, carry: boolean): void {
  const { n, op, reset, total } = s
  const { scan: granularity } = q.tuning
  const length = granularity.by === 'block' ? granularity.threads * granularity.items : granularity.length
  const chunks = Math.ceil(n / length)
  const sums = chunks > 1 ? q.column(chunks, 'i32', 'sums') : null
  const resets = sums && reset ? q.column(chunks, 'i32', 'resets') : null
  const sizes = { ...s.sizes, x_n: n }
  // The chunk size is part of the kernel's structure.
  const key = `${s.key} ${op} ${granularity.by === 'block' ? `tiles ${granularity.threads} ${granularity.items}` : length}`
  // A single thread would need too long to add the sums.
  const sumsScanned = granularity.by === 'thread' || chunks > MAX_UNSCANNED_TILES
  if (sums) {
    const spec = {
      key: `${key} up`,
      threads: chunks,
      columns: { ...s.columns, x_sums: write(sums), ...(resets && { x_resets: write(resets) }) },
      sizes,
    }
    if (granularity.by === 'block') upByBlock(q, s, granularity, spec)
    else q.launch({ ...spec, body: (t) => upByThread(s, t, length) })
    if (sumsScanned) scanSums(q, op, { sums, resets })
  }
  const carryColumns: Record<string, Use> = sums
    ? { x_sums: read(sums), ...(resets && !sumsScanned && { x_resets: read(resets) }) }
    : {}
  const spec = {
    key: `${key} down ${sums ? 'many' : 'one'} ${sumsScanned} ${carry}`,
    threads: Math.max(1, chunks),
    columns: { ...s.columns, ...carryColumns, ...(total !== undefined && { x_totals: total.page }) },
    sizes: { ...sizes, ...(total !== undefined && { x_cell: total.first }) },
  }
  const last = (e: Expr, sum: Expr): Stmt[] =>
    total === undefined ? [] : [when(eq(e, variable('x_n')), [store('x_totals', variable('x_cell'), sum)])]
  const downSweep: DownSweep = { scan: s, carry, last }
  if (granularity.by === 'block') downByBlock(q, downSweep, granularity, sums !== null, sumsScanned, spec)
  else
    q.launch({
      ...spec,
      body: (t) => {
        const r = runningSum('x_before', sums ? get('x_sums', t) : int(0))
        return [...r.declare, ...scanChunk(downSweep, r, mul(t, int(length)), length)]
      },
    })
  q.release(sums, resets)
}

function scanSums(q: Queue, op: Op, { sums, resets }: Record<'sums' | 'resets', LaunchColumn>): void {
  runScan(
    q,
    {
      key: 'sums',
      n: sums!.length,
      op,
      columns: { x_part: update(sums!), ...(resets && { x_starts: read(resets) }) },
      value: (e) => get('x_part', e),
      ...(resets && { reset: (e: Expr) => eq(get('x_starts', e), int(1)) }),
      body: (e, before) => [store('x_part', e, before)],
    },
    true,
  )
}

type LaunchColumn = Use['column'] | null

const forEachElement = (lo: Expr, length: number, body: (e: Expr) => readonly Stmt[], name = 'x_k'): Stmt =>
  loop(name, min(int(length), sub(variable('x_n'), lo)), (k) => body(add(lo, k)))

const reduceChunk = ({ op, reset, value }: Scan, r: RunningSum, lo: Expr, length: number): Stmt =>
  forEachElement(
    lo,
    length,
    (e) => [
      ...(reset ? [when(reset(e), [r.sum.set(int(0)), r.restarted.set(int(1))])] : []),
      r.sum.set(combine(op, r.sum.value, value(e))),
    ],
    'x_up',
  )

const upByThread = (s: Scan, t: Expr, length: number): Stmt[] => {
  const r = runningSum('x_own', int(0))
  return [...r.declare, reduceChunk(s, r, mul(t, int(length)), length), ...storeChunkSum(s, t, r)]
}

const storeChunkSum = ({ reset }: Scan, chunk: Expr, { sum, restarted: any }: RunningSum): Stmt[] => [
  store('x_sums', chunk, sum.value),
  ...(reset ? [store('x_resets', chunk, any.value)] : []),
]

interface DownSweep {
  readonly scan: Scan
  readonly carry: boolean
  /** Statements after the element before `e`. */
  readonly last: (e: Expr, sum: Expr) => readonly Stmt[]
}

/** Runs the scan's body at each element; `r` is the scan before `lo`. */
function scanChunk({ scan: s, carry, last }: DownSweep, r: RunningSum, lo: Expr, length: number): Stmt[] {
  const value = scalar('x_value', int(0))
  const { reset } = s
  const restart = (e: Expr): Stmt[] => (reset ? [when(reset(e), [r.sum.set(int(0))])] : [])
  return [
    ...value.declare,
    forEachElement(lo, length, (e) => [
      value.set(s.value(e)),
      ...(carry ? [] : restart(e)),
      ...s.body(e, r.sum.value, value.value),
      ...(carry ? restart(e) : []),
      r.sum.set(combine(s.op, r.sum.value, value.value)),
      ...last(add(e, int(1)), r.sum.value),
    ]),
  ]
}

type Spec = Omit<LaunchSpec, 'body'>
type ScanTile = Pick<Tile, 'threads' | 'items'>

function upByBlock(q: Queue, s: Scan, { threads, items }: ScanTile, spec: Spec): void {
  const { op, reset } = s
  q.launch({
    ...spec,
    shared: true,
    body: (b) => {
      const block = blockScan('x_meet', threads, op, reset !== undefined)
      const lo = (t: Expr): Expr => add(mul(b, int(threads * items)), mul(t, int(items)))
      return [
        ...block.declare,
        each('x_t0', threads, (t) => {
          const r = runningSum('x_own', int(0))
          return [...r.declare, reduceChunk(s, r, lo(t), items), ...block.storeSum(t, r)]
        }),
        each('x_t1', threads, (t) => [block.scanGroups(t)]),
        each('x_t2', threads, (t) => {
          const r = runningSum('x_tile', int(0))
          return [when(eq(t, int(0)), [...r.declare, block.addAll(r), ...storeChunkSum(s, b, r)])]
        }),
      ]
    },
  })
}

/** `hasSums`: there are sums of tiles. `sumsScanned`: the sums have been scanned already. */
function downByBlock(
  q: Queue,
  downSweep: DownSweep,
  { threads, items }: ScanTile,
  hasSums: boolean,
  sumsScanned: boolean,
  spec: Spec,
): void {
  const { op, reset } = downSweep.scan
  const segmented = reset !== undefined
  const addsTiles = hasSums && !sumsScanned
  q.launch({
    ...spec,
    shared: true,
    body: (b) => {
      const tiles = blockScan('x_tiles', threads, op, segmented)
      const block = blockScan('x_meet', threads, op, segmented)
      const lo = (t: Expr): Expr => add(mul(b, int(threads * items)), mul(t, int(items)))
      const addEarlierTiles = (t: Expr): Stmt[] => {
        const r = runningSum('x_earlier', int(0))
        const count = div(add(b, int(threads - 1)), int(threads))
        const first = mul(t, count)
        return [
          ...r.declare,
          loop('x_e', min(count, sub(b, first)), (k) => {
            const tile = add(first, k)
            return accumulate(op, r, get('x_sums', tile), segmented ? get('x_resets', tile) : null)
          }),
          ...tiles.storeSum(t, r),
        ]
      }
      return [
        ...block.declare,
        ...(addsTiles ? tiles.declare : []),
        each('x_t0', threads, (t) => {
          const r = runningSum('x_own', int(0))
          return [
            ...(addsTiles ? addEarlierTiles(t) : []),
            ...r.declare,
            reduceChunk(downSweep.scan, r, lo(t), items),
            ...block.storeSum(t, r),
          ]
        }),
        each('x_t1', threads, (t) => [...(addsTiles ? [tiles.scanGroups(t)] : []), block.scanGroups(t)]),
        each('x_t2', threads, (t) => {
          const r = runningSum('x_before', hasSums && sumsScanned ? get('x_sums', b) : int(0))
          return [
            ...r.declare,
            ...(addsTiles ? [tiles.addAll(r)] : []),
            ...block.addPreceding(r, t),
            ...scanChunk(downSweep, r, lo(t), items),
          ]
        }),
      ]
    },
  })
}

/** Elements per thread; threads are interleaved, so that neighbours read neighbouring elements. */
const ELEMENTS_PER_THREAD = 64

export interface Reduction extends ScanDomain {
  /** `max`: over non-negative values. Both start at 0. */
  readonly op: Op
  readonly values: (e: Expr) => readonly Expr[]
  /** One cell for each value. */
  readonly cells: Cells
}

export function reduce(q: Queue, r: Reduction): void {
  const { n, op } = r
  const { page, first, count } = r.cells
  q.launch({
    key: `${r.key} ${op} ${count}`,
    threads: Math.ceil(n / ELEMENTS_PER_THREAD),
    columns: { ...r.columns, x_totals: page },
    sizes: { ...r.sizes, x_n: n, x_cell: first },
    body: (t) => {
      const threads = variable(THREADS)
      const sums = Array.from({ length: count }, (_, j) => scalar(`x_sum${j}`, int(0)))
      return [
        ...sums.flatMap((s) => s.declare),
        loop('x_k', div(add(sub(variable('x_n'), t), sub(threads, int(1))), threads), (k) =>
          r.values(add(t, mul(k, threads))).map((v, j) => sums[j]!.set(combine(op, sums[j]!.value, v))),
        ),
        // Cells start at 0, so threads without a contribution skip the atomic update.
        ...sums.map((s, j) => {
          const cell = add(variable('x_cell'), int(j))
          const skipBelow = op === 'max' ? get('x_totals', cell) : int(0)
          return when(lt(skipBelow, s.value), [atomic(op, 'x_totals', cell, s.value)])
        }),
      ]
    },
  })
}
