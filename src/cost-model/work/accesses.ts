/** Memory accesses of statements: counts, coalescing, and latencies that threads wait for. */

import type { Load, Search } from '../../ir/expressions/expr.ts'
import { freeVars, walkExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { memoize } from '../../ir/memoize.ts'
import type { Buffer, Store } from '../../ir/statements/loops.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { reuseWithin } from '../matrix/index-facts.ts'
import type { Structure } from '../matrix/structure.ts'
import { countSpills, distinctValues } from '../threads/thread-groups.ts'
import { addressOf, type Lane, SECTOR, type Transactions, transactionsOf } from './coalescing.ts'
import { elementsOf, expectedValue } from './estimates.ts'
import type { Gather, LaunchSums } from './launch-sums.ts'
import { hoistedShare, innermostSerial, isBlock, isThread, type Place, timesOf } from './place.ts'

/** Latencies of the reads of a statement, per execution. */
export interface Reads {
  /**
   * `rounds`: 1 if the statement loads from global memory in its innermost serial loop. `hops`: 1 if the address of
   * such a load is itself loaded.
   */
  readonly rounds: number
  readonly hops: number
  /** Steps of binary searches per execution, and those made once before the loop over a chunk. */
  readonly probes: number
  readonly hoistedProbes: number
  /** Expected misses of the near cache (L1 of an SM). */
  readonly misses: number
}

/** Threads, blocks and cache bytes of an SM, and the number of SMs; only magnitudes matter. */
const RESIDENT_THREADS = 2048
const RESIDENT_BLOCKS = 32
const NEAR_CACHE_BYTES = 200e3
const SM_COUNT = 132

/** Adds the memory traffic of loads, stores and atomic updates to the sums of a launch. */
export class Accesses {
  readonly #buffers: Map<string, Buffer>

  /** @param threads - Number of threads of a block, as far as the walk has determined it */
  constructor(
    buffers: ReadonlyMap<string, Buffer>,
    private readonly structure: Structure,
    private readonly sums: LaunchSums,
    private readonly threads: () => number,
  ) {
    this.#buffers = new Map(buffers)
  }

  define(buffer: Buffer): void {
    this.#buffers.set(buffer.name, buffer)
  }

  buffer(name: string): Buffer | undefined {
    return this.#buffers.get(name)
  }

  reads(accesses: readonly (Load | Search)[], p: Place, lanes: readonly Lane[]): Reads {
    const latencies = { rounds: 0, hops: 0, probes: 0, hoistedProbes: 0, misses: 0 }
    for (const x of accesses) {
      const depth = frameIndexOf(x, p)
      const loaded = p.frames[depth]?.loaded
      if (loaded?.has(keyOf(x))) continue
      loaded?.add(keyOf(x))
      if (x.kind === 'search') this.#search(x, p, depth, latencies)
      else this.#load(x, p, depth, lanes, latencies)
    }
    return latencies
  }

  #search(x: Search, p: Place, depth: number, latencies: { probes: number; hoistedProbes: number }): void {
    const range = expectedValue(x.hi, p)
    const probes = Math.log2(Math.max(2, Number.isNaN(range) ? 2 : range))
    // A merge-path loop searches once per chunk, before the loop, and then advances.
    const share = p.frames.find((f) => f.loop?.mode.kind === 'accumulate')
    this.sums.searches += (timesOf(p, x, depth) / Math.max(1, share?.extent ?? 1)) * probes
    if (share) latencies.hoistedProbes = Math.max(latencies.hoistedProbes, probes)
    else if (depth >= innermostSerial(p.frames)) latencies.probes += probes
  }

  #load(
    x: Load,
    p: Place,
    depth: number,
    lanes: readonly Lane[],
    latencies: { rounds: number; hops: number; misses: number },
  ): void {
    const buffer = this.#buffers.get(x.buffer)
    const times = timesOf(p, x, depth)
    if (buffer?.scope === 'register') countSpills(this.sums, buffer, x, p, times)
    if (!buffer || buffer.scope === 'register') return
    if (buffer.scope === 'shared') {
      this.sums.shared += times * DTYPE_BYTES[buffer.dtype]
      return
    }
    const spread = transactionsOf(addressOf(x.index, p), buffer, lanes, p.frames.slice(0, depth + 1))
    const gather = this.#gather(x, buffer, spread, p, lanes)
    this.sums.access('loads', buffer, times, { ...spread, fresh: spread.fresh * p.useful }, gather)
    const missing = gather ? 1 / gather.reuse : spread.fresh / spread.sectors
    latencies.misses += ((Math.min(1, missing) * p.useful) / spread.vector) * hoistedShare(p, x, depth)
    if (depth < 0 || depth < innermostSerial(p.frames)) return
    latencies.rounds = 1
    if (gather) latencies.hops = 1
  }

  write(kind: 'stores' | 'atomics', t: Load | Store, p: Place, lanes: readonly Lane[], times: number): void {
    const buffer = this.#buffers.get(t.buffer)
    if (buffer?.scope === 'register') countSpills(this.sums, buffer, t, p, times)
    if (!buffer || buffer.scope === 'register') return
    if (buffer.scope === 'shared') this.sums.shared += times * DTYPE_BYTES[buffer.dtype]
    else this.sums.access(kind, buffer, times, transactionsOf(addressOf(t.index, p), buffer, lanes, p.frames))
  }

  /** Counts the load and the store of a non-atomic update of `t`, the latter `times` times. */
  update(t: Load, p: Place, lanes: readonly Lane[], times: number): void {
    const buffer = this.#buffers.get(t.buffer)
    if (buffer?.scope === 'global')
      this.sums.access(
        'loads',
        buffer,
        p.times,
        transactionsOf(addressOf(t.index, p), buffer, lanes, p.frames),
      )
    this.write('stores', t, p, lanes, times)
  }

  #coordinatesOf(x: Load): Load | undefined {
    return indexLoads(x).findLast((y) => this.structure.recurrence.has(y.buffer))
  }

  /**
   * Cache reuse of a load whose address depends on coordinates. Concurrent blocks read coordinates at consecutive
   * positions of the format. Recurring coordinates are read from memory once, up to the capacity of the near cache.
   * @returns `null` if the address is not read from coordinates
   */
  #gather(x: Load, buffer: Buffer, { run }: Transactions, p: Place, lanes: readonly Lane[]): Gather | null {
    const coordinateLoad = this.#coordinatesOf(x)
    if (!coordinateLoad) return null
    const coordinates = this.structure.recurrence.get(coordinateLoad.buffer)!
    const vars = freeVars(coordinateLoad)
    const depth = frameIndexOf(coordinateLoad, p)
    // Blocks in total, blocks that read at the same positions (`tiles`), and threads of a block that do (`sharers`).
    let [blocks, tiles, sharers] = [1, 1, 1]
    p.frames.forEach(({ loop, extent }, k) => {
      const isDependent = loop !== null && vars.has(loop.var)
      if (isBlock(loop)) {
        blocks *= Math.max(1, extent)
        if (!isDependent) tiles *= Math.max(1, extent)
      } else if (loop === null && k <= depth) blocks *= extent
      else if (isThread(loop) && k <= depth && !isDependent) sharers *= Math.max(1, extent)
    })
    const positions = Math.max(
      1,
      (timesOf(p, coordinateLoad, depth) * p.useful) / Math.max(1, blocks) / sharers,
    )
    const bytes = run * DTYPE_BYTES[buffer.dtype]
    const recurrence = bytes < SECTOR ? coordinates.sectors : coordinates.each
    const residentBlocks = Math.max(
      1,
      Math.min(RESIDENT_BLOCKS, RESIDENT_THREADS / Math.max(1, this.threads()), blocks / SM_COUNT),
    )
    const capacity = Math.max(1, NEAR_CACHE_BYTES / residentBlocks / Math.max(SECTOR, bytes))
    const window = Math.min(positions, capacity)
    return {
      reuse: reuseWithin(recurrence, window) / p.useful,
      chipReuse: reuseWithin(recurrence, window * Math.max(1, Math.min(residentBlocks * SM_COUNT, blocks))),
      threadsPerSector: bytes < SECTOR ? reuseWithin(recurrence, distinctValues(lanes, vars).warp) : 1,
      sweep: (DTYPE_BYTES[buffer.dtype] * elementsOf(buffer, this.structure)) / tiles,
    }
  }
}

const indexLoads = memoize((x: Load): readonly Load[] => {
  const loads: Load[] = []
  for (const e of x.index)
    walkExpr(e, (y) => {
      if (y.kind === 'load') loads.push(y)
    })
  return loads
})

/** Index of the innermost frame that the address depends on; conditions count, because they stop hoisting. */
function frameIndexOf(x: Load | Search, p: Place): number {
  const vars = freeVars(x)
  return p.frames.findLastIndex((f) => f.loop === null || vars.has(f.loop.var))
}
