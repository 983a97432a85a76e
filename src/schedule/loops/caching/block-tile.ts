/**
 * Block tiles: the footprint of a thread block as a box. The box contains all elements that the threads of a block
 * read in one iteration of a loop, with the dimensions of the buffer. The threads fill the box together, in memory
 * order of the buffer, and each thread reads its part. Loops that are digits of one index (`io * 32 + it * 4 + ir`)
 * form one dimension of the box.
 */

import { tailGuards } from '../../../analysis/dependence/redundant-guards.ts'
import { linear } from '../../../analysis/integers/linear.ts'
import { startOfRun } from '../../../analysis/integers/mixed-radix.ts'
import { add, div, type Expr, int, mod, mul, variable } from '../../../ir/expressions/expr.ts'
import {
  buffersRead,
  children,
  mentions,
  mentionsSome,
  perExpr,
  withChildren,
} from '../../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import type { Memory } from '../../../ir/instructions/instr.ts'
import { accessesOf } from '../../../ir/statements/accesses.ts'
import { allocations, type LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../../ir/statements/loops.ts'
import { exprsOf } from '../../../ir/statements/tree.ts'
import { isWord } from '../../../ir/values/dtype.ts'
import type { Use } from '../../legality/buffer-uses.ts'
import { type Footprint, namedAlike } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'
import { extentOf, grouped, isOfTiles } from './copy-dimensions.ts'

/** A loop that is one digit of a dimension: the dimension's index is the sum of digit · stride. */
interface Digit {
  /** The loop: a thread-bound loop around the copy, or the position in `Tile.loops` of a loop inside. */
  readonly of: For | number
  readonly stride: number
}

interface TileDim {
  readonly var: string
  readonly name: string
  readonly extent: number
  readonly digits: readonly Digit[]
}

export interface Tile {
  readonly dims: readonly TileDim[]
  /** The loops inside of the copied loop whose variables index the element. */
  readonly loops: readonly For[]
  /** The index of the buffer's element, over the variables of `dims`. */
  readonly index: readonly Expr[]
  /** Loop guards that hold for the elements that are read, over the variables of `dims`. */
  readonly guards: readonly Expr[]
  /** Further conditions under which the address may be read from memory, over the variables of `dims`. */
  readonly conditions: readonly Expr[]
}

/** Returns the box of the footprint; undefined if threads differ, or if the indices are not an affine tiling. */
export function tileOf(
  cx: Context,
  at: LoopLocation,
  print: Footprint,
  buffer: Buffer,
  { padded, memory }: { readonly padded?: number | undefined; readonly memory?: Memory | undefined },
): Tile | undefined {
  const around = [...at.path, at.loop]
  const onThreads = around.filter((l) => boundIndex(l, 'thread'))
  const threads = onThreads.filter((l) => print.index.some((e) => mentions(e, l.var)))
  const members = [...threads, ...print.loops]
  // A padded copy needs all guards, because they separate elements of the buffer from padding.
  const unneeded = padded === undefined ? tailGuards(cx.kernel, at, buffer, print, members) : new Set<Expr>()
  const guards = members.flatMap((l) => l.guards).filter((g) => !unneeded.has(g))
  const naming = [...print.index, ...guards, ...print.conditions]
  const others = onThreads.filter((l) => !threads.includes(l))
  if (naming.some((e) => others.some((l) => mentions(e, l.var)))) return undefined
  if (!sameForAll(at, threads, naming, buffer)) return undefined
  const box = boxOver(cx, print, threads, guards)
  return box && memory ? inTiles(box, memory) : box
}

/** Dimensions of the box that belong to one dimension of the buffer move to the front, if this makes whole tiles. */
function inTiles(box: Tile, memory: Memory): Tile {
  const shapeOf = (dims: readonly TileDim[]): readonly number[] => dims.map((d) => d.extent)
  if (isOfTiles(shapeOf(box.dims), memory)) return box
  const isLast = (d: TileDim): boolean =>
    box.index.some((e) => box.dims.findLast((o) => mentions(e, o.var)) === d)
  const dims = [...box.dims.filter((d) => !isLast(d)), ...box.dims.filter(isLast)]
  return isOfTiles(shapeOf(dims), memory) ? { ...box, dims } : box
}

/**
 * Returns the elements that are read inside of a loop as a box for tiles in registers. Returns undefined if the loops
 * are dimensions of such tiles already, if a loop is bound or guarded, or if the read is conditional.
 */
export function ownBox(
  cx: Context,
  at: LoopLocation,
  print: Footprint,
  buffer: Buffer,
  memory: Memory | undefined,
): Tile | undefined {
  if (!memory || isOfTiles(print.shape, memory)) return undefined
  const unneeded = tailGuards(cx.kernel, at, buffer, print, print.loops)
  const plain = print.loops.every((l) => l.mode.kind !== 'bind' && l.guards.every((g) => unneeded.has(g)))
  return plain && print.conditions.length === 0 ? boxOver(cx, print, [], []) : undefined
}

function boxOver(
  cx: Context,
  print: Footprint,
  threads: readonly For[],
  guards: readonly Expr[],
): Tile | undefined {
  const members = [...threads, ...print.loops]
  const dims: TileDim[] = []
  for (const e of print.index) {
    const mine = members.filter((l) => mentions(e, l.var))
    if (mine.some((l) => dims.some((d) => d.digits.some((g) => member(g, print) === l)))) return undefined
    for (const group of grouped(e, mine)) {
      const last = group.at(-1)!
      const name = group[0]!.loop.name
      dims.push({
        var: cx.fresh(name),
        name,
        extent: (group[0]!.stride * extentOf(group[0]!.loop)) / last.stride,
        digits: group.map(({ loop, stride }) => ({
          of: threads.includes(loop) ? loop : print.loops.indexOf(loop),
          stride: stride / last.stride,
        })),
      })
    }
  }
  if (members.some((l) => !dims.some((d) => d.digits.some((g) => member(g, print) === l)))) return undefined
  const over = (e: Expr): Expr => regrouped(e, dims, print)
  return {
    dims,
    loops: print.loops,
    index: print.index.map(over),
    guards: guards.map(over),
    conditions: print.conditions.map(over),
  }
}

const member = (d: Digit, print: Pick<Footprint, 'loops'>): For =>
  typeof d.of === 'number' ? print.loops[d.of]! : d.of

/** Returns the index in the box of the element that the access `use` reads. */
export function tileIndex(tile: Tile, use: Pick<Use, 'index' | 'path'>): readonly Expr[] {
  const loops = namedAlike(tile.loops, use)
  return tile.dims.map((d) =>
    d.digits
      .map((g) => mul(typeof g.of === 'number' ? loops[g.of]! : variable(g.of.var), int(g.stride)))
      .reduce(add),
  )
}

/**
 * Returns whether all threads of the block reach the copy uniformly and read the same memory. Conditions, extents and
 * writes to the memory between the outermost thread loop and the copy must not depend on the thread, neither by its
 * index nor through registers.
 */
function sameForAll(
  at: LoopLocation,
  threads: readonly For[],
  naming: readonly Expr[],
  buffer: Buffer,
): boolean {
  const outermost = threads[0]
  if (!outermost) return true
  const local = allocations([outermost])
  const registers = (e: Expr): boolean => [...buffersRead(e)].some((b) => local.get(b)?.scope === 'register')
  const depends = (e: Expr): boolean => threads.some((t) => mentions(e, t.var)) || registers(e)
  if (naming.some(registers)) return false
  const own = new Set<Stmt>(threads)
  if (conditionsFrom(outermost, at, own).some(depends)) return false
  const read = new Set([buffer.name, ...naming.flatMap((e) => [...buffersRead(e)])])
  return !accessesOf([outermost]).some(
    (a) =>
      a.mode === 'write' &&
      read.has(a.buffer) &&
      (exprsOf(a.stmt).some(depends) || a.path.some((l) => !own.has(l) && exprsOf(l).some(depends))),
  )
}

/** Returns the extents, guards and conditions from a loop around the copy inwards, without those of the loops `except`. */
export const conditionsFrom = (
  l: For,
  { places }: LoopLocation,
  except?: ReadonlySet<Stmt>,
): readonly Expr[] =>
  places
    .slice(places.findIndex((p) => p.stmt === l))
    .flatMap(({ stmt: s }) => ((s.kind === 'for' || s.kind === 'if') && !except?.has(s) ? exprsOf(s) : []))

/** Rewrites an expression over the digit loops as an expression over the dimensions of the box. */
function regrouped(e: Expr, dims: readonly TileDim[], print: Pick<Footprint, 'loops'>): Expr {
  const digits = new Map<string, Expr>()
  for (const d of dims)
    for (const [k, g] of d.digits.entries()) {
      const high = div(variable(d.var), int(g.stride))
      const l = member(g, print)
      digits.set(l.var, k === 0 ? high : mod(high, int(extentOf(l))))
    }
  const go = perExpr<Expr>((x, go) => {
    if (!mentionsSome(x, digits)) return x
    if (x.kind === 'var') return digits.get(x.name) ?? x
    if (x.kind !== 'binary' || !['add', 'sub', 'mul'].includes(x.op) || !isWord(x.dtype))
      return withChildren(x, children(x).map(go))
    const sum = linear(x)
    // `linear` treats a product of two terms as one term, so its factors are rewritten separately.
    if (sum.terms.size === 1 && [...sum.terms.values()][0]!.term === x)
      return withChildren(x, children(x).map(go))
    const whole = new Map<string, Expr>()
    for (const d of dims) {
      // A loop with one iteration contributes 0, whether or not it occurs in the sum.
      const counted = d.digits.filter((g) => extentOf(member(g, print)) > 1)
      const digitsOfSum = counted.length > 0 ? counted : d.digits
      const factors = digitsOfSum.map((g) => {
        const own = [...sum.terms.values()].find(
          (t) => t.term.kind === 'var' && t.term.name === member(g, print).var,
        )
        return own ? own.coefficient / g.stride : 0
      })
      const factor = factors[0]!
      if (!Number.isInteger(factor) || factor === 0 || factors.some((f) => f !== factor)) continue
      for (const g of d.digits)
        whole.set(member(g, print).var, g === digitsOfSum[0] ? mul(variable(d.var), int(factor)) : int(0))
    }
    let out: Expr = int(0)
    for (const { term, coefficient } of sum.terms.values()) {
      const joined = term.kind === 'var' ? whole.get(term.name) : undefined
      out = add(out, joined ?? mul(go(term), int(coefficient)))
    }
    return add(out, int(sum.constant))
  })
  return go(e)
}

/** Returns whether consecutive elements of the box's last dimension are contiguous in the buffer. */
export function isContiguous(tile: Tile): boolean {
  const last = tile.dims.at(-1)
  const index = tile.index.at(-1)
  if (!last || !index) return false
  const elsewhere = tile.index.slice(0, -1).some((e) => mentions(e, last.var))
  return !elsewhere && startOfRun(index, last.var) !== undefined
}
