/**
 * Cursors of software pipelines: the iteration whose copies start next, n - 1 after the computed one.
 *
 * Pipelining across outer iterations (`pipeline go by n over round`): the iterations of `go` in all iterations of `round` form one
 * sequence, in which copies run ahead. So the first copies of an outer iteration overlap the end of the previous one.
 *
 *     tile, slice = the first iteration of the sequence
 *     n - 1 times: start the copies of (tile, slice); advance
 *     for round:
 *       for go: compute (round, go); start the copies of (tile, slice); advance
 *       epilogue
 *
 * Copies use the cursor (tile, slice) in place of the loop variables. To advance, it moves to the next nonempty iteration of `round`:
 *
 *     slice += 1
 *     while tile < extent of round and slice >= length: tile += 1; slice = 0; length = extent of go if tile runs, otherwise 0
 *
 * Iterations are numbered through the whole sequence, also over several runs of `round`. Stages and barrier phases depend on this number
 * modulo 2 · stages only. Every iteration commits one group of asynchronous copies, even an empty one, so the number of groups in flight
 * is constant. All threads keep the cursor in registers, including inactive ones, because all threads copy.
 */

import type { PipelineSequence } from '../../analysis/loops/pipeline-sequence.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import {
  add,
  all,
  type Expr,
  ge,
  int,
  type Load,
  load,
  lt,
  max,
  mod,
  variable,
} from '../../ir/expressions/expr.ts'
import { mentions, someExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { findLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import {
  alloc,
  forLoop,
  local,
  positionRegister,
  when,
  whileLoop,
} from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import type { Hoisted } from './address-prefetch.ts'
import { type Preheader, set } from './transaction-barriers.ts'

/** The order of copies in a pipeline. Iteration `k` counts from the first computed iteration of this run of the loop. */
interface Cursor {
  /** Values of the loop variables in copies of iteration `k`, the condition that it exists, and its number, which selects the stage. */
  readonly at: (k: Expr) => ReadonlyMap<string, Expr>
  readonly exists: (k: Expr) => Expr
  readonly number: (k: Expr) => Expr
  /** Returns true if an address (other than the cursor) changes with each iteration. */
  readonly moves: (a: Load) => boolean
  /** Statements before the first copies. `enter`: statements that load the registers of an outer iteration. */
  readonly begin: (enter: () => Body) => Body
  /** Copies of the first `count` iterations. */
  readonly prologue: (count: number, copies: (k: Expr) => Body, enter: () => Body) => Body
  readonly advance: (enter: () => Body) => Body
  /** Loads the addresses of the copies that start `distance` iterations after `k`. */
  readonly fill: (addresses: Hoisted, k: Expr, distance: number) => Body
  /** Statements after a run of the loop. */
  readonly end: Body
  /** Places the statements before the pipeline: before the loop, or (`preheaders`) before an outer loop. */
  readonly placed: (setup: Body) => { readonly before: Body; readonly preheaders: readonly Preheader[] }
}

/** The cursor of a pipeline that ends with its loop: it differs from the computed iteration by a constant. */
export function loopCursor({ var: name, extent }: For): Cursor {
  const at = (k: Expr): ReadonlyMap<string, Expr> => new Map([[name, k]])
  const exists = (k: Expr): Expr => lt(k, extent)
  return {
    at,
    exists,
    number: (k) => k,
    moves: (a) => mentions(a, name),
    begin: (enter) => enter(),
    prologue: (count, copies) => Array.from({ length: count }, (_, k) => copies(int(k))).flat(),
    advance: () => [],
    fill: (addresses, k, distance) => addresses.fill(exists(add(k, int(distance))), at(k)),
    end: [],
    placed: (setup) => ({ before: setup, preheaders: [] }),
  }
}

/** The cursor of a pipeline over all runs of its loop in the nest `top`. `buffers`: those of the kernel. */
export function sequenceCursor(
  { over, conditions }: PipelineSequence,
  loop: For,
  stages: number,
  top: Stmt,
  buffers: readonly Buffer[],
  names: Names,
): Cursor {
  // Period of stage and barrier phase, in iterations.
  const period = 2 * stages
  const tile = positionRegister(names.fresh(`${over.var}_ahead`), over.extent)
  const slice = positionRegister(names.fresh(`${loop.var}_ahead`), longest(loop.extent, buffers))
  const length = local(names.fresh(`${loop.var}_length`), 'i32')
  /** Number in the sequence of the first iteration of this run of the loop. */
  const first = positionRegister(names.fresh('rounds'), int(period - 1))
  const path = findLoop([top], over.var)?.path ?? []
  const outermost = path.find((l) => l.mode.kind !== 'bind') ?? over
  const at = new Map([
    [over.var, held(tile)],
    [loop.var, held(slice)],
  ])
  const exists = lt(held(tile), over.extent)
  const number = (k: Expr): Expr => add(held(first), k)
  const enterTile = (fill: Body): Body => {
    const inside = inEveryThread(substituteStmts(fill, new Map([[over.var, held(tile)]])))
    return [
      set(length, int(0)),
      when(all([exists, ...conditions.map((e) => substitute(e, at))]), [
        set(length, substitute(loop.extent, at)),
        ...(inside.length > 0 ? [when(lt(int(0), held(length)), inside)] : []),
      ]),
    ]
  }
  /** Skips finished and empty outer iterations. */
  const skip = (fill: Body): Stmt =>
    whileLoop(all([exists, ge(held(slice), held(length))]), [
      set(tile, add(held(tile), int(1))),
      set(slice, int(0)),
      ...enterTile(copyStatements(fill, names)),
    ])
  const advance = (enter: () => Body): Body => [set(slice, add(held(slice), int(1))), skip(enter())]
  return {
    at: () => at,
    exists: () => exists,
    number,
    moves: (a) => a.buffer !== slice.name && someExpr(a, (x) => x.kind === 'load' && x.buffer === slice.name),
    begin: (enter) => {
      const fill = enter()
      const registers = [tile, slice, length].map((b) => alloc(b))
      return [...registers, set(tile, int(0)), set(slice, int(0)), ...enterTile(fill), skip(fill)]
    },
    prologue: (count, copies, enter) => {
      const k = names.fresh('round')
      return [forLoop(k, int(count), [...copies(variable(k)), ...advance(enter)])]
    },
    advance,
    fill: (addresses) => inEveryThread(addresses.fill(exists)),
    end: [set(first, mod(number(max(loop.extent, int(0))), int(period)))],
    // The counter is initialised before the outermost serial loop.
    placed: (setup) => ({
      before: [],
      preheaders: [
        { loop: outermost.var, statements: [alloc(first), set(first, int(0))] },
        { loop: over.var, statements: setup },
      ],
    }),
  }
}

/** Makes the stores into registers unconditional, so that inactive threads execute them too. */
const inEveryThread = (fill: Body): Body =>
  rewriteStmts(fill, { stmt: (s) => (s.kind === 'store' ? stmt({ ...s, unconditional: true }) : undefined) })

/** Upper bound on the extent over sizes, for example the total number of positions for a segment; `extent` itself if no bound is known. */
function longest(extent: Expr, buffers: readonly Buffer[]): Expr {
  const first =
    extent.kind === 'binary' && extent.op === 'sub' && extent.b.kind === 'load' ? extent.b : undefined
  return buffers.find((b) => b.name === first?.buffer)?.positions ?? extent
}

const held = (b: Buffer): Expr => load(b.name, [int(0)])
