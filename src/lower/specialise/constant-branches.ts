/**
 * Dead branch elimination, and merging of adjacent branches. Invariant reached: no condition is constant or implied by the extents of the
 * loops around it, and adjacent `if` statements with equal conditions are merged. Branches that unrolling made unreachable are removed,
 * including accesses that would be out of range if a later pass moved them.
 * `x + 3 < d` becomes `x < d` if 4 divides x and d, so all lanes of a vector share one condition.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { simplifyUnder } from '../../analysis/integers/simplify-under.ts'
import { readsSome } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Fact, If, Stmt } from '../../ir/statements/loops.ts'
import { type Body, mapBodies, stmt } from '../../ir/statements/tree.ts'

export const eliminateConstantBranches = (body: Body, sizes: readonly Fact[] | undefined): Body =>
  merged(simplifyUnder(body, new Facts({ sizes })))

/** `if c { x } if c { y }` → `if c { x; y }`; else branches are merged in the same way. */
function merged(body: Body): Body {
  const out: Stmt[] = []
  for (const s of body) {
    const next = mapBodies(s, merged)
    const last = out.at(-1)
    if (next.kind === 'if' && last?.kind === 'if' && joins(last, next))
      out[out.length - 1] = stmt<If>({
        ...last,
        then: merged([...last.then, ...next.then]),
        else: merged([...last.else, ...next.else]),
      })
    else out.push(next)
  }
  return reuseIfSame(body, out)
}

const joins = (first: If, second: If): boolean =>
  keyOf(first.cond) === keyOf(second.cond) && !readsSome(first.cond, writesOf([...first.then, ...first.else]))
