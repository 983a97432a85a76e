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

/**
 * `copies`: the copies of one iteration of `loop` in the nest `top`, all completing like `instr`. `numbered`: the caller numbers the
 * iterations through all runs of the loop.
 */
export function transactionBarrier(
  instr: Instr,
  copies: Body,
  stages: number,
  loop: For,
  top: Stmt,
  names: Names,
  multicast?: BlockInvariantCopies,
  numbered = false,
) {
  const initialized = (barriers: Buffer, arrivals: number): Body => [
    alloc(barriers),
    ...Array.from({ length: stages }, (_, k) => barrierInit(instr, placeOf(int(k), barriers), arrivals)),
  ]
  /** Returns the copies of the k-th iteration of this run, with their barriers. */
  const start = (copies: Body, k: Expr): Body => {
    const round = roundOf(k)
    const place = placeOf(round)
    return rewriteStmts(copies, {
      stmt: (s) => {
        if (!isTransactionCopy(s, instr)) return undefined
        if (!shared?.copies.includes(s)) return withSignals(s, place)
        const { cluster, rank } = shared.copies
        const turn = owningBlock(round, cluster)
        const phase = mod(add(div(round, int(stages)), int(1)), int(2))
        const all = barrierWait(instr, placeOf(round, shared.free), phase)
        return [
          ...afterFirstUse(round, [when(eq(rank, turn), [all])]),
          withSignals(s, { ...place, multicast: { cluster, turn } }),
        ]
      },
    })
  }
  /** Signals before the copies of iteration k that this block is done with its stage. */
  const release = (k: Expr): Body => {
    if (!shared) return []
    const { copies, free } = shared
    const round = roundOf(k)
    const owner = owningBlock(round, copies.cluster)
    return afterFirstUse(round, [barrierArrive(instr, placeOf(round, free), owner)])
  }
  /** Returns `body` under the condition that the stage was used before. */
  const afterFirstUse = (round: Expr, body: Body): Body => {
    const cond = lt(int(stages - 1), round)
    if (cond.kind === 'const') return cond.value !== 0 ? body : []
    return [when(cond, body)]
  }
  const wait = (k: Expr): InstrCall => {
    const round = roundOf(k)
    return barrierWait(instr, placeOf(round), mod(div(round, int(stages)), int(2)))
  }
  /** Counts the iterations of a finished run. */
  const end = (rounds: Expr): Body =>
    earlierRounds
      ? [BLOCK_BARRIER, set(earlierRounds, add(load(earlierRounds.name, [int(0)]), max(rounds, int(0))))]
      : []
  const roundOf = (k: Expr): Expr => {
    // `max` shows that the number is nonnegative, so division needs no flooring.
    return earlierRounds ? add(max(load(earlierRounds.name, [int(0)]), int(0)), k) : k
  }
  const placeOf = (round: Expr, barriers = arrived): BufferElement => ({
    buffer: barriers.name,
    index: [mod(round, int(stages)), int(0)],
  })
  const owningBlock = (round: Expr, cluster: number): Expr => mod(mod(round, int(stages)), int(cluster))
  const expect = (k: Expr): InstrCall => expectBytes(instr, placeOf(roundOf(k)), bytes)
  const barriers = (name: string): Buffer =>
    local(names.fresh(name), 'u32', [int(stages), int(WORDS)], 'shared')
  /** Block-invariant copies of a cluster, and one barrier per stage that signals that the stage is free; undefined without multicast. */
  const shared = multicast && { copies: multicast, free: barriers('free') }
  const bytes = transactionBytes(copies, instr, top)
  const arrived = barriers('arrived')
  const around = findLoop([top], loop.var)?.path ?? []
  const outermost = around.find((l) => l.mode.kind !== 'bind')
  /** Number of iterations in earlier runs of the loop; undefined if it runs once. */
  const earlierRounds = outermost && !numbered ? local(names.fresh('rounds'), 'i32') : undefined
  const once: Body = [
    ...initialized(arrived, 1),
    ...(shared ? initialized(shared.free, shared.copies.cluster) : []),
    ...barrierInitFence(instr),
    ...(shared ? [] : [BLOCK_BARRIER]),
    ...(earlierRounds ? [alloc(earlierRounds), set(earlierRounds, int(0))] : []),
  ]
  const inPlace = outermost ? [] : once
  return {
    /**
     * Initialisation before the loop, or in a preheader if a serial loop encloses it. In a cluster, a run begins with a cluster barrier,
     * because the stages of all blocks must be free.
     */
    setup: shared ? [...inPlace, barrier({ cluster: true })] : inPlace,
    preheaders: outermost ? [{ loop: outermost.var, statements: once }] : [],
    expect,
    start,
    release,
    wait,
    end,
  }
}

/** Number of 32-bit words per barrier. */
const WORDS = 2

/** Stores in every thread, because inactive threads also copy and wait. */
export const set = (b: Buffer, value: Expr): Stmt => store(b.name, [int(0)], value, { unconditional: true })

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
