/**
 * Distribution of conditions over nests. Invariant reached: a statement of a kernel's body is one nest, under conditions
 * or not. Each becomes a launch, and blocks wait for each other between launches alone: what a step puts beside a nest
 * stands under the same condition by itself.
 */

import { writesOf } from '../ir/accesses.ts'
import { loopsOf } from '../ir/definitions.ts'
import { not } from '../ir/expr.ts'
import { readsAny } from '../ir/expr-tree.ts'
import type { Stmt } from '../ir/loops.ts'
import { type Body, stmt } from '../ir/tree.ts'

/**
 * `if c { a; b }` → `if c { a }; if c { b }`, `if c { a } else { b }` → `if c { a }; if not c { b }`, where a writes nothing
 * that decides c. A grid is as large as the loops of one nest say, and a branch without them has to run all the same.
 */
export function distributeConditions(body: Body): Body {
  // Asked after each step, of as many nests as there are: by index, as V8 is slow with frozen lists otherwise.
  for (let k = 0; k < body.length; k++) if (body[k]!.kind === 'if') return body.flatMap(distributed)
  return body
}

function distributed(s: Stmt): Body {
  if (s.kind !== 'if' || loopsOf([s]).length === 0) return [s]
  if (s.else.length > 0) {
    if (readsAny(s.cond, writesOf(s.then))) return [s]
    return [
      stmt<Stmt>({ ...s, else: [] }),
      stmt<Stmt>({ ...s, cond: not(s.cond), then: s.else, else: [] }),
    ].flatMap(distributed)
  }
  const then = s.then.flatMap(distributed)
  if (then.length < 2) return [s]
  const written = writesOf(then.slice(0, -1))
  if (readsAny(s.cond, written)) return [s]
  return then.map((x) => stmt<Stmt>({ ...s, then: [x] }))
}

/** Whether nothing stands beside a nest, under the conditions that it stands under. */
export const isAlone = (s: Stmt): boolean =>
  s.kind !== 'if' || (s.else.length === 0 && s.then.length < 2 && s.then.every(isAlone))
