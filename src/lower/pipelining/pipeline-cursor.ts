/**
 * Pipelining across outer iterations (`pipeline go by n over round`): the iterations of `go` in all iterations of `round` form one
 * sequence, in which copies run ahead. So the first copies of an outer iteration overlap the end of the previous one.
 *
 *     tile, slice = the first iteration of the sequence
 *     n - 1 times: start the copies of (tile, slice); advance
 *     for round:
 *       for go: compute (round, go); start the copies of (tile, slice); advance
 *       epilogue
 *
 * The cursor (tile, slice) is the next iteration to copy, n - 1 after the computed one. Copies use the cursor in place of the loop
 * variables. To advance, it moves to the next nonempty iteration of `round`:
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
import { add, all, type Expr, ge, int, type Load, load, lt, max, mod } from '../../ir/expressions/expr.ts'
import { someExpr, substitute } from '../../ir/expressions/expr-tree.ts'
import { substituteStmts } from '../../ir/statements/bindings.ts'
import { copyStatements } from '../../ir/statements/clone-loops.ts'
import { findLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import {
  alloc,
  local,
  positionRegister,
  store,
  when,
  whileLoop,
} from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../../ir/statements/tree.ts'
import type { Preheader } from './transaction-barriers.ts'

export class PipelineCursor {
  readonly #sequence: PipelineSequence
  readonly #loop: For
  readonly #names: Names
  readonly #stages: number
  readonly #tile: Buffer
  readonly #slice: Buffer
  readonly #length: Buffer
  /** Number in the sequence of the first iteration of this run of the loop. */
  readonly #first: Buffer
  /** Variable of the outermost serial loop around the sequence; otherwise that of the loop over which it continues. */
  readonly #outermost: string

  constructor(
    sequence: PipelineSequence,
    loop: For,
    stages: number,
    top: Stmt,
    buffers: readonly Buffer[],
    names: Names,
  ) {
    const { over } = sequence
    this.#sequence = sequence
    this.#loop = loop
    this.#names = names
    this.#stages = stages
    this.#tile = positionRegister(names.fresh(`${over.var}_ahead`), over.extent)
    this.#slice = positionRegister(names.fresh(`${loop.var}_ahead`), longest(loop.extent, buffers))
    this.#length = local(names.fresh(`${loop.var}_length`), 'i32')
    this.#first = positionRegister(names.fresh('rounds'), int(this.#period - 1))
    const path = findLoop([top], over.var)?.path ?? []
    this.#outermost = (path.find((l) => l.mode.kind !== 'bind') ?? over).var
  }

  /** Period of stage and barrier phase, in iterations. */
  get #period(): number {
    return 2 * this.#stages
  }

  /** Values of the loop variables in copies. */
  get at(): ReadonlyMap<string, Expr> {
    return new Map([
      [this.#sequence.over.var, held(this.#tile)],
      [this.#loop.var, held(this.#slice)],
    ])
  }

  /** Condition that the sequence has an iteration left to copy. */
  get exists(): Expr {
    return lt(held(this.#tile), this.#sequence.over.extent)
  }

  /** Returns true if an address (other than the cursor) changes with each iteration. */
  moves = (a: Load): boolean =>
    a.buffer !== this.#slice.name && someExpr(a, (x) => x.kind === 'load' && x.buffer === this.#slice.name)

  /** The number of the k-th iteration of this run. */
  number = (k: Expr): Expr => add(held(this.#first), k)

  /** Statements before the loop over which the sequence continues; the counter is initialised before the outermost serial loop. */
  preheaders(setup: Body): readonly Preheader[] {
    return [
      { loop: this.#outermost, statements: [alloc(this.#first), set(this.#first, int(0))] },
      { loop: this.#sequence.over.var, statements: setup },
    ]
  }

  /** Sets the cursor to the first iteration of the sequence. `fill`: statements that load the registers of an outer iteration. */
  begin(fill: Body): Body {
    return [
      ...[this.#tile, this.#slice, this.#length].map((b) => alloc(b)),
      set(this.#tile, int(0)),
      set(this.#slice, int(0)),
      ...this.#enter(fill),
      ...this.#skip(fill),
    ]
  }

  advance(fill: Body): Body {
    return [set(this.#slice, add(held(this.#slice), int(1))), ...this.#skip(fill)]
  }

  /** Updates the counter after a run of the loop. */
  end(): Body {
    const after = mod(this.number(max(this.#loop.extent, int(0))), int(this.#period))
    return [set(this.#first, after)]
  }

  #enter(fill: Body): Body {
    const { over, conditions } = this.#sequence
    const atCursor = (e: Expr): Expr => substitute(e, this.at)
    const inside = inEveryThread(substituteStmts(fill, new Map([[over.var, held(this.#tile)]])))
    return [
      set(this.#length, int(0)),
      when(all([this.exists, ...conditions.map(atCursor)]), [
        set(this.#length, atCursor(this.#loop.extent)),
        ...(inside.length > 0 ? [when(lt(int(0), held(this.#length)), inside)] : []),
      ]),
    ]
  }

  /** Skips finished and empty outer iterations. */
  #skip(fill: Body): Body {
    return [
      whileLoop(all([this.exists, ge(held(this.#slice), held(this.#length))]), [
        set(this.#tile, add(held(this.#tile), int(1))),
        set(this.#slice, int(0)),
        ...this.#enter(copyStatements(fill, this.#names)),
      ]),
    ]
  }
}

/** Makes the stores into registers unconditional, so that inactive threads execute them too. */
export const inEveryThread = (fill: Body): Body =>
  rewriteStmts(fill, { stmt: (s) => (s.kind === 'store' ? stmt({ ...s, unconditional: true }) : undefined) })

/** Upper bound on the extent over sizes, for example the total number of positions for a segment; `extent` itself if no bound is known. */
function longest(extent: Expr, buffers: readonly Buffer[]): Expr {
  const first =
    extent.kind === 'binary' && extent.op === 'sub' && extent.b.kind === 'load' ? extent.b : undefined
  return buffers.find((b) => b.name === first?.buffer)?.positions ?? extent
}

const held = (b: Buffer): Expr => load(b.name, [int(0)])

const set = (b: Buffer, value: Expr): Body[number] => store(b.name, [int(0)], value, { unconditional: true })
