/**
 * Default schedules of the format builder's loop nests. On GPUs, neighbouring threads read neighbouring elements (16
 * bytes each), the threads of a word exchange registers, and a block has the words of one or of many groups. A single
 * thread reads elements in memory order.
 */

import type { DefaultStep, NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Expr } from '../../../ir/expressions/expr.ts'
import { DTYPE_BYTES, type Dtype } from '../../../ir/values/dtype.ts'

/** Threads of a block, threads of a row that exchanges registers, and bytes that a thread reads at once. */
export const THREADS = 256
const LANES = 32
const ACCESS = 16
/** Elements (`AHEAD`) and words (`ROUNDS`) that a thread loads before it waits, and rows of threads in a block. */
const AHEAD = 8
const ROUNDS = 4
const ROWS = 8
/** Maximum of guarded elements in an unrolled loop without constant end: 24 took SwiftShader 19 GB, 16 took 0.4 s. */
const GUARDS = 16
/** Neighbouring words in which one thread marks coordinates in turn: a cache line of 32-bit words. */
const SIDE = 16

export interface Loop {
  readonly name: string
  /** The number of iterations; null if it is not constant. */
  readonly extent: number | null
}

export interface MarkNest {
  readonly nest: string
  readonly tensor: string
  readonly dtype: Dtype
  readonly marks: string
  /** Name of the copy of a thread's elements; null if elements out of bounds cannot be padded with zeros. */
  readonly copy: string | null
  readonly outer: readonly string[]
  readonly word: string
  readonly bit: string
  /** Loops over the elements of a word, by decreasing address stride. */
  readonly reduced: readonly Loop[]
  /** Names of all loops, by decreasing address stride. */
  readonly order: readonly string[]
}

const finestOf = ({ order }: MarkNest): string => order.at(-1)!
const isAcross = (m: MarkNest): boolean => m.reduced.at(-1)?.name === finestOf(m)

export const loopOver = (name: string, extent: Expr): Loop => ({
  name,
  extent: extent.kind === 'const' ? extent.value : null,
})

/** Returns the greatest power of two up to `most` that divides the extent; 1 if the extent is not constant. */
function factor({ extent }: Loop, most: number): number {
  let by = 1
  while (by * 2 <= most && extent !== null && extent % (by * 2) === 0) by *= 2
  return by
}

/** A schedule under construction. */
export class Steps {
  readonly #nest: string
  readonly steps: DefaultStep[] = []

  constructor(nest: string) {
    this.#nest = nest
  }

  step(kind: string, fields: Readonly<Record<string, unknown>>): void {
    this.steps.push({ kind, ...fields })
  }

  of = (loop: string): string => `${this.#nest}.${loop}`

  /** Splits a loop, and returns the outer and the inner loop; null for a loop that would have one iteration. */
  split(loop: Loop, by: number, what: string): readonly [Loop | null, Loop | null] {
    if (by === 1) return [loop, null]
    if (loop.extent === by) return [null, loop]
    const [outer, inner] = [`${loop.name}_${what}_outer`, `${loop.name}_${what}`]
    this.step('split', { loop: this.of(loop.name), by, into: [outer, inner] })
    return [
      { name: outer, extent: loop.extent === null ? null : Math.ceil(loop.extent / by) },
      { name: inner, extent: by },
    ]
  }

  fuse(loops: readonly (Loop | null)[], into: string): Loop | null {
    const all = loops.filter((l) => l !== null)
    if (all.length < 2) return all[0] ?? null
    this.step('fuse', { loops: all.map((l) => this.of(l.name)), into })
    return { name: into, extent: all.reduce((n, l) => n * (l.extent ?? 1), 1) }
  }

  reorder(loops: readonly (Loop | null)[]): void {
    this.step('reorder', { loops: loops.flatMap((l) => (l ? [this.of(l.name)] : [])) })
  }

  bind(...pairs: readonly (readonly [Loop | null, string])[]): void {
    const bindings = pairs.flatMap(([l, to]) => (l ? [{ loop: this.of(l.name), to }] : []))
    if (bindings.length > 0) this.step('bind', { bindings })
  }
}

export const named = (name: string): Loop => ({ name, extent: null })

export function markSteps(m: MarkNest): readonly NestDefault[] {
  const made = isAcross(m) ? [across(m, m.copy), across(m, null)] : [along(m)]
  return [
    ...made.map((steps) => ({ nest: m.nest, steps })),
    { nest: m.nest, singleThread: true, steps: alone(m) },
  ]
}

