/**
 * Continued pipelines: whether the iterations of a loop, in all iterations of the serial loop around, are one sequence
 * in which copies can be made ahead. The number of inner iterations must be known before an outer iteration begins, and
 * be the same for all threads.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { mentionsSome, readsSome } from '../../ir/expressions/expr-tree.ts'
import { AXES_OF_BLOCK, boundIndex } from '../../ir/instructions/hardware-axes.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import { accessesOf, writesOf } from '../../ir/statements/accesses.ts'
import { findLoop } from '../../ir/statements/definitions.ts'
import type { Buffer, For, Stmt } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, walkStmts } from '../../ir/statements/tree.ts'
import { conditionsAround } from '../dependence/loop-writes.ts'

export interface PipelineSequence {
  /** The innermost loop around the pipelined loop that is not bound; it is serial. */
  readonly over: For
  readonly loop: For
  /**
   * Conditions under which an iteration of `over` runs the pipelined loop; if one fails, it has no iterations of that
   * loop.
   */
  readonly conditions: readonly Expr[]
}

/** The reason why the iterations are not a sequence. */
interface NoSequence {
  readonly message: string
  /** The loops that the message names; the last is the pipelined loop. */
  readonly loops: readonly For[]
  readonly expected: string
}

/**
 * Returns the sequence of a loop of `body` with the innermost loop around that is not bound, or the reason why there is
 * no sequence.
 */
export function pipelineSequence(body: Body, name: string): PipelineSequence | NoSequence {
  const found = findLoop(body, name)
  invariant(found, () => `no loop ${name}`)
  const { loop, path } = found
  const at = path.findLastIndex((l) => l.mode.kind !== 'bind')
  const over = path[at]
  if (over?.mode.kind !== 'serial')
    return {
      message: over
        ? `${over.name}, the loop around ${loop.name}, is not serial`
        : `no serial loop is around ${loop.name}`,
      loops: over ? [over, loop] : [loop],
      expected: 'an enclosing serial loop; only loops that are bound to threads may be between the two',
    }
  const between = path.slice(at + 1)
  const threads = new Set<string>([
    ...AXES_OF_BLOCK,
    ...path.flatMap((l) => (boundIndex(l, 'thread') ? [l.var] : [])),
  ])
  // Threads that such a guard excludes make copies, too.
  const inside = new Set(between.flatMap((l) => l.guards.filter((g) => mentionsSome(g, threads))))
  const around = conditionsAround(over.body, loop, between).map((x) => x.cond)
  const conditions = [...over.guards, ...around.filter((x) => !inside.has(x))]
  const own = [over.extent, ...conditions, loop.extent].find((e) => mentionsSome(e, threads))
  if (own)
    return {
      message: `threads may disagree on ${printExpr(own)}, which determines the iterations of ${loop.name}`,
      loops: [over, loop],
      expected: 'the same number of iterations for all threads of a block, under uniform conditions',
    }
  const { statements } = copiesIn(loop)
  const hidden = new Set(between.map((l) => l.var))
  const placed = expressionsIn(statements).find((e) => mentionsSome(e, hidden))
  if (placed ?? loop.guards.some((g) => mentionsSome(g, hidden)))
    return {
      message: `the copies of ${loop.name} depend on loops between ${loop.name} and ${over.name}`,
      loops: [over, ...between, loop],
      expected: 'copies for every thread of the block',
    }
  const written = writesOf(over.body)
  const said = [over.extent, ...conditions, loop.extent, ...loop.guards]
  const changed =
    accessesOf(statements).find((a) => a.mode === 'read' && written.has(a.buffer))?.buffer ??
    [...written].find((b) => said.some((e) => readsSome(e, new Set([b]))))
  if (changed !== undefined)
    return {
      message: `the copies of ${loop.name} read ${changed}, which ${over.name} writes`,
      loops: [over, loop],
      expected: `copies of buffers that ${over.name} does not write`,
    }
  return { over, loop, conditions }
}

function expressionsIn(body: Body): readonly Expr[] {
  const out: Expr[] = []
  walkStmts(body, (s) => {
    out.push(...exprsOf(s))
  })
  return out
}

// Copies into shared memory in a loop: the statements that only copy, and can run iterations ahead of their
// use.

interface Copies {
  /** Statements of the loop's body that only copy, in order. */
  readonly statements: readonly Stmt[]
  /** The buffers that these statements fill, allocated in the loop's body. */
  readonly buffers: readonly Buffer[]
  /**
   * Statements that fill such a buffer but read data that the loop writes, with the name of the buffer that is read.
   */
  readonly late: readonly { readonly stmt: Stmt; readonly fills: string; readonly reads: string }[]
}

export function copiesIn(loop: For): Copies {
  const shared = new Map<string, Buffer>()
  for (const s of loop.body)
    if (s.kind === 'alloc' && s.buffer.scope === 'shared') shared.set(s.buffer.name, s.buffer)
  const written = writesOf(loop.body)
  const late: { stmt: Stmt; fills: string; reads: string }[] = []
  let found = loop.body.filter((s) => {
    if (s.kind !== 'for' && s.kind !== 'if' && s.kind !== 'store') return false
    const all = accessesOf([s])
    const writes = all.filter((a) => a.mode === 'write')
    const fills = writes[0]?.buffer
    if (fills === undefined || writes.some((a) => !shared.has(a.buffer) || a.stmt.kind !== 'store'))
      return false
    const reads = all.find((a) => a.mode === 'read' && written.has(a.buffer))
    if (reads) late.push({ stmt: s, fills, reads: reads.buffer })
    return !reads
  })
  // A statement stays if another statement writes a buffer that it fills.
  for (let settled = false; !settled; ) {
    const other = writesOf(loop.body.filter((s) => !found.includes(s)))
    const kept = found.filter((s) => ![...writesOf([s])].some((b) => other.has(b)))
    settled = kept.length === found.length
    found = kept
  }
  const filled = writesOf(found as Body)
  return { statements: found, buffers: [...shared.values()].filter((b) => filled.has(b.name)), late }
}
