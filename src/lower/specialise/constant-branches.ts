/**
 * Dead branch elimination, and merging of adjacent branches. Invariant reached: no condition is constant, and adjacent `if` statements
 * with equal conditions are merged. Branches that unrolling made unreachable are removed, including accesses that would be out of range if
 * a later pass moved them.
 * `x + 3 < d` becomes `x < d` if 4 divides x and d, so all lanes of a vector share one condition.
 */

import { Facts } from '../../analysis/integers/facts.ts'
import { linear, minus } from '../../analysis/integers/linear.ts'
import { type Binary, binary, type Expr, int } from '../../ir/expressions/expr.ts'
import { readsSome, rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../ir/expressions/structural-equality.ts'
import { hasWrappingTerms } from '../../ir/expressions/wrapping-values.ts'
import { reuseIfSame } from '../../ir/lists.ts'
import { writesOf } from '../../ir/statements/accesses.ts'
import type { Fact, If, Stmt } from '../../ir/statements/loops.ts'
import { type Body, bodiesOf, mapBodies, stmt, withBodies } from '../../ir/statements/tree.ts'
import { isWord } from '../../ir/values/dtype.ts'

export const eliminateConstantBranches = (body: Body, sizes: readonly Fact[] | undefined): Body =>
  merged(settled(body, new Facts({ sizes })))

/** Simplifies conditions; a branch may use the facts about sizes that its condition implies. */
function settled(body: Body, facts: Facts): Body {
  const out = body.flatMap((s): Body => {
    if (s.kind !== 'if') return [mapBodies(s, (b) => settled(b, facts))]
    const cond = facts.ofSizes.length > 0 ? rewriteExpr(s.cond, (e) => whole(e, facts)) : s.cond
    const then = settled(s.then, facts.where(cond))
    const otherwise = settled(s.else, facts)
    if (cond.kind === 'const') return cond.value !== 0 ? then : otherwise
    const same = cond === s.cond && then === s.then && otherwise === s.else
    return [same ? s : stmt({ ...s, cond, then, else: otherwise })]
  })
  return reuseIfSame(body, out)
}

/** Lowers the constant of a comparison to a multiple of g if g divides all its other terms. */
function whole(e: Expr, facts: Facts): Expr | undefined {
  if (
    e.kind !== 'binary' ||
    e.op !== 'lt' ||
    !isWord(e.a.dtype) ||
    hasWrappingTerms(e.a) ||
    hasWrappingTerms(e.b)
  )
    return undefined
  const { a, b }: Binary = e
  const difference = minus(linear(a), linear(b))
  const g = facts.divisorOfTerms(difference)
  if (g < 2) return undefined
  // If g | Σ and 0 <= r < g, then Σ + q g + r < 0 is equivalent to Σ + q g < 0.
  const r = ((difference.constant % g) + g) % g
  if (r === 0) return undefined
  if (a.kind === 'const') return binary('lt', int(a.value - r), b)
  if (a.kind === 'binary' && a.op === 'add' && a.b.kind === 'const')
    return binary('lt', binary('add', a.a, int(a.b.value - r)), b)
  return undefined
}

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
