/**
 * Guards of software-pipelined loops. If copies count bytes on an mbarrier, those of every iteration run, or the loop is rejected. No
 * divergent guard encloses a loop that all threads of a block must run: other statements get such a guard individually (guard sinking).
 */
import { failAt } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { children, mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import type { Instr } from '../../ir/instructions/instr.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, exprsOf, mapBodies, someStmt, stmt, walkStmts } from '../../ir/statements/tree.ts'

/**
 * Returns true if counted copies may run regardless of the loop's guards. They must copy boxes of a matrix, because elements beyond its
 * end are zero-filled, with at most one level of indirect addressing.
 */
export function canRunUnconditionally(copies: Body, all: Body, instr: Instr): boolean {
  const loads = (e: Expr, depth: number): boolean =>
    (e.kind === 'load' && depth === 0) ||
    children(e).some((x) => loads(x, e.kind === 'load' ? depth - 1 : depth))
  let plain = copies.length === all.length && instr.operands.every((o) => o.scope !== 'global' || o.mapped)
  walkStmts(copies, (s) => {
    plain &&= !exprsOf(s).some((e) => loads(e, s.kind === 'store' ? 2 : 1))
  })
  return plain
}

/** Throws `schedule/conditional-rounds`: skipped iterations are not counted, so consumers would wait for the wrong one. */
export const rejectConditions = (loop: For, instr: Instr): never =>
  failAt('schedule/conditional-rounds', loop.span, {
    message: `iterations of ${loop.name} run under conditions, and ${instr.name} counts the copies of every iteration`,
    expected:
      'a pipelined loop without skipped iterations, or copies of boxes at addresses from a single load',
    hint: 'copy by threads, or by an instruction that is waited for in groups',
  })

/**
 * Throws `schedule/not-one-sequence`: blocks of a cluster agree on the iterations of one loop, but not of a pipeline across outer
 * iterations.
 */
export const rejectCluster = (loop: For): never =>
  failAt('schedule/not-one-sequence', loop.span, {
    message: `blocks of a cluster copy for each other in ${loop.name}, which goes on into the next iterations around`,
    expected: 'no cluster, or a pipeline that ends with the loop',
  })

/** Moves divergent guards in `over` inside `loop`, except around the statements `alone`. */
export function guardsInside(over: For, loop: For, alone: Body): For {
  const holds = (s: Stmt): boolean => someStmt([s], (x) => x === loop)
  const within = (list: Body, guards: readonly Expr[], threads: ReadonlySet<string>): Body =>
    list.flatMap((s): Body => {
      if (s.kind === 'alloc' || alone.includes(s)) return [s]
      if (s === loop) return [stmt({ ...loop, body: within(loop.body, guards, threads) })]
      if (!holds(s)) return whenAll(guards, [s])
      if (s.kind !== 'for') return [mapBodies(s, (b) => within(b, guards, threads))]
      const boundVars = boundIndex(s, 'thread') ? new Set([...threads, s.var]) : threads
      const threadGuards = s.guards.filter((g) => mentionsSome(g, boundVars))
      const body = within(s.body, [...guards, ...threadGuards], boundVars)
      return [stmt({ ...s, guards: s.guards.filter((g) => !threadGuards.includes(g)), body })]
    })
  return stmt({ ...over, body: within(over.body, [], new Set()) })
}
