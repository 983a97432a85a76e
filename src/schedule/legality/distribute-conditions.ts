/**
 * Distribution of conditions over loop nests. Invariant: each statement of a kernel's body is one loop nest, possibly
 * under conditions. Each statement becomes a launch, and blocks wait for each other between launches only, so a loop
 * nest that a step adds gets its own copy of the condition.
 */

import { not } from '../../ir/expressions/expr.ts'
import { readsSome } from '../../ir/expressions/expr-tree.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { Stmt } from '../../ir/statements/loops.ts'
import { type Body, stmt } from '../../ir/statements/tree.ts'

/**
 * Rewrites `if c { a; b }` → `if c { a }; if c { b }`, `if c { a } else { b }` → `if c { a }; if not c { b }`, if a
 * writes nothing that c reads. A grid has the size of one loop nest, and a branch without these loops must run
 * nevertheless.
 */
export function distributeConditions(body: Body): Body {
  // Runs after each step over all loop nests. The loop is by index because V8 iterates frozen arrays slowly.
  for (let k = 0; k < body.length; k++) if (body[k]!.kind === 'if') return body.flatMap(distributed)
  return body
}

function distributed(s: Stmt): Body {
  if (s.kind !== 'if' || loopsOf([s]).length === 0) return [s]
  if (s.else.length > 0) {
    if (readsSome(s.cond, writesOf(s.then))) return [s]
    return [
      stmt<Stmt>({ ...s, else: [] }),
      stmt<Stmt>({ ...s, cond: not(s.cond), then: s.else, else: [] }),
    ].flatMap(distributed)
  }
  const then = s.then.flatMap(distributed)
  if (then.length < 2) return [s]
  const written = writesOf(then.slice(0, -1))
  if (readsSome(s.cond, written)) return [s]
  return then.map((x) => stmt<Stmt>({ ...s, then: [x] }))
}

/** Returns whether a statement has one loop nest at most, possibly under conditions. */
export const isAlone = (s: Stmt): boolean =>
  s.kind !== 'if' || (s.else.length === 0 && s.then.length < 2 && s.then.every(isAlone))
