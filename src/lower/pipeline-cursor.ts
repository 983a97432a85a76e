/**
 * Rounds of a pipeline that goes on (`pipeline go by n over round`): those of all iterations of `round` one after the other are
 * one sequence, in which copies are made ahead. So the copies for the first rounds of an iteration are on their way while the
 * rounds of the one before are computed, and what comes after these.
 *
 *     tile, slice = the first round that there is
 *     n - 1 times: start the copies of (tile, slice); advance
 *     for round:
 *       for go: compute (round, go); start the copies of (tile, slice); advance
 *       what comes after
 *
 * The cursor (tile, slice) is the round to be copied next, n - 1 after the one that is computed: the copies are those of the
 * loop with the cursor in place of its variables. To advance, it goes on to the next iteration of `round` that has any rounds:
 *
 *     slice += 1
 *     while tile < extent of round and slice >= length: tile += 1; slice = 0; length = extent of go, where tile runs, else 0
 *
 * Rounds are numbered from the first on, also over runs of `round`: stages of memory, and phases of barriers, go by these
 * numbers, of which only the remainder matters that tells both. One group of asynchronous copies is committed a round,
 * with or without copies, so that as many are under way as in a loop of its own. Threads keep the cursor in registers, also those
 * that sit out: all of them make copies.
 */

import type { PipelineSequence } from '../analysis/pipeline-sequence.ts'
import { substituteStmts } from '../ir/bindings.ts'
import type { Names } from '../ir/bound-names.ts'
import { copyStatements } from '../ir/clone-loops.ts'
import { findLoop } from '../ir/definitions.ts'
import { add, all, type Expr, ge, int, type Load, load, lt, max, mod } from '../ir/expr.ts'
import { someExpr, substitute } from '../ir/expr-tree.ts'
import type { Buffer, For, Stmt } from '../ir/loops.ts'
import { alloc, local, positionRegister, store, when, whileLoop } from '../ir/statement-builders.ts'
import { type Body, rewriteStmts, stmt } from '../ir/tree.ts'
import type { Preheader } from './transaction-barriers.ts'

export class PipelineCursor {
  readonly #sequence: PipelineSequence
  readonly #loop: For
  readonly #names: Names
  readonly #stages: number
  readonly #tile: Buffer
  readonly #slice: Buffer
  readonly #length: Buffer
  /** The number of the first round of this iteration. */
  readonly #first: Buffer
  /** The outermost loop that threads repeat around the sequence, or that over which it goes. */
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

  /** After so many rounds the same stage is in the same phase again. */
  get #period(): number {
    return 2 * this.#stages
  }

  /** What stands for the loops' variables in copies. */
  get at(): ReadonlyMap<string, Expr> {
    return new Map([
      [this.#sequence.over.var, held(this.#tile)],
      [this.#loop.var, held(this.#slice)],
    ])
  }

  /** Whether there is a round left. */
  get exists(): Expr {
    return lt(held(this.#tile), this.#sequence.over.extent)
  }

  /** Whether the address, which is not the cursor itself, is another one for each round. */
  moves = (a: Load): boolean =>
    a.buffer !== this.#slice.name && someExpr(a, (x) => x.kind === 'load' && x.buffer === this.#slice.name)

  /** The number of the k-th round of this iteration. */
  number = (k: Expr): Expr => add(held(this.#first), k)

  /** Before the loop over which the sequence goes, and, where rounds are numbered, before all that repeats it. */
  preheaders(setup: Body): readonly Preheader[] {
    return [
      { loop: this.#outermost, statements: [alloc(this.#first), set(this.#first, int(0))] },
      { loop: this.#sequence.over.var, statements: setup },
    ]
  }

  /** At the first round that there is. `fill`: registers with what copies in an iteration of the loop around need of it. */
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

  /** After the rounds of an iteration. */
  end(): Body {
    const after = mod(this.number(max(this.#loop.extent, int(0))), int(this.#period))
    return [set(this.#first, after)]
  }

  #enter(fill: Body): Body {
    const { over, conditions } = this.#sequence
    const own = (e: Expr): Expr => substitute(e, this.at)
    const inside = inEveryThread(substituteStmts(fill, new Map([[over.var, held(this.#tile)]])))
    return [
      set(this.#length, int(0)),
      when(all([this.exists, ...conditions.map(own)]), [
        set(this.#length, own(this.#loop.extent)),
        ...(inside.length > 0 ? [when(lt(int(0), held(this.#length)), inside)] : []),
      ]),
    ]
  }

  /** Iterations without rounds, and those that are over. */
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

/** Of statements that fill registers: also in threads that sit out. */
export const inEveryThread = (fill: Body): Body =>
  rewriteStmts(fill, { stmt: (s) => (s.kind === 'store' ? stmt({ ...s, unconditional: true }) : undefined) })

/** What the extent is at most, over sizes where that is known: a segment is no longer than all of them. */
function longest(extent: Expr, buffers: readonly Buffer[]): Expr {
  const first =
    extent.kind === 'binary' && extent.op === 'sub' && extent.b.kind === 'load' ? extent.b : undefined
  return buffers.find((b) => b.name === first?.buffer)?.positions ?? extent
}

const held = (b: Buffer): Expr => load(b.name, [int(0)], 'i32')

const set = (b: Buffer, value: Expr): Body[number] => store(b.name, [int(0)], value, { unconditional: true })