/** Returns the schedule for one thread: elements in memory order, words of neighbouring elements in registers. */
function alone(m: MarkNest): readonly DefaultStep[] {
  const s = new Steps(m.nest)
  const words = [...m.outer, m.word].map(named)
  const outer = words.toSorted((a, b) => m.order.indexOf(a.name) - m.order.indexOf(b.name))
  if (isAcross(m)) {
    s.reorder([...outer, ...m.reduced])
    const most = m.reduced.findLast((l) => l.extent !== 1) ?? m.reduced.at(-1)!
    s.step('unroll', { loop: s.of(most.name), by: AHEAD })
    return s.steps
  }
  const [tile, side] = s.split(named(finestOf(m)), SIDE, 'side')
  s.reorder([...outer.slice(0, -1), tile, ...m.reduced, side])
  s.step('cache_write', { buffer: m.marks, at: s.of(tile!.name), scope: 'register' })
  s.step('unroll', { loop: s.of(side!.name) })
  return s.steps
}

/** Returns a schedule in which the threads of a row read the elements of one word, or of neighbouring words. */
function across(m: MarkNest, copy: string | null): readonly DefaultStep[] {
  const s = new Steps(m.nest)
  const outer = s.fuse(m.outer.map(named), `${m.word}_outer`)
  const finest = m.reduced.at(-1)!
  const coarser = m.reduced.slice(0, -1)
  const most = Math.min(8, ACCESS / DTYPE_BYTES[m.dtype])
  const [above, vector] = s.split(finest, finest.extent === null ? most : factor(finest, most), 'element')
  const isSingle = coarser.length === 0
  let [rest, lanes] = above
    ? s.split(above, above.extent === null ? LANES : factor(above, LANES), 'lane')
    : [null, null]
  // If neighbouring words are not contiguous, elements at larger strides fill the row of threads.
  const next = coarser.at(-1)
  const open = LANES / (lanes?.extent ?? 1)
  const more = next && finest.name !== m.bit && !rest ? factor(next, open) : 1
  let left = next
  if (next && more > 1) {
    const [others, mine] = s.split(next, more, 'lane')
    s.reorder([...coarser.slice(0, -1), others, mine, lanes, vector])
    lanes = s.fuse([mine, lanes], `${m.word}_lane`)
    left = others ?? undefined
  }
  const serial = [...coarser.slice(0, -1), left ?? null, rest].filter((l) => l !== null)
  const work = serial.reduce((n, l) => n * (l.extent ?? 1), 1)
  const [first] = serial
  const rows = first && !isSingle ? factor(first, Math.min(ROWS, Math.max(1, Math.floor(work / AHEAD)))) : 1
  const [firstLeft, row] = first ? s.split(first, rows, 'row') : [null, null]
  const inThread = [firstLeft, ...serial.slice(1)].filter((l) => l !== null)
  const width = (lanes?.extent ?? 1) * rows
  const [block, words] = s.split(named(m.word), Math.max(1, THREADS / width), 'thread')
  s.reorder([outer, block, words, row, lanes, ...inThread, vector])
  s.bind([outer, 'block.y'], [block, 'block.x'], [words, 'thread.y'], [row, 'thread.z'], [lanes, 'thread.x'])
  const inner = inThread.at(-1)
  const ahead = inner?.extent != null && inner.extent <= AHEAD ? inner : undefined
  const around = ahead ? (inThread.at(-2) ?? lanes ?? row ?? words) : (inner ?? lanes ?? row ?? words)
  if (copy !== null && vector && around) {
    s.step('cache_read', {
      buffer: m.tensor,
      at: s.of(around.name),
      scope: 'register',
      padded: 0,
      into: copy,
    })
    s.step('vectorize', { loop: `${copy}.${vector.name}` })
    if (ahead) s.step('unroll', { loop: `${copy}.${ahead.name}` })
  }
  if (inner)
    s.step('unroll', {
      loop: s.of(inner.name),
      ...(ahead ? {} : { by: inner.extent === null ? GUARDS / (vector?.extent ?? 1) : AHEAD }),
    })
  return s.steps
}

/** Returns a schedule in which each thread has a word, and neighbouring threads have words of neighbouring elements. */
function along(m: MarkNest): readonly DefaultStep[] {
  const s = new Steps(m.nest)
  const finest = finestOf(m)
  const others = s.fuse(m.outer.filter((x) => x !== finest).map(named), `${m.word}_outer`)
  const [block, lane] = s.split(named(finest), LANES, 'thread')
  const [words, word] = s.split(named(m.word), THREADS / LANES, 'thread')
  s.reorder([others, words, block, word, lane, ...m.reduced])
  s.bind([others, 'block.z'], [words, 'block.y'], [block, 'block.x'], [word, 'thread.y'], [lane, 'thread.x'])
  s.step('unroll', { loop: s.of(m.reduced.at(-1)!.name), by: AHEAD })
  return s.steps
}

