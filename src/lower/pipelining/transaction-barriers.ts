/**
 * Transaction barriers (PTX `mbarrier`): copies by the TMA unit count their bytes on barriers in shared memory, one per stage. One thread
 * sets the expected number of bytes per iteration, and all threads wait.
 * Iteration r uses barrier r mod stages, and phase parity (r / stages) mod 2. The next phase of a barrier is set up only after all threads
 * have passed a block barrier behind their wait, so no thread waits for a phase that two later ones have followed. The count of iterations
 * continues over several runs of the loop.
 * In a cluster, identical copies are made once by one block for all (multicast): each stage belongs to one block. Every block counts bytes
 * on its own barrier. After its threads are done with a stage, it arrives at a barrier of the owning block, which waits for all blocks
 * before it copies. So no block exits before the copies and arrivals that target it.
 */

import { threadsIn } from '../../analysis/instructions/lane-groups.ts'
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type { Names } from '../../ir/expressions/bound-names.ts'
import { add, div, type Expr, eq, int, load, lt, max, mod, variable } from '../../ir/expressions/expr.ts'
import { freeVars, readsMemory, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { AXES_OF_BLOCK } from '../../ir/instructions/hardware-axes.ts'
import {
  type BufferElement,
  barrierArrive,
  barrierInit,
  barrierInitFence,
  barrierWait,
  expectBytes,
  type Instr,
  sharesCompletion,
} from '../../ir/instructions/instr.ts'
import type { InstrCall } from '../../ir/instructions/instr-call.ts'
import { findLoop, loopsOf, replaceLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { alloc, barrier, local, store, when } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, withSignals } from '../../ir/statements/tree.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import type { BlockInvariantCopies } from './cluster-multicast.ts'

/** Statements to run once before the loop with variable `loop`. */
export interface Preheader {
  readonly loop: string
  readonly statements: Body
}

export const withPreheaders = (body: Body, preheaders: readonly Preheader[]): Body =>
  preheaders.reduce((b, e) => replaceLoop(b, e.loop, (l) => [...e.statements, l]), body)

export const BLOCK_BARRIER: Stmt = barrier()

export class TransactionBarrier {
  readonly #bytes: number
  readonly #barriers: Buffer
  /** Number of iterations in earlier runs of the loop; undefined if it runs once. */
  readonly #earlierRounds: Buffer | undefined
  readonly #setup: Body
  readonly #outermost: For | undefined
  /** Block-invariant copies of a cluster, and one barrier per stage that signals that the stage is free; undefined without multicast. */
  readonly #multicast: { readonly copies: BlockInvariantCopies; readonly free: Buffer } | undefined

  /**
   * `copies`: the copies of one iteration of `loop` in the nest `top`, all completing like `instr`. `numbered`: the caller numbers the
   * iterations through all runs of the loop.
   */
  constructor(
    private readonly instr: Instr,
    copies: Body,
    private readonly stages: number,
    loop: For,
    top: Stmt,
    names: Names,
    multicast?: BlockInvariantCopies,
    numbered = false,
  ) {
    const barriers = (name: string): Buffer =>
      local(names.fresh(name), 'u32', [int(stages), int(WORDS)], 'shared')
    this.#multicast = multicast && { copies: multicast, free: barriers('free') }
    this.#bytes = transactionBytes(copies, instr, top)
    this.#barriers = barriers('arrived')
    const around = findLoop([top], loop.var)?.path ?? []
    this.#outermost = around.find((l) => l.mode.kind !== 'bind')
    const before = this.#outermost && !numbered ? local(names.fresh('rounds'), 'i32') : undefined
    this.#earlierRounds = before
    this.#setup = [
      ...this.#initialized(this.#barriers, 1),
      ...(this.#multicast ? this.#initialized(this.#multicast.free, this.#multicast.copies.cluster) : []),
      ...barrierInitFence(instr),
      ...(this.#multicast ? [] : [BLOCK_BARRIER]),
      ...(before ? [alloc(before), set(before, int(0))] : []),
    ]
  }

  /**
   * Initialisation before the loop, or in a preheader if a serial loop encloses it. In a cluster, a run begins with a cluster barrier,
   * because the stages of all blocks must be free.
   */
  get setup(): Body {
    const initialized = this.#outermost ? [] : this.#setup
    return this.#multicast ? [...initialized, barrier({ cluster: true })] : initialized
  }
  get preheaders(): readonly Preheader[] {
    return this.#outermost ? [{ loop: this.#outermost.var, statements: this.#setup }] : []
  }

  #initialized(barriers: Buffer, arrivals: number): Body {
    return [
      alloc(barriers),
      ...Array.from({ length: this.stages }, (_, k) =>
        barrierInit(this.instr, this.#place(int(k), barriers), arrivals),
      ),
    ]
  }

  /** Returns the copies of the k-th iteration of this run, with their barriers. */
  start(copies: Body, k: Expr): Body {
    const round = this.#round(k)
    const place = this.#place(round)
    const multicast = this.#multicast
    return rewriteStmts(copies, {
      stmt: (s) => {
        if (!isTransactionCopy(s, this.instr)) return undefined
        if (!multicast?.copies.includes(s)) return withSignals(s, place)
        const { cluster, rank } = multicast.copies
        const turn = this.#owningBlock(round, cluster)
        const phase = mod(add(div(round, int(this.stages)), int(1)), int(2))
        const all = barrierWait(this.instr, this.#place(round, multicast.free), phase)
        return [
          ...this.#afterFirstUse(round, [when(eq(rank, turn), [all])]),
          withSignals(s, { ...place, multicast: { cluster, turn } }),
        ]
      },
    })
  }

  /** Signals before the copies of iteration k that this block is done with its stage. */
  release(k: Expr): Body {
    if (!this.#multicast) return []
    const { copies, free } = this.#multicast
    const round = this.#round(k)
    const owner = this.#owningBlock(round, copies.cluster)
    return this.#afterFirstUse(round, [barrierArrive(this.instr, this.#place(round, free), owner)])
  }

  #owningBlock = (round: Expr, cluster: number): Expr => mod(mod(round, int(this.stages)), int(cluster))

  /** Returns `body` under the condition that the stage was used before. */
  #afterFirstUse(round: Expr, body: Body): Body {
    const cond = lt(int(this.stages - 1), round)
    if (cond.kind === 'const') return cond.value !== 0 ? body : []
    return [when(cond, body)]
  }

  expect = (k: Expr): InstrCall => expectBytes(this.instr, this.#place(this.#round(k)), this.#bytes)

  wait(k: Expr): InstrCall {
    const round = this.#round(k)
    return barrierWait(this.instr, this.#place(round), mod(div(round, int(this.stages)), int(2)))
  }

  /** Counts the iterations of a finished run. */
  end(rounds: Expr): Body {
    const before = this.#earlierRounds
    return before ? [BLOCK_BARRIER, set(before, add(load(before.name, [int(0)]), max(rounds, int(0))))] : []
  }

  #round(k: Expr): Expr {
    // `max` shows that the number is nonnegative, so division needs no flooring.
    return this.#earlierRounds ? add(max(load(this.#earlierRounds.name, [int(0)]), int(0)), k) : k
  }

  #place(round: Expr, barriers = this.#barriers): BufferElement {
    return { buffer: barriers.name, index: [mod(round, int(this.stages)), int(0)] }
  }
}

/** Number of 32-bit words per barrier. */
const WORDS = 2

/** Stores in every thread, because inactive threads also copy and wait. */
const set = (b: Buffer, value: Expr): Stmt => store(b.name, [int(0)], value, { unconditional: true })

/** Returns true for a copy that completes like `instr` and has no barrier yet. */
const isTransactionCopy = (s: Stmt, instr: Instr): s is For =>
  s.kind === 'for' && s.mode.kind === 'instr' && !s.mode.signals && sharesCompletion(s.mode.instr, instr)

/**
 * The number of bytes that one iteration copies, over all threads. Throws SptError `schedule/counted-copies` if iterations differ, or
 * other statements are among the copies.
 */
function transactionBytes(copies: Body, instr: Instr, top: Stmt): number {
  const threads = threadsIn([top])
  const reject = (s: Stmt, why: string): never => {
    const span = s.span ?? instr.span
    return failAt('schedule/counted-copies', span, {
      message: `${instr.name} counts the copied bytes, and ${why}`,
      expected: 'copies of the same number of bytes in every iteration, distributed over all threads',
      hint: 'require that the tiles divide the sizes',
    })
  }
  const bytes = (s: Stmt, at: Map<string, number>): number => {
    if (isTransactionCopy(s, instr) && s.mode.kind === 'instr') {
      const to = s.mode.instr.operands.find((o) => o.mode !== 'read')
      return to ? to.shape.reduce((a, b) => a * b, DTYPE_BYTES[to.dtype]) : 0
    }
    const value = (e: Expr): number => {
      if ([...freeVars(e)].some((v) => !at.has(v)) || readsMemory(e))
        return reject(s, 'some rounds copy more than others')
      return evaluate(hardwareIndicesAsVariables(e), at)
    }
    if (s.kind === 'if') return (value(s.cond) !== 0 ? s.then : s.else).reduce((n, x) => n + bytes(x, at), 0)
    if (s.kind !== 'for') return reject(s, 'something else stands among its copies')
    let sum = 0
    const extent = value(s.extent)
    for (let k = 0; k < extent; k++) {
      at.set(s.var, k)
      if (s.guards.every((g) => value(g) !== 0)) sum += s.body.reduce((n, x) => n + bytes(x, at), 0)
    }
    at.delete(s.var)
    return sum
  }
  let total = 0
  for (const s of copies) {
    const along = new Set(loopsOf([s]).flatMap((l) => l.along ?? []))
    if ([...threads].some(([axis, n]) => n > 1 && !along.has(axis)))
      reject(s, 'some threads copy by themselves')
    const [x, y, z] = AXES_OF_BLOCK.map((axis) => threads.get(axis) ?? 1) as [number, number, number]
    for (let t = 0; t < x * y * z; t++)
      total += bytes(
        s,
        new Map([
          ['thread.x', t % x],
          ['thread.y', Math.floor(t / x) % y],
          ['thread.z', Math.floor(t / (x * y))],
        ]),
      )
  }
  return total
}

/** Replaces hardware indices by variables of the same names. */
const hardwareIndicesAsVariables = (e: Expr): Expr =>
  rewriteExpr(e, (x) => (x.kind === 'builtin' ? variable(x.axis) : undefined))
