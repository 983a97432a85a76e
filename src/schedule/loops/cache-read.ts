/** Caching of reads: what an iteration reads is staged in shared memory or registers (`cache_read`). */

import { allocatedIn } from '../../ir/bindings.ts'
import { type Found, replaceLoop } from '../../ir/definitions.ts'
import { INT_RANGE, isFloat, isInt } from '../../ir/dtype.ts'
import { constant, type Expr, int, load, variable } from '../../ir/expr.ts'
import { buffersRead, readingLast, substitute } from '../../ir/expr-tree.ts'
import { coordinateName } from '../../ir/instr.ts'
import type { Buffer, For, Stmt } from '../../ir/loops.ts'
import { initsOf } from '../../ir/reductions.ts'
import { alloc, store } from '../../ir/statement-builders.ts'
import { stmt } from '../../ir/tree.ts'
import * as arg from '../arguments.ts'
import { isContiguous, ownBox, type Tile, tileIndex, tileOf } from '../block-tile.ts'
import { replaceLoads, type Use, usesOf } from '../buffer-uses.ts'
import { checkOneNest } from '../checks.ts'
import type { Context } from '../context.ts'
import { fillNest } from '../cooperative-fill.ts'
import { readConditions } from '../copy-conditions.ts'
import { inMemory } from '../declared-memory-copies.ts'
import { checkStable, copyNest, type Footprint, footprint, localIndex } from '../footprint.ts'
import type { LoopRef } from '../loop-ref.ts'
import { primitive } from '../primitive.ts'
import { eliminateRedundantGuards } from '../redundant-guards.ts'
import { featureMajor } from '../samples.ts'
import { tailGuards } from '../tail-guards.ts'

/** How a copy is laid out and filled. */
export interface CopyLayout {
  /** The last two dimensions are swapped. */
  readonly transposed?: boolean | undefined
  /** Elements from one row to the next, at least as many as a row has: against bank conflicts. */
  readonly stride?: number | undefined
  /** Elements in a row that a thread copies at once: 2, 4 or 8. */
  readonly by?: number | undefined
  /** What elements hold that are not read from the buffer. */
  readonly padded?: number | undefined
}

const takes = arg.takes(
  arg.buffer('buffer'),
  'at',
  arg.loop('at'),
  'in',
  arg.memory,
  arg.flag('transposed'),
  arg.optional('stride', arg.integer('stride')),
  arg.optional('by', arg.integer('by')),
  arg.optional('padded', arg.integer('padded')),
  arg.optional('->', arg.newBuffer('into')),
)
type CacheReadStep = arg.StepOf<'cache_read', typeof takes>

/**
 * `cache_read B at jo in shared -> Bs`: in each iteration of `jo`, what the iteration reads of `B` is copied
 * before the first use, and read from the copy. The copy has one dimension for each inner loop that the index depends on
 * (constant extents), so gathers (`B[j_indices[…], f]`) are copied like the rest. A shared copy has a dimension
 * for each thread-bound loop around, too, that the index depends on.
 *
 * Refused where the reads differ in their index, may not happen, or where the loop also writes the buffer.
 */
