/**
 * Guard sinking for convergent loops. Invariant reached: no divergent guard encloses a loop that all threads of a block must run. Other
 * statements in the guarded loops get the guard individually.
 */

import type { Expr } from '../../ir/expressions/expr.ts'
import { mentionsSome } from '../../ir/expressions/expr-tree.ts'
import { boundIndex } from '../../ir/instructions/hardware-axes.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { whenAll } from '../../ir/statements/statement-builders.ts'
import { type Body, mapBodies, someStmt, stmt } from '../../ir/statements/tree.ts'

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
