/** The copies of `cache_read`: the statements that fill them, and the index of an access in them. */

import { tailGuards } from '../../../analysis/dependence/redundant-guards.ts'
import { Facts } from '../../../analysis/integers/facts.ts'
import { boundOfRun } from '../../../analysis/integers/mixed-radix.ts'
import { distinctExprs } from '../../../ir/expressions/distinct-expressions.ts'
import { add, all, constant, type Expr, int, load, mul, variable } from '../../../ir/expressions/expr.ts'
import { mentions, orderReadsLast, substitute } from '../../../ir/expressions/expr-tree.ts'
import { coordinateName, type Memory } from '../../../ir/instructions/instr.ts'
import { renameBound, substituteStmts } from '../../../ir/statements/bindings.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../../ir/statements/loops.ts'
import { forLoop, store, when } from '../../../ir/statements/statement-builders.ts'
import { elementType, INT_RANGE, isFloat, isInt } from '../../../ir/values/dtype.ts'
import type { Use } from '../../legality/buffer-uses.ts'
import { copyNest, type Footprint, localIndex, nestOf } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'
import type { CacheScope } from '../../steps/arguments.ts'
import { isContiguous, type Tile, tileIndex } from './block-tile.ts'
import { inMemory } from './copy-dimensions.ts'

/** The layout of a copy, and the way it is filled. */
export interface CopyLayout {
  /** True if the last two dimensions are swapped. */
  readonly transposed?: boolean | undefined
  /** The number of elements between the starts of rows, at least the length of a row; avoids bank conflicts. */
  readonly stride?: number | undefined
  /** The number of contiguous elements that a thread copies at once: 2, 4 or 8. */
  readonly by?: number | undefined
  /** The value of elements that are not read from the buffer. */
  readonly padded?: number | undefined
}

interface Asked extends CopyLayout {
  readonly scope: CacheScope
}

/** Options of copies that threads fill together. */
export const LAYOUT = ['transposed', 'stride', 'by'] as const

interface Copy {
  readonly shape: readonly number[]
  readonly copy: Stmt
  readonly element: (use: Pick<Use, 'index' | 'path'>) => readonly Expr[]
  readonly padding?: Buffer['padding']
}

/**
 * Returns the copy of the elements that one thread reads, with a dimension for each loop, and in shared memory for each
 * thread-bound loop. Throws `schedule/no-box` or `schedule/bad-padding`.
 */
export function own(
  cx: Context,
  at: LoopLocation,
  step: Asked,
  print: Footprint,
  buffer: Buffer,
  name: string,
): Copy {
  const inShared = step.scope === 'shared'
  const asked = (inShared ? ([...LAYOUT, 'padded'] as const) : LAYOUT).find((x) => step[x] !== undefined)
  if (asked)
    cx.refuse('schedule/no-box', [at.loop], {
      message: inShared
        ? `${asked}: each thread copies different elements of ${buffer.name}`
        : `${asked}: a copy in registers has no layout`,
      expected: 'a copy in shared memory whose elements are the same for every thread',
    })
  const unneeded = tailGuards(cx.kernel, at, buffer, print, print.loops)
  const loops = print.loops.map((l) => ({ ...l, guards: l.guards.filter((g) => !unneeded.has(g)) }))
  const { padded } = step
  checkPadding(cx, step, buffer)
  // A padded copy is filled as a whole: for each element, a condition decides between the buffer and the padding.
  const where =
    padded === undefined ? [] : orderReadsLast([...loops.flatMap((l) => l.guards), ...print.conditions])
  const nest: Footprint =
    padded === undefined
      ? { ...print, loops }
      : { ...print, loops: loops.map((l) => ({ ...l, guards: [] })), conditions: [] }
  const coordinates = new Map<string, Expr>(
    loops.map((l, k) => [l.var, variable(coordinateName(print.threads.length + k))]),
  )
  return {
    shape: print.shape,
    copy: copyNest(cx, nest, name, step.scope, (index, element) => {
      const copy = store(name, index, load(buffer.name, print.index.map(element), elementType(buffer)))
      if (padded === undefined || where.length === 0) return copy
      return when(all(where.map(element)), [copy], [store(name, index, constant(padded, buffer.dtype))])
    }),
    element: (use) => localIndex(print, use),
    padding:
      padded === undefined
        ? undefined
        : { value: padded, where: where.map((g) => substitute(g, coordinates)) },
  }
}

/**
 * Returns the copy of the elements that all threads of the block read, with the dimensions of the buffer. Throws
 * `schedule/bad-vector`, `schedule/no-rows`, `schedule/bad-stride` or `schedule/bad-padding`.
 */
