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
import type { For } from '../../ir/statements/loops.ts'
import { type Body, exprsOf, walkStmts } from '../../ir/statements/tree.ts'
import { conditionsAround } from '../dependence/dominating-conditions.ts'
import { copiesIn } from './shared-memory-copies.ts'

export interface PipelineSequence {
  /** The innermost loop around the pipelined loop that is not bound; it is serial. */
  readonly over: For
  /** The pipelined loop. */
  readonly loop: For
  /**
   * Conditions under which an iteration of `over` runs the pipelined loop; if one fails, it has no iterations of that
   * loop.
   */
  readonly conditions: readonly Expr[]
}

/** The reason why the iterations are not a sequence. */
export interface NoSequence {
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
