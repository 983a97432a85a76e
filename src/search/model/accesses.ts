/** Memory accesses of statements: counts, coalescing, and latencies that threads wait for. */
import { DTYPE_BYTES } from '../../ir/dtype.ts'
import type { Load, Search } from '../../ir/expr.ts'
import { freeVars, walkExpr } from '../../ir/expr-tree.ts'
import type { Buffer, Store } from '../../ir/loops.ts'
import { remembered } from '../../ir/remembered.ts'
import { addressOf, type Lane, type Spread, spreadOf } from './coalescing.ts'
import { elementsOf } from './elements.ts'
import { accessKey, expected } from './estimates.ts'
import { innermostSerial, isBlock, isThread } from './frames.ts'
import { groupsOf } from './groups.ts'
import { countSpills } from './one-thread.ts'
import { onceOf, type Place, timesOf } from './place.ts'
import { reuseWithin } from './recurrence.ts'
import type { Structure } from './structure.ts'
import type { Gather, Sums } from './sums.ts'

/** Latencies of the reads of a statement, per execution. */
export interface Reads {
  /** 1 where anything comes from global memory, and where the address of such was itself read. */
  readonly rounds: number
  readonly hops: number
  /** Steps of searches per execution (`probes`), and those made once before the loop over a chunk (`before`). */
  readonly probes: number
  readonly before: number
  /** Reads that the near cache has not. */
  readonly misses: number
}

/** Threads, blocks and cache bytes of an SM, and the number of SMs; only magnitudes matter. */
const RESIDENT = 2048
const MOST_BLOCKS = 32
const NEAR_CACHE = 200e3
const PROCESSORS = 132
const SECTOR = 32

export class Accesses {
  readonly #buffers: Map<string, Buffer>
  readonly #structure: Structure
  readonly #sums: Sums
  readonly #threads: () => number

  /** `threads`: of a block, as far as is known. */
  constructor(buffers: ReadonlyMap<string, Buffer>, structure: Structure, sums: Sums, threads: () => number) {
    this.#buffers = new Map(buffers)
    this.#structure = structure
    this.#sums = sums
    this.#threads = threads
  }

  define(buffer: Buffer): void {
    this.#buffers.set(buffer.name, buffer)
  }

  buffer(name: string): Buffer | undefined {
    return this.#buffers.get(name)
  }

  reads(all: readonly (Load | Search)[], p: Place, lanes: readonly Lane[]): Reads {
    const out = { rounds: 0, hops: 0, probes: 0, before: 0, misses: 0 }
    for (const x of all) {
      const at = frameOf(x, p)
      if (p.frames[at]?.loads(accessKey(x))) continue
      if (x.kind === 'search') this.#search(x, p, at, out)
      else this.#load(x, p, at, lanes, out)
    }
    return out
  }