export function boxed(cx: Context, loop: For, step: Asked, tile: Tile, buffer: Buffer, name: string): Copy {
  const vector = step.by ?? 1
  const last = tile.dims.at(-1)?.extent ?? 1
  if (step.by !== undefined && (!VECTORS.includes(vector) || last % vector !== 0 || !isContiguous(tile)))
    cx.refuse('schedule/bad-vector', [loop], {
      message: `threads cannot copy ${vector} contiguous elements of ${buffer.name} at once`,
      expected: `2, 4 or 8, a divisor of the ${last} contiguous elements`,
    })
  if (step.transposed && tile.dims.length < 2)
    cx.refuse('schedule/no-rows', [loop], {
      message: `a copy of ${tile.dims.length} dimension of ${buffer.name} cannot be transposed`,
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
    cx.refuse('schedule/bad-stride', [loop], {
      message: `rows of ${row} elements cannot have a stride of ${step.stride}`,
      expected: `a stride from ${row} to ${2 * row + 64}`,
    })
  if (step.stride !== undefined) shape[shape.length - 1] = step.stride
  const at = (xs: readonly Expr[]): readonly Expr[] => (xs.length > 0 ? laid(xs) : [int(0)])
  const vars = tile.dims.map((d) => variable(d.var))
  const set = (value: Expr): Stmt => store(name, at(vars), value)
  const pad = step.padded === undefined ? undefined : set(constant(step.padded, buffer.dtype))
  const copy = set(load(buffer.name, tile.index, elementType(buffer)))
  return {
    shape,
    copy: fillNest(cx, tile, name, vector, copy, pad),
    element: (use) => at(tileIndex(tile, use)),
    padding: paddingOf(step.padded, whereOf(tile, laid(tile.dims))),
  }
}

/**
 * Returns the padding of a copy; undefined if elements that the copy skips have no value. A copy that has all of its
 * elements has no padding, so that any value is right.
 */
const paddingOf = (padded: number | undefined, where: readonly Expr[]): Buffer['padding'] =>
  padded === undefined && where.length > 0 ? undefined : { value: padded ?? 0, where }

function checkPadding(cx: Context, { padded }: Asked, { name, dtype }: Buffer): void {
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
  cx.refuse('schedule/bad-padding', [], {
    message: `${name} is ${dtype}, and the padding ${padded}`,
    expected: `a value of ${dtype}`,
  })
}

/** Returns the conditions of elements that are read from the buffer, over coordinates of the copy. */
function whereOf(tile: Tile, dims: Tile['dims']): readonly Expr[] {
  const map = new Map<string, Expr>(dims.map((d, k) => [d.var, variable(coordinateName(k))]))
  return orderReadsLast([...tile.guards, ...tile.conditions].map((g) => substitute(g, map)))
}

/** Returns a copy of a buffer in local memory. Throws `schedule/wrong-type` or `schedule/wrong-tile`. */
export const localCopy = (
  cx: Context,
  loop: For,
  of: Buffer,
  { scope, memory }: { readonly scope: CacheScope; readonly memory?: Memory | undefined },
  copy: Pick<Buffer, 'name' | 'dtype' | 'padding'> & { readonly shape: readonly number[] },
): Buffer => {
  const { name, dtype, shape, padding } = copy
  const local = {
    name,
    dtype,
    accumulate: dtype,
    scope,
    role: 'local',
    shape: shape.map(int),
    fill: 0,
  } as const
  return Object.freeze({
    ...of,
    ...local,
    padding,
    memory: undefined,
    ...inMemory(cx, loop, memory, copy, shape),
  })
}

const VECTORS = [2, 4, 8]

// Cooperative copies into shared memory: the loops in which the threads of a block fill a copy together.

/**
 * Builds the loops that fill the box, in memory order of the buffer. `vector` is the number of elements of the last
 * dimension in one vector access. `copy` stores one element, and `pad` stores the padding value of elements outside
 * of the buffer; if `pad` is undefined, such elements are skipped.
 */
function fillNest(
  cx: Context,
  tile: Tile,
  nest: string,
  vector: number,
  copy: Stmt,
  pad: Stmt | undefined,
): Stmt {
  const facts = new Facts({ sizes: cx.kernel.facts })
  const loops: For[] = tile.dims.map((d) => loopOf(d.var, d.name, nest, d.extent))
  const map = new Map<string, Expr>()
  const last = tile.dims.at(-1)
  const lane = vector > 1 && last ? cx.fresh(last.name) : undefined
  if (last && lane) {
    const outer = cx.fresh(last.name)
    map.set(last.var, add(mul(variable(outer), int(vector)), variable(lane)))
    loops.splice(-1, 1, loopOf(outer, last.name, nest, last.extent / vector), {
      ...loopOf(lane, last.name, nest, vector),
      mode: { kind: 'vectorize' },
    })
  }
  const together = (g: Expr): Expr => (lane ? boundOfRun(g, lane, vector, facts) : g)
  const conditions = orderReadsLast(
    distinctExprs([...tile.guards, ...tile.conditions].map((g) => together(substitute(g, map)))),
  )
  const within = (s: Stmt): Stmt => substituteStmts([s], map)[0]!
  const choose = (own: readonly Expr[], then: Stmt, otherwise: Stmt | undefined): Stmt =>
    own.length === 0 ? then : when(all(own), [then], otherwise ? [otherwise] : [])
  if (!pad) {
    // A condition becomes a guard of the innermost loop that it depends on.
    const home = (g: Expr): For | undefined => loops.findLast((l) => mentions(g, l.var))
    const guarded = loops.map((l) => ({ ...l, guards: conditions.filter((g) => home(g) === l) }))
    return choose(
      conditions.filter((g) => !home(g)),
      nestOf(guarded, within(copy)),
      undefined,
    )
  }
  const lanes = lane ? loops.slice(-1) : []
  const ofLane = (g: Expr): boolean => lane !== undefined && mentions(g, lane)
  const one = choose(conditions.filter(ofLane), within(copy), within(pad))
  const row = choose(
    conditions.filter((g) => !ofLane(g)),
    nestOf(lanes, one),
    lane ? renameLoop(nestOf(lanes, within(pad)), lane, cx.fresh(last!.name)) : within(pad),
  )
  return nestOf(lane ? loops.slice(0, -1) : loops, row)
}

const renameLoop = (s: Stmt, from: string, to: string): Stmt => renameBound([s], new Map([[from, to]]))[0]!

const loopOf = (name: string, called: string, nest: string, extent: number): For =>
  forLoop(name, int(extent), [], { name: called, nest })
