/**
 * Invariant reached: a statement of a kernel's body is one nest, under conditions or not. Each becomes a launch, and blocks
 * wait for each other between launches alone: what a step puts beside a nest stands under the same condition by itself.
 */

import { writesOf } from '../ir/accesses.ts'
import { readsAny } from '../ir/expr-tree.ts'
import type { Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, loopsOf, stmt } from '../ir/tree.ts'

/** `if c { a; b }` → `if c { a }; if c { b }`, where a writes nothing that decides c. */
export const launchesApart = (body: Body): Body => body.flatMap(apart)

function apart(s: Stmt): Body {
  if (s.kind !== 'if' || s.else.length > 0) return [s]
  const then = s.then.flatMap(apart)
  if (then.length < 2 || loopsOf(then).length === 0) return [s]
  const written = writesOf(then.slice(0, -1))
  if (readsAny(s.cond, written)) return [s]
  return then.map((x) => stmt<Stmt>({ ...s, then: [x] }))
}

/** Whether nothing stands beside a nest, under the conditions that it stands under. */
export const isAlone = (s: Stmt): boolean =>
  s.kind !== 'if' || bodiesOf(s).every((b) => b.length < 2 && b.every(isAlone))