export const cacheRead = primitive({
  word: 'cache_read',
  takes,
  given: (buffer: string, at: LoopRef, place: arg.MemoryScope, into?: string, how?: CopyLayout) => ({
    buffer,
    at,
    place,
    ...arg.options('cache_read', how, ['transposed', 'stride', 'by', 'padded']),
    into,
  }),
  apply(cx, step) {
    const at = cx.loop(step.at)
    const { loop } = at
    checkOneNest(cx, loop, 'cache_read')
    const buffer = cx.buffer(step.buffer)
    if (buffer.scope === 'register')
      cx.refuse({
        code: 'in-registers',
        message: `${buffer.name} is in registers already`,
        loops: [loop],
        expected: 'a buffer in global or shared memory',
      })
    const uses = usesOf(loop.body, buffer.name)
    if (uses.length === 0 || allocatedIn(loop.body).has(buffer.name))
      cx.refuse({
        code: 'not-read',
        message: `${loop.name} does not read ${buffer.name} from outside`,
        loops: [loop],
        hint: 'cache at a loop around the reads',
      })
    if (uses.some((u) => u.mode === 'write'))
      cx.refuse({
        code: 'written-too',
        message: `${loop.name} writes ${buffer.name} as well: a copy would go stale`,
        loops: [loop],
        hint: `cache_write ${buffer.name}, or cache further inside`,
      })
    if (uses.some((u) => u.conditional))
      cx.refuse({
        code: 'conditional-read',
        message: `whether ${loop.name} reads ${buffer.name} depends on a condition, and a copy would always read it`,
        loops: [loop],
        hint: `cache at a loop inside of the condition, or leave ${buffer.name} where it is`,
      })
    checkStarts(cx, loop, buffer)
    const plain = footprint(cx, at, buffer, uses, step)
    const recursive = plain.loops.find((l) => usesOf([{ ...l, body: [] }], buffer.name).length > 0)
    if (recursive)
      cx.refuse({
        code: 'decides-itself',
        message: `how ${recursive.name} runs depends on ${buffer.name} itself`,
        loops: [recursive],
        hint: `cache at ${recursive.name}, or further inside`,
      })
    const print: Footprint = { ...plain, conditions: readConditions(cx, at, uses, step.scope) }
    // Just before the first use: copies that the index itself reads from stand before it.
    const first = Math.min(...uses.map((u) => u.child))
    checkStable(cx, loop, print, first)
    const name = step.into ? cx.claim(step.into) : cx.fresh(`${buffer.name}_${step.scope}`)
    const box =
      step.scope === 'shared'
        ? tileOf(cx, at, print, buffer, step)
        : LAYOUT.every((x) => step[x] === undefined) && ownBox(cx, at, print, buffer, step.memory)
    const { shape, copy, element, padding } = box
      ? boxed(cx, loop, step, box, buffer, name)
      : own(cx, at, step, print, buffer, name)
    const local: Buffer = Object.freeze({
      ...buffer,
      name,
      scope: step.scope,
      role: 'local',
      shape: shape.map(int),
      fill: 0,
      accumulate: buffer.dtype,
      packed: undefined,
      memory: undefined,
      padding,
      ...inMemory(cx, loop, step.memory, { ...buffer, name }, shape),
    })
    const body = replaceLoads(loop.body, buffer.name, (index, path) =>
      load(name, element({ index, path }), buffer.dtype),
    )
    const next = replaceLoop(cx.kernel.body, loop.var, (l) =>
      stmt({
        ...l,
        body: [...body.slice(0, first), alloc(local), copy, ...body.slice(first)],
      }),
    )
    return { body: step.padded === undefined ? next : eliminateRedundantGuards(next) }
  },
  example: {
    before: featureMajor,
    step: { kind: 'cache_read', buffer: 'A', at: 'j', scope: 'register', into: 'Ar' },
    after: `\
for i in 0..m
  for f in 0..32
    for j in 0..j_indptr[i + 1] - j_indptr[i]  reduce
      alloc Ar: f32[1] register
      Ar[0] = A[j_indptr[i] + j]
      C[i, f] += Ar[0] * B[j_indices[j_indptr[i] + j], f]  init`,
  },
})

/** The elements that a reduction updates have the identity before its outermost reduction loop: they are found there, too. */
function checkStarts(cx: Context, loop: For, buffer: Buffer): void {
  for (const { reduce, path } of initsOf(cx.kernel.body)) {
    const outermost = path.slice(0, path.indexOf(loop) + 1).find((l) => l.reduce)
    const target = reduce.targets.find((t) => t.index.some((e) => buffersRead(e).has(buffer.name)))
    if (outermost && target)
      cx.refuse({
        code: 'start-outside',
        message: `${buffer.name} says where elements of ${target.buffer} are, which are set to the identity before ${outermost.name}, where no copy is`,
        loops: [outermost],
        hint: `cache at a loop around ${outermost.name}`,
      })
  }
}

/** A copy, before it has a buffer: what fills it, and where an access finds its element. */
interface Copy {
  readonly shape: readonly number[]
  readonly copy: Stmt
  readonly element: (use: Pick<Use, 'index' | 'path'>) => readonly Expr[]
  readonly padding?: Buffer['padding']
}

const LAYOUT = ['transposed', 'stride', 'by', 'padded'] as const

