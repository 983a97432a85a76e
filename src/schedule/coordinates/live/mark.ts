/**
 * The loop nest that marks the coordinates of a dense tensor that hold a value, in a bitmask of 32 coordinates a word,
 * and its default schedules. On GPUs, neighbouring threads read neighbouring elements (16 bytes each), and the threads
 * of a word exchange registers. A single thread reads elements in memory order.
 */
import { type Axis, isStored, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import type { NestDefault } from '../../../ir/coordinates/runtime-lists.ts'
import type { Buffer1, Iteration, Kernel1 } from '../../../ir/coordinates/stage1.ts'
import { declaredMonoids } from '../../../ir/coordinates/stage1-tree.ts'
import { unusedName } from '../../../ir/expressions/bound-names.ts'
import type { Expr, Load } from '../../../ir/expressions/expr.ts'
import {
  add,
  all,
  and,
  call,
  cast,
  constant,
  differs,
  int,
  load,
  lt,
  mul,
  select,
  variable,
} from '../../../ir/expressions/expr.ts'
import { freeVars, mentions, substitute } from '../../../ir/expressions/expr-tree.ts'
import { DTYPE_BYTES } from '../../../ir/values/dtype.ts'
import { builtinMonoid, type Monoid } from '../../../ir/values/monoid.ts'
import type { Unused } from '../as/part-statements.ts'
import type { LiveFormat } from './format.ts'
import { AHEAD, iter, LANES, type Loop, loopOf, nest, ROWS, Steps, sum, THREADS, v } from './nests.ts'

/** The number of coordinates in a word. */
export const WORD = 32

/** The dense tensor whose values decide which coordinates a format lists. */
export interface Source {
  readonly buffer: Buffer1
  /** Index of the tensor's first dimension that the format covers. */
  readonly start: number
  /** The axes of the covered dimensions. */
  readonly over: readonly StoredAxis[]
  /** All axes of the kernel, including those of other tensors. */
  readonly axes: readonly Axis[]
  /** A further condition on the elements, over the names of the axes in `over`; null if there is no condition. */
  readonly where: Expr | null
  /** The reducer of words of the bitmask. */
  readonly reducer: Monoid
}

/** Returns the value of the bit at `place`. */
export const bitOf = (place: Expr): Expr => call('shift_left', [int(1), place])

const [LEFT, RIGHT] = [variable('a.value', 'i32'), variable('b.value', 'i32')]
const BITS: Monoid = {
  ...builtinMonoid('+', 'i32'),
  name: 'bit_or',
  left: [LEFT],
  right: [RIGHT],
  result: [call('bit_or', [LEFT, RIGHT])],
}

/** Returns the reducer of words, under a name that no other reducer of the kernel has. */
export function wordReducer({ body }: Kernel1): Monoid {
  const declared = declaredMonoids(body)
  const isOther = (name: string): boolean => (declared.get(name) ?? BITS).result !== BITS.result
  return { ...BITS, name: unusedName(BITS.name, isOther) }
}

/** Returns the loop nest `name` over the loops `word` and `bit`, which fills `marks`, and its default schedules. */
export function markNest(
  format: LiveFormat,
  source: Source,
  { name, word, bit, marks }: Readonly<Record<'name' | 'word' | 'bit', string>> & { readonly marks: Load },
  unused: Unused,
): { readonly nest: Iteration; readonly defaults: readonly NestDefault[] } {
  const { buffer } = source
  const outer = format.outer.map((a) => a.name)
  const listed = add(mul(v(word), int(WORD)), v(bit))
  const { index, axes, held, inside } = elementAt(source, format, listed, unused)
  const order = index.flatMap((e) => [...freeVars(e)])
  const reduced = order.filter((x) => x !== word && !outer.includes(x))
  // Positions of outer axes that form several digits of a coordinate may exceed its extent. Their words are set to 0,
  // not skipped.
  const isOfList = (e: Expr): boolean => !order.some((x) => !outer.includes(x) && mentions(e, x))
  const exists = inside.filter(isOfList)
  const bits = select(held, cast(bitOf(v(bit)), 'i32'), constant(0, 'i32'))
  const extents = new Map(
    [...source.axes.filter(isStored), ...format.inner].map((a) => [a.name, a.extent] as const),
  ).set(bit, int(WORD))
  const m: MarkNest = {
    name,
    tensor: buffer,
    marks: marks.buffer,
    outer: outer.map((x) => loopOf(name, x)),
    word: loopOf(name, word),
    bit,
    reduced: reduced.map((x) => loopOf(name, x, extents.get(axes.get(x) ?? x))),
    order,
  }
  const parallel = isAcross(m)
    ? [...(buffer.fill === 0 ? [across(m, unused(`${buffer.name}_read`))] : []), across(m, null)]
    : [along(m)]
  return {
    nest: nest(
      name,
      [...outer.map((x) => iter(x, 'S')), iter(word, 'S'), ...reduced.map((x) => iter(x, 'R', axes.get(x)))],
      [
        sum(
          { ...marks, dtype: 'i32' },
          exists.length > 0 ? select(all(exists), bits, constant(0, 'i32')) : bits,
          source.reducer,
        ),
      ],
      inside.filter((e) => !isOfList(e)),
    ),
    defaults: [
      ...parallel.map(({ steps }) => ({ nest: name, steps })),
      { nest: name, singleThread: true, steps: alone(m).steps },
    ],
  }
}

/**
 * Returns the index of the element at the coordinate `listed`, with the condition `held` that the tensor holds a value
 * there. `axes` has the axes of the other dimensions: a coordinate is listed if any element along them holds a value.
 * `inside` has the bounds of the coordinates.
 */
function elementAt(
  { buffer, start, over, where }: Source,
  format: LiveFormat,
  listed: Expr,
  unused: (name: string) => string,
) {
  const coordinates = format.inverse(listed)
  const axes = new Map<string, string>()
  const index = buffer.axes.map((axis, k) => {
    const own = coordinates[k - start]
    if (own) return own
    const name = unused(axis)
    axes.set(name, axis)
    return variable(name)
  })
  const holds = differs(load(buffer.name, index, buffer.dtype), buffer.fill)
  const at = new Map(over.map((a, k) => [a.name, coordinates[k]!]))
  const held = where ? and(holds, substitute(where, at)) : holds
  // A coordinate of one digit ends with its axis. Words extend beyond the extent of the list if its coordinate is not
  // the top digit.
  const inside = coordinates.flatMap((e, k) => (e.kind === 'var' ? [] : [lt(e, over[k]!.extent)]))
  const isFirst = format.inverse(LISTED).some((e) => firstDigit(e) === LISTED)
  if (!isFirst) inside.unshift(lt(listed, format.extent))
  return { index, axes, inside, held }
}

const LISTED = variable('listed')

/** Returns the top digit of a coordinate, which the extent of the coordinate bounds. */
const firstDigit = (e: Expr): Expr => (e.kind === 'binary' ? firstDigit(e.a) : e)

/** Bytes that a thread reads at once. */
const ACCESS = 16
/** Maximum of guarded elements in an unrolled loop without constant end: 24 took SwiftShader 19 GB, 16 took 0.4 s. */
const GUARDS = 16
/** Neighbouring words in which one thread marks coordinates in turn: a cache line of 32-bit words. */
const SIDE = 16

interface MarkNest {
  readonly name: string
  readonly tensor: Buffer1
  readonly marks: string
  readonly outer: readonly Loop[]
  readonly word: Loop
  readonly bit: string
  /** Loops over the elements of a word, by decreasing address stride. */
  readonly reduced: readonly Loop[]
  /** Names of all loops, by decreasing address stride. */
  readonly order: readonly string[]
}

const isAcross = ({ reduced, order }: MarkNest): boolean => reduced.at(-1)?.name === order.at(-1)

/** Returns the greatest power of two up to `most` that divides the extent; 1 if the extent is not constant. */
function factor({ extent }: Loop, most: number): number {
  let by = 1
  while (by * 2 <= most && extent !== null && extent % (by * 2) === 0) by *= 2
  return by
}

/** Returns the schedule for one thread: elements in memory order, words of neighbouring elements in registers. */
function alone(m: MarkNest): Steps {
  const s = new Steps()
  const outer = [...m.outer, m.word].toSorted((a, b) => m.order.indexOf(a.name) - m.order.indexOf(b.name))
  if (isAcross(m)) {
    s.reorder([...outer, ...m.reduced])
    s.unroll(m.reduced.findLast((l) => l.extent !== 1) ?? m.reduced.at(-1)!, AHEAD)
    return s
  }
  const [tile, side] = s.split(outer.at(-1)!, SIDE, 'side')
  s.reorder([...outer.slice(0, -1), tile, ...m.reduced, side])
  s.inRegisters('cache_write', m.marks, tile!)
  s.unroll(side!)
  return s
}

/** Returns a schedule in which the threads of a row read the elements of one word, or of neighbouring words. */
function across(m: MarkNest, copy: string | null): Steps {
  const s = new Steps()
  const outer = s.fuse(m.outer, `${m.word.name}_outer`)
  const finest = m.reduced.at(-1)!
  const coarser = m.reduced.slice(0, -1)
  const most = Math.min(8, ACCESS / DTYPE_BYTES[m.tensor.dtype])
  const [above, vector] = s.split(finest, finest.extent === null ? most : factor(finest, most), 'element')
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
    lanes = s.fuse([mine!, ...(lanes ? [lanes] : [])], `${m.word.name}_lane`)
    left = others ?? undefined
  }
  const serial = [...coarser.slice(0, -1), left ?? null, rest].filter((l) => l !== null)
  const work = serial.reduce((n, l) => n * (l.extent ?? 1), 1)
  const [first] = serial
  const rows = first && next ? factor(first, Math.min(ROWS, Math.max(1, Math.floor(work / AHEAD)))) : 1
  const [firstLeft, row] = first ? s.split(first, rows, 'row') : [null, null]
  const inThread = [firstLeft, ...serial.slice(1)].filter((l) => l !== null)
  const width = (lanes?.extent ?? 1) * rows
  const [block, words] = s.split(m.word, Math.max(1, THREADS / width), 'thread')
  s.reorder([outer, block, words, row, lanes, ...inThread, vector])
  s.bind([outer, 'block.y'], [block, 'block.x'], [words, 'thread.y'], [row, 'thread.z'], [lanes, 'thread.x'])
  const inner = inThread.at(-1)
  const ahead = inner?.extent != null && inner.extent <= AHEAD ? inner : undefined
  const around = ahead ? (inThread.at(-2) ?? lanes ?? row ?? words) : (inner ?? lanes ?? row ?? words)
  if (copy !== null && vector && around) {
    s.inRegisters('cache_read', m.tensor.name, around, { padded: 0, into: copy })
    s.step('vectorize', { loop: `${copy}.${vector.name}` })
    if (ahead) s.unroll({ ...ahead, nest: copy })
  }
  if (inner)
    s.unroll(inner, ahead ? undefined : inner.extent === null ? GUARDS / (vector?.extent ?? 1) : AHEAD)
  return s
}

/** Returns a schedule in which each thread has a word, and neighbouring threads have words of neighbouring elements. */
function along(m: MarkNest): Steps {
  const s = new Steps()
  const finest = [...m.outer, m.word].find((l) => l.name === m.order.at(-1))!
  const others = s.fuse(
    m.outer.filter((l) => l !== finest),
    `${m.word.name}_outer`,
  )
  const [block, lane] = s.split(finest, LANES, 'thread')
  const [words, word] = s.split(m.word, THREADS / LANES, 'thread')
  s.reorder([others, words, block, word, lane, ...m.reduced])
  s.bind([others, 'block.z'], [words, 'block.y'], [block, 'block.x'], [word, 'thread.y'], [lane, 'thread.x'])
  s.unroll(m.reduced.at(-1)!, AHEAD)
  return s
}
