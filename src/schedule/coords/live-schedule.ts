/**
 * How the nests that build a format run where no step says it. On threads: neighbouring ones read neighbouring elements, 16 bytes
 * each, those of a word meet by exchange of registers, and a block has the words of a group, or many groups' words. One thread
 * reads elements as they lie.
 */
import { DTYPE_BYTES, type Dtype } from '../../ir/dtype.ts'
import type { Expr } from '../../ir/expr.ts'
import type { DefaultStep, NestDefault } from '../../ir/stage1.ts'

/** Threads of a block, of a row of threads that exchange registers, and bytes that one reads at once. */
export const THREADS = 256
const LANES = 32
const ACCESS = 16
/** What a thread reads before it waits, of elements and of words, and rows of threads of a block. */
const AHEAD = 8
const ROUNDS = 4
const ROWS = 8
/** Elements of what is unrolled where no number ends the loop: each has a guard. 24 in a loop took SwiftShader 19 GB and no end, 16 0.4 s. */
const GUARDS = 16
/** Neighbouring words of which one thread marks a coordinate after the other: a cache line of 32 bits each. */
const SIDE = 16

export interface Loop {
  readonly name: string
  /** How many iterations it has, where that is known. */
  readonly extent: number | null
}

export interface MarkNest {
  readonly nest: string
  readonly tensor: string
  readonly dtype: Dtype
  readonly marks: string
  /** A copy of what a thread reads; `null` where what the tensor does not have cannot be copied as well. */
  readonly copy: string | null
  readonly outer: readonly string[]
  readonly word: string
  readonly bit: string
  /** Over what belongs to a word, from what changes the element's address most. */
  readonly reduced: readonly Loop[]
  /** All loops, from what changes it most to what changes it least. */
  readonly order: readonly string[]
}

const finestOf = ({ order }: MarkNest): string => order.at(-1)!
const isAcross = (m: MarkNest): boolean => m.reduced.at(-1)?.name === finestOf(m)

export const loopOver = (name: string, extent: Expr): Loop => ({
  name,
  extent: extent.kind === 'const' ? extent.value : null,
})

/** The greatest power of two that divides the extent, at most `most`. */
function factor({ extent }: Loop, most: number): number {
  let by = 1
  while (by * 2 <= most && extent !== null && extent % (by * 2) === 0) by *= 2
  return by
}

/** Steps as they are put down. */
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

  /** Without the loop that has one iteration. */
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
  return [...made.map((steps) => ({ nest: m.nest, steps })), { nest: m.nest, alone: true, steps: alone(m) }]
}

/** Elements as they lie, several in a round; of words whose elements are neighbours, some are in registers. */
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

/** The threads of a row read what belongs to one word, or to words side by side. */
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
  // What lies further apart fills the row of threads, where words do not lie side by side.
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

/** Neighbouring threads have words whose elements are neighbours, each a word of its own. */
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

/** A sum over words, by its loop, and the copy that a thread has of it. */
interface WordSum {
  readonly nest: string
  readonly loop: string
  readonly buffer: string
  readonly copy: string
}

/** The nest that places coordinates, and those inside of it. */
export interface PlaceNest {
  readonly nest: string
  readonly outer: readonly string[]
  /** Loops over chunks of words, words of a chunk, and coordinates of a word. */
  readonly chunk: string
  readonly part: string
  readonly bit: string
  /** What a chunk sums. */
  readonly sums: readonly WordSum[]
  /** How much each word of a chunk has, and how much those before it have. */
  readonly size: string
  readonly start: WordSum
  /** Whether who has the last slot fills up a group. */
  readonly grouped: boolean
}

/** A row of threads has a chunk, and each of its threads a word: mostly, few of its bits are set. */
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

/** A nest that says where lists begin, and those inside of it. */
export interface OffsetsNest {
  readonly nest: string
  /** What is summed: the offsets, or what they would be if there were room for all. */
  readonly wanted: string
  readonly size: string
  readonly total: string
  readonly base: string
  /** What sums of chunks go to, and copies of that and of what is summed, of one element. */
  readonly bases: string
  readonly baseCopy: string
  readonly copy: string
  /** Loops: of one iteration, over chunks, over positions of a chunk, those before one, and chunks before one. */
  readonly once: string
  readonly chunk: string
  readonly part: string
  readonly other: string
  readonly earlier: string
}

/** One block: a row of threads has a chunk, and each thread sums what lies before one chunk. */
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