/** What one thread reads, a dimension for each loop; in shared memory besides one for each thread-bound loop. */
function own(
  cx: Context,
  at: Found,
  step: CacheReadStep,
  print: Footprint,
  buffer: Buffer,
  name: string,
): Copy {
  const asked = LAYOUT.find((x) => step[x] !== undefined)
  if (asked)
    cx.refuse({
      code: 'no-box',
      message:
        step.scope === 'shared'
          ? `${asked}: threads decide for themselves which elements of ${buffer.name} they copy`
          : `${asked}: a copy in registers has no layout`,
      loops: [at.loop],
      expected: 'a copy in shared memory whose elements are the same for all threads',
    })
  const unneeded = tailGuards(cx, at, buffer, print, print.loops)
  const loops = print.loops.map((l) => ({ ...l, guards: l.guards.filter((g) => !unneeded.has(g)) }))
  return {
    shape: print.shape,
    copy: copyNest(cx, { ...print, loops }, name, step.scope, (index, element) =>
      store(name, index, load(buffer.name, print.index.map(element), buffer.dtype)),
    ),
    element: (use) => localIndex(print, use),
  }
}

/** What all threads of the block read, with the dimensions of the buffer. */
function boxed(cx: Context, loop: For, step: CacheReadStep, tile: Tile, buffer: Buffer, name: string): Copy {
  const vector = step.by ?? 1
  const last = tile.dims.at(-1)?.extent ?? 1
  if (step.by !== undefined && (!VECTORS.includes(vector) || last % vector !== 0 || !isContiguous(tile)))
    cx.refuse({
      code: 'bad-vector',
      message: `threads cannot copy ${vector} neighbouring elements of ${buffer.name} at once`,
      loops: [loop],
      expected: `2, 4 or 8 elements that divide the ${last} that lie side by side`,
    })
  if (step.transposed && tile.dims.length < 2)
    cx.refuse({
      code: 'no-rows',
      message: `a copy of ${tile.dims.length} dimension of ${buffer.name} cannot be transposed`,
      loops: [loop],
      expected: 'two dimensions or more',
      hint: 'leave out transposed',
    })
  checkPadding(cx, step, buffer)
  const laid = <T>(xs: readonly T[]): readonly T[] =>
    step.transposed ? [...xs.slice(0, -2), xs.at(-1)!, xs.at(-2)!] : xs
  const shape = [...laid(tile.dims.map((d) => d.extent))]
  if (shape.length === 0) shape.push(1)
  const row = shape.at(-1)!
  if (
    step.stride !== undefined &&
    (!Number.isInteger(step.stride) || step.stride < row || step.stride > 2 * row + 64)
  )
    cx.refuse({
      code: 'bad-stride',
      message: `rows of ${row} elements cannot lie ${step.stride} apart`,
      loops: [loop],
      expected: `a stride from ${row} to ${2 * row + 64}`,
    })
  if (step.stride !== undefined) shape[shape.length - 1] = step.stride
  const at = (xs: readonly Expr[]): readonly Expr[] => (xs.length > 0 ? laid(xs) : [int(0)])
  const vars = tile.dims.map((d) => variable(d.var))
  const set = (value: Expr): Stmt => store(name, at(vars), value)
  const pad = step.padded === undefined ? undefined : set(constant(step.padded, buffer.dtype))
  const copy = set(load(buffer.name, tile.index, buffer.dtype))
  return {
    shape,
    copy: fillNest(cx, tile, name, vector, copy, pad),
    element: (use) => at(tileIndex(tile, use)),
    padding: paddingOf(step.padded, whereOf(tile, laid(tile.dims))),
  }
}

/** What is not read from the buffer; a copy that holds all of its elements has none of that, whatever it were. */
const paddingOf = (padded: number | undefined, where: readonly Expr[]): Buffer['padding'] =>
  padded === undefined && where.length > 0 ? undefined : { value: padded ?? 0, where }

/** The padding is a value of the buffer's type. */
function checkPadding(cx: Context, { padded }: CacheReadStep, { name, dtype }: Buffer): void {
  const [low, high] = isInt(dtype)
    ? INT_RANGE[dtype as 'i32']
    : dtype === 'bool'
      ? [0, 1]
      : [-Infinity, Infinity]
  if (
    padded === undefined ||
    (padded >= low && padded <= high && (isFloat(dtype) || Number.isInteger(padded)))
  )
    return
  cx.refuse({
    code: 'bad-padding',
    message: `${name} is ${dtype}, and the padding ${padded}`,
    expected: `a value of ${dtype}`,
  })
}

/** What holds of elements that are the buffer's, over coordinates of the copy. */
function whereOf(tile: Tile, dims: Tile['dims']): readonly Expr[] {
  const map = new Map<string, Expr>(dims.map((d, k) => [d.var, variable(coordinateName(k))]))
  return readingLast([...tile.guards, ...tile.conditions].map((g) => substitute(g, map)))
}

const VECTORS = [2, 4, 8]
