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
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Fact, If, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, stmt, withBodies } from '../../ir/statements/tree.ts'

export const eliminateConstantBranches = (body: Body, sizes: readonly Fact[] | undefined): Body =>
  merged(simplifyUnder(body, new Facts({ sizes })))

/** `if c { x } if c { y }` → `if c { x; y }`; else branches are merged in the same way. */
function merged(body: Body): Body {
  const out: Stmt[] = []
  let changed = false
  for (const s of body) {
    const inner = bodiesOf(s).map(merged)
    const next = withBodies(s, inner)
    changed ||= next !== s
    const last = out.at(-1)
    if (next.kind === 'if' && last?.kind === 'if' && joins(last, next)) {
      out[out.length - 1] = stmt<If>({
        ...last,
        then: merged([...last.then, ...next.then]),
        else: merged([...last.else, ...next.else]),
      })
      changed = true
    } else out.push(next)
  }
  return changed ? out : body
}

function joins(first: If, second: If): boolean {
  if (first.absent !== second.absent) return false
  if (keyOf(first.cond) !== keyOf(second.cond)) return false
  const written = writesOf([...first.then, ...first.else])
  return !readsSome(first.cond, written)
}
