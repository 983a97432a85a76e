/**
 * Stage II with expected trip counts: how often each statement runs and what it moves, without lowering. Loops multiply,
 * guards and conditions take their share, and what depends on the length of a segment is averaged over the lengths there are.
 * A load counts as often as the innermost loop runs that its address depends on: compilers keep it from there on.
 */

import { DTYPE_BYTES } from '../../ir/dtype.ts'
import type { Load, Search } from '../../ir/expr.ts'
import { freeVars, walkExpr } from '../../ir/expr-tree.ts'
import { levelOf } from '../../ir/hardware-axes.ts'
import type { Buffer, For, If, Kernel2, Reduce, Stmt, Store } from '../../ir/loops.ts'
import type { Body } from '../../ir/tree.ts'
import { addressOf, type Lane, spreadOf } from './coalescing.ts'
import { elementsOf } from './elements.ts'
import { accessKey, expected, type Known, type Range, type Segment, shareOf } from './estimates.ts'
import {
  blocksWith,
  type Frame,
  innermostSerial,
  isThread,
  lanesOf,
  threadsAround,
  tripsInOrder,
} from './frames.ts'
import { countBranches, countSpills } from './one-thread.ts'
import { guarded, narrowed, type Place, timesOf } from './place.ts'
import { operationsOf, readsIn, segmentsOf } from './statement-facts.ts'
import type { Structure } from './structure.ts'
import { Sums } from './sums.ts'
import { both, IDLE, repeated, type Steps } from './thread-steps.ts'
import type { KernelWork, LaunchWork, Serial } from './work.ts'

/** Lengths that a segment may have. */
interface Case {
  readonly length: number
  readonly share: number
}

export function workOf(kernel: Kernel2, structure: Structure): KernelWork {
  const buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  const clears = kernel.body.flatMap((s) => {
    const b = s.kind === 'fill' ? buffers.get(s.buffer) : undefined
    return b ? [{ bytes: DTYPE_BYTES[b.dtype] * elementsOf(b, structure) }] : []
  })
  const launches = kernel.body.flatMap((s) =>
    s.kind === 'for' ? [new Walk(buffers, structure).launch(s)] : [],
  )
  return { launches, clears }
}

class Walk {
  readonly #buffers: Map<string, Buffer>
  readonly #structure: Structure
  readonly #sums = new Sums()
  readonly #threads = new Map<string, number>()
  #blocks = 1

  constructor(buffers: ReadonlyMap<string, Buffer>, structure: Structure) {
    this.#buffers = new Map(buffers)
    this.#structure = structure
  }