  #search(x: Search, p: Place, at: number, out: { probes: number; before: number }): void {
    const range = expected(x.hi, p)
    const probes = Math.log2(Math.max(2, Number.isNaN(range) ? 2 : range))
    // Equal shares are searched for once each, and then followed.
    const share = p.frames.find((f) => f.loop?.mode.kind === 'accumulate')
    this.#sums.searches += (timesOf(p, x, at) / Math.max(1, share?.extent ?? 1)) * probes
    if (share) out.before = Math.max(out.before, probes)
    else if (at >= innermostSerial(p.frames)) out.probes += probes
  }

  #load(
    x: Load,
    p: Place,
    at: number,
    lanes: readonly Lane[],
    out: { rounds: number; hops: number; misses: number },
  ): void {
    const buffer = this.#buffers.get(x.buffer)
    const times = timesOf(p, x, at)
    if (buffer?.scope === 'register') countSpills(this.#sums, buffer, x, p, times)
    if (!buffer || buffer.scope === 'register') return
    if (buffer.scope === 'shared') {
      this.#sums.shared += times * DTYPE_BYTES[buffer.dtype]
      return
    }
    const spread = spreadOf(addressOf(x.index, p), buffer, lanes, p.frames.slice(0, at + 1))
    const gather = this.#gather(x, buffer, spread, p, lanes)
    this.#sums.access('loads', buffer, times, { ...spread, fresh: spread.fresh * p.useful }, gather)
    const missing = gather ? 1 / gather.reuse : spread.fresh / spread.sectors
    out.misses += ((Math.min(1, missing) * p.useful) / spread.vector) * onceOf(p, x, at)
    if (at < 0 || at < innermostSerial(p.frames)) return
    out.rounds = 1
    if (gather) out.hops = 1
  }

  write(way: 'stores' | 'atomics', t: Load | Store, p: Place, lanes: readonly Lane[], times: number): void {
    const buffer = this.#buffers.get(t.buffer)
    if (buffer?.scope === 'register') countSpills(this.#sums, buffer, t, p, times)
    if (!buffer || buffer.scope === 'register') return
    if (buffer.scope === 'shared') this.#sums.shared += times * DTYPE_BYTES[buffer.dtype]
    else this.#sums.access(way, buffer, times, spreadOf(addressOf(t.index, p), buffer, lanes, p.frames))
  }

  /** Counts an atomic or plain update: a load and a store of the target. */
  update(t: Load, p: Place, lanes: readonly Lane[], times: number): void {
    const buffer = this.#buffers.get(t.buffer)
    if (buffer?.scope === 'global')
      this.#sums.access('loads', buffer, p.times, spreadOf(addressOf(t.index, p), buffer, lanes, p.frames))
    this.write('stores', t, p, lanes, times)
  }

  #coordinatesOf(x: Load): Load | undefined {
    return loadsIn(x).findLast((y) => this.#structure.recurrence.has(y.buffer))
  }

  /**
   * Blocks read coordinates at positions that follow each other in the order of the format; so do those that run together.
   * What of it is the same is read once, as far as the near cache holds it.
   */
  #gather(x: Load, buffer: Buffer, { run }: Spread, p: Place, lanes: readonly Lane[]): Gather | null {
    const from = this.#coordinatesOf(x)
    if (!from) return null
    const recurrence = this.#structure.recurrence.get(from.buffer)!
    const vars = freeVars(from)
    const at = frameOf(from, p)
    // Blocks, those of them that read at the same positions, and threads of a block that do.
    let [blocks, tiles, others] = [1, 1, 1]
    p.frames.forEach(({ loop, extent }, k) => {
      const own = loop !== null && vars.has(loop.var)
      if (isBlock(loop)) {
        blocks *= Math.max(1, extent)
        if (!own) tiles *= Math.max(1, extent)
      } else if (loop === null && k <= at) blocks *= extent
      else if (isThread(loop) && k <= at && !own) others *= Math.max(1, extent)
    })
    const positions = Math.max(1, (timesOf(p, from, at) * p.useful) / Math.max(1, blocks) / others)
    const bytes = run * DTYPE_BYTES[buffer.dtype]
    const of = bytes < SECTOR ? recurrence.sectors : recurrence.each
    const atOnce = Math.max(
      1,
      Math.min(MOST_BLOCKS, RESIDENT / Math.max(1, this.#threads()), blocks / PROCESSORS),
    )
    const kept = Math.max(1, NEAR_CACHE / atOnce / Math.max(SECTOR, bytes))
    const window = Math.min(positions, kept)
    return {
      reuse: reuseWithin(of, window) / p.useful,
      chip: reuseWithin(of, window * Math.max(1, Math.min(atOnce * PROCESSORS, blocks))),
      together: bytes < SECTOR ? reuseWithin(of, groupsOf(lanes, vars).warp) : 1,
      sweep: (DTYPE_BYTES[buffer.dtype] * elementsOf(buffer, this.#structure)) / tiles,
    }
  }
}

const loadsIn = remembered((x: Load): readonly Load[] => {
  const out: Load[] = []
  for (const e of x.index)
    walkExpr(e, (y) => {
      if (y.kind === 'load') out.push(y)
    })
  return out
})

/** The innermost loop that an address depends on; conditions are not left. */
function frameOf(x: Load | Search, p: Place): number {
  const vars = freeVars(x)
  return p.frames.findLastIndex((f) => f.loop === null || vars.has(f.loop.var))
}