/** A sum over words: its loop nest, its loop, its buffer, and the copy of a thread. */
interface WordSum {
  readonly nest: string
  readonly loop: string
  readonly buffer: string
  readonly copy: string
}

/** The loop nest that places coordinates in a list, and the loop nests inside of it. */
export interface PlaceNest {
  readonly nest: string
  readonly outer: readonly string[]
  /** Names of the loops over chunks of words, words of a chunk, and coordinates of a word. */
  readonly chunk: string
  readonly part: string
  readonly bit: string
  /** The sums that each chunk computes. */
  readonly sums: readonly WordSum[]
  /** The loop nests for the count of each word of a chunk, and for the count before each word. */
  readonly size: string
  readonly start: WordSum
  /** True if coordinates are listed in groups: the last coordinate then also fills up its group. */
  readonly grouped: boolean
}

/** Returns the schedule: a row of threads for each chunk, a thread for each word, of which few bits are set. */
export function placeSteps(p: PlaceNest): readonly NestDefault[] {
  const s = new Steps(p.nest)
  const [block, row] = s.split(s.fuse([...p.outer, p.chunk].map(named), `${p.chunk}_all`)!, ROWS, 'row')
  s.bind([block, 'block.x'], [row, 'thread.y'])
  for (const sum of p.sums) {
    const inner = new Steps(sum.nest)
    const [rounds, lane] = inner.split(named(sum.loop), LANES, 'lane')
    inner.bind([lane, 'thread.x'])
    inner.step('unroll', { loop: inner.of(rounds!.name), by: ROUNDS })
    s.steps.push(...inner.steps, kept(sum, s.of(row!.name)))
  }
  const size = new Steps(p.size)
  size.bind([named(p.part), 'thread.x'])
  s.steps.push(...size.steps)
  s.bind([named(p.part), 'thread.x'])
  s.steps.push(kept(p.start, s.of(p.part)))
  s.step('unroll', { loop: `${p.start.nest}.${p.start.loop}`, by: AHEAD })
  s.step('unroll', { loop: s.of(p.bit), ...(p.grouped ? { by: ROUNDS } : {}) })
  return [{ nest: p.nest, steps: s.steps }]
}

const kept = (
  { buffer, copy }: Pick<WordSum, 'buffer' | 'copy'>,
  at: string,
): DefaultStep & Readonly<Record<string, unknown>> => ({
  kind: 'cache_write',
  buffer,
  at,
  scope: 'register',
  into: copy,
})

/**
 * The loop nest that computes the offsets of lists, and the loop nests inside of it: names of nests (`nest` to `base`),
 * of the summed buffer (`wanted`), of the sums before chunks (`bases`), of copies with one element, and of the loops of
 * one iteration, over chunks, positions of a chunk, earlier positions and earlier chunks.
 */
export type OffsetsNest = Readonly<
  Record<'nest' | 'size' | 'total' | 'base' | 'wanted' | 'bases' | 'baseCopy' | 'copy', string> &
    Record<'once' | 'chunk' | 'part' | 'other' | 'earlier', string>
>

/** Returns the schedule for one block: a row of threads for each chunk, a thread for each sum before a chunk. */
export function offsetSteps(n: OffsetsNest): readonly NestDefault[] {
  const s = new Steps(n.nest)
  s.bind([named(n.once), 'block.x'])
  for (const nest of [n.size, n.total, n.nest]) {
    const inner = new Steps(nest)
    const [, row] = inner.split(named(n.chunk), ROWS, 'row')
    inner.bind([row, 'thread.y'], [named(n.part), 'thread.x'])
    s.steps.push(...inner.steps)
  }
  const base = new Steps(n.base)
  const [, chunks] = base.split(named(n.chunk), THREADS, 'thread')
  const [row, lane] = base.split(chunks!, LANES, 'lane')
  base.bind([row, 'thread.y'], [lane, 'thread.x'])
  s.steps.push(
    ...base.steps,
    kept({ buffer: n.bases, copy: n.baseCopy }, base.of(lane!.name)),
    kept({ buffer: n.wanted, copy: n.copy }, s.of(n.part)),
  )
  base.step('unroll', { loop: base.of(n.earlier), by: AHEAD })
  s.steps.push(base.steps.at(-1)!)
  s.step('unroll', { loop: s.of(n.other), by: AHEAD })
  return [{ nest: n.nest, steps: s.steps }]
}