  launch(top: For): LaunchWork {
    const { params, filled } = this.#structure
    const place: Place = {
      params,
      filled,
      ranges: new Map(),
      lengths: new Map(),
      times: 1,
      starts: 1,
      frames: [],
      held: [],
    }
    const { steps, rounds } = this.#stmt(top, place)
    const threads = [...this.#threads.values()].reduce((n, x) => n * x, 1)
    return { blocks: this.#blocks, threads, steps, rounds, ...this.#sums.result() }
  }

  #body(body: Body, p: Place): Steps {
    return body.reduce<Steps>((sum, s) => both(sum, this.#stmt(s, p)), IDLE)
  }

  #stmt(s: Stmt, p: Place): Steps {
    switch (s.kind) {
      case 'for':
        return this.#split(segmentsOf(s), p, (q) => this.#loop(s, q))
      case 'if':
        return this.#split(segmentsOf(s), p, (q) => this.#if(s, q))
      case 'alloc':
        this.#buffers.set(s.buffer.name, s.buffer)
        return IDLE
      case 'store':
      case 'reduce':
        return this.#leaf(s, p)
      default:
        return IDLE
    }
  }

  /** Once for each length that the segments may have. */
  #split(segments: readonly Segment[], p: Place, visit: (p: Place) => Steps): Steps {
    const open = segments.find((s) => !p.lengths.has(s.key))
    if (!open) return visit(p)
    const lengths = this.#structure.lengths.get(open.offsets)
    const cases: readonly Case[] = lengths?.bins ?? []
    let { steps, rounds } = IDLE
    const at = (length: number, share: number): Place => ({
      ...p,
      times: p.times * share,
      starts: p.starts * share,
      lengths: new Map(p.lengths).set(open.key, length),
    })
    const most = (a: Serial, b: Serial, share: number): Serial => ({
      mean: a.mean + share * b.mean,
      most: Math.max(a.most, b.most),
    })
    for (const { length, share } of cases) {
      const one = this.#split(segments, at(length, share), visit)
      // The longest of a bin is longer than its mean: waits and steps grow with it.
      const last = cases.at(-1)!.length === length && length > 0 ? lengths!.longest / length : 1
      const stretched = (s: Serial): Serial => ({ mean: s.mean, most: s.most * last })
      steps = most(steps, stretched(one.steps), share)
      rounds = most(rounds, stretched(one.rounds), share)
    }
    return { steps, rounds }
  }

  #loop(s: For, p: Place): Steps {
    let extent = expected(s.extent, p)
    if (Number.isNaN(extent)) extent = 1
    if (extent <= 0 && !s.reduce) return IDLE
    // The last round runs whole.
    if (s.mode.kind === 'unroll' && s.mode.predicated && s.mode.factor !== null)
      extent = Math.ceil(extent / s.mode.factor) * s.mode.factor
    const ranges = new Map<string, Range>(p.ranges).set(s.var, { lo: 0, extent })
    const inside = { ...p, ranges }
    const { share, held } = guarded(s, inside)
    const { mode } = s
    if (mode.kind === 'bind') {
      if (levelOf(mode.to) === 'block') this.#blocks = Math.max(this.#blocks, blocksWith(p.frames, extent))
      else this.#threads.set(mode.to, Math.max(this.#threads.get(mode.to) ?? 1, extent))
    }
    const sharers = s.cooperative ? threadsAround(p.frames) : 1
    const times = (p.times * extent * share) / sharers
    const starts = s.reduce ? p.starts : (p.starts * extent * share) / sharers
    countBranches(this.#sums, this.#structure, s, p, extent, share / sharers)
    const frame: Frame = { loop: s, extent: (extent * share) / sharers, times, loaded: new Set() }
    const { steps, rounds } = this.#body(s.body, {
      ...inside,
      times,
      starts,
      held,
      frames: [...p.frames, frame],
    })
    if (mode.kind === 'bind') return { steps: { ...steps, mean: steps.mean * share }, rounds }
    const trips = Math.max(0, (extent * share) / sharers)
    return { steps: repeated(steps, trips), rounds: repeated(rounds, tripsInOrder(s, trips)) }
  }

  #if(s: If, p: Place): Steps {
    const share = shareOf(s.cond, p)
    this.#sums.branches += p.times
    const branch = (body: Body, part: number, ranges: Known['ranges']): Steps => {
      if (body.length === 0 || part === 0) return IDLE
      const times = p.times * part
      const frame: Frame = { loop: null, extent: part, times, loaded: new Set() }
      return this.#body(body, { ...p, ranges, times, starts: p.starts * part, frames: [...p.frames, frame] })
    }
    const then = branch(s.then, share, narrowed(s.cond, p, true))
    const other = branch(s.else, 1 - share, narrowed(s.cond, p, false))
    const either = (a: Serial, b: Serial): Serial => ({
      mean: share * a.mean + (1 - share) * b.mean,
      most: Math.max(a.most, b.most),
    })
    return { steps: either(then.steps, other.steps), rounds: either(then.rounds, other.rounds) }
  }

  #leaf(s: Store | Reduce, p: Place): Steps {
    const lanes = lanesOf(p.frames)
    let waits = 0
    for (const x of readsIn(s)) if (this.#read(x, p, lanes)) waits = 1
    const matrix = p.frames.some((f) => f.loop?.mode.kind === 'instr')
    this.#sums.statement(p.times, operationsOf(s), matrix)
    if (s.kind === 'store') this.#write('stores', s, p, lanes, p.times)
    else this.#reduce(s, p, lanes)
    return { steps: { mean: 1, most: 1 }, rounds: { mean: waits, most: waits } }
  }

  /** Whether it waits for global memory. */
  #read(x: Load | Search, p: Place, lanes: readonly Lane[]): boolean {
    const at = this.#frameOf(x, p)
    const frame = p.frames[at]
    const key = accessKey(x)
    if (frame?.loaded.has(key)) return false
    frame?.loaded.add(key)
    const times = timesOf(p, x, at)
    if (x.kind === 'search') {
      const range = expected(x.hi, p)
      // Equal shares are searched for once each, and then followed.
      const each = p.frames.find((f) => f.loop?.mode.kind === 'accumulate')?.extent ?? 1
      this.#sums.searches +=
        (times / Math.max(1, each)) * Math.log2(Math.max(2, Number.isNaN(range) ? 2 : range))
      return true
    }
    const buffer = this.#buffers.get(x.buffer)
    if (buffer?.scope === 'register') countSpills(this.#sums, buffer, x, p, times)
    if (!buffer || buffer.scope === 'register') return false
    if (buffer.scope === 'shared') {
      this.#sums.shared += times * DTYPE_BYTES[buffer.dtype]
      return false
    }
    const inside = p.frames.slice(0, at + 1)
    this.#sums.access('loads', buffer, times, spreadOf(addressOf(x.index, p), buffer, lanes, inside))
    return at >= 0 && at >= innermostSerial(p.frames)
  }

  #write(way: 'stores' | 'atomics', t: Load | Store, p: Place, lanes: readonly Lane[], times: number): void {
    const buffer = this.#buffers.get(t.buffer)
    if (buffer?.scope === 'register') countSpills(this.#sums, buffer, t, p, times)
    if (!buffer || buffer.scope === 'register') return
    if (buffer.scope === 'shared') this.#sums.shared += times * DTYPE_BYTES[buffer.dtype]
    else this.#sums.access(way, buffer, times, spreadOf(addressOf(t.index, p), buffer, lanes, p.frames))
  }

  #reduce(s: Reduce, p: Place, lanes: readonly Lane[]): void {
    const accumulate = p.frames.findLast((f) => f.loop?.mode.kind === 'accumulate')
    const across = p.frames.filter((f) => f.loop?.reduce && isThread(f.loop))
    for (const t of s.targets) {
      const buffer = this.#buffers.get(t.buffer)
      if (accumulate) this.#segmented(s, t, accumulate, p, lanes)
      else if (s.atomic) this.#write('atomics', t, p, lanes, p.times)
      else if (across.length > 0) {
        // Every thread has a register of its own; they are added up at the end.
        for (const f of across) this.#sums.exchanges += p.starts * f.extent
        this.#write('stores', t, p, lanes, p.starts)
      } else if (buffer && buffer.scope !== 'register') {
        if (buffer.scope === 'global')
          this.#sums.access(
            'loads',
            buffer,
            p.times,
            spreadOf(addressOf(t.index, p), buffer, lanes, p.frames),
          )
        this.#write('stores', t, p, lanes, p.times + (s.init ? p.starts : 0))
      } else if (buffer) countSpills(this.#sums, buffer, t, p, 2 * p.times)
    }
  }

  /** Equal shares of positions: a result is written once for each segment that a share has part of. */
  #segmented(s: Reduce, t: Load, f: Frame, p: Place, lanes: readonly Lane[]): void {
    const { loop, extent, times } = f
    const offsets = this.#offsetsOf(t)
    const ends = offsets ? offsets.count * (1 - (offsets.bins.find((b) => b.length === 0)?.share ?? 0)) : 0
    const positions = Math.max(1, offsets?.sum ?? 1)
    const shares = extent > 0 ? times / extent : 0
    const each = Math.min(extent, 1 + (extent * ends) / positions)
    const elements = times > 0 ? p.times / times : 0
    const updates = shares * each * elements
    const within = loop?.mode.kind === 'accumulate' && loop.mode.within !== undefined
    const groups = within
      ? Math.max(1, p.frames.find((x) => isThread(x.loop) && x.loop?.reduce)?.extent ?? 1)
      : 1
    const atomics = s.atomic ? Math.min(updates, (2 * shares * elements) / groups) : 0
    this.#write('atomics', t, p, lanes, atomics)
    this.#write('stores', t, p, lanes, updates - atomics)
    if (within) this.#sums.exchanges += shares * elements
  }

  #offsetsOf(t: Load) {
    let name: string | undefined
    for (const e of t.index)
      walkExpr(e, (x) => {
        if (x.kind === 'search') name ??= x.buffer
      })
    return name === undefined ? undefined : this.#structure.lengths.get(name)
  }

  /** The innermost loop that an address depends on; conditions are not left. */
  #frameOf(x: Load | Search, p: Place): number {
    const vars = freeVars(x)
    return p.frames.findLastIndex((f) => f.loop === null || vars.has(f.loop.var))
  }
}
