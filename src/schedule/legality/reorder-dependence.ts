/**
 * Output dependences under interchange (reorder): whether iterations of a spatial loop still run over different
 * elements after it leaves reduction loops.
 */
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { For, Stmt } from '../../ir/statements/loops.ts'
import { reductionsOf } from '../../ir/statements/reductions.ts'

/**
 * Returns the spatial loops of `next` (an order of `chain`, both from the outside in) whose iterations may conflict
 * after they leave reduction loops around them. Elements differ between iterations of the spatial loop in one iteration
 * of the reduction loop. The elements differ in different iterations of the reduction loop, too, unless a dimension
 * ties the two loops together, directly or through a variable that changes inside. Proof: let iterations l ≠ l' of the
 * spatial loop be in iterations r and r' of the reduction loop. The element of (l', r) differs from that of (l, r). If
 * all other variables are equal, the element can differ only in dimensions that are tied to l. No such dimension
 * mentions r, so the element of (l', r') differs there, too.
 */
export function dependentAfterReorder(
  chain: readonly For[],
  next: readonly For[],
  body: readonly Stmt[],
): readonly For[] {
  const targets = reductionsOf(body).flatMap((r) => r.reduce.targets)
  return next.filter((l, k) => {
    if (l.reduce) return false
    const left = next.slice(k + 1).filter((r) => r.reduce && chain.indexOf(r) < chain.indexOf(l))
    if (left.length === 0) return false
    const fixed = new Set(next.slice(0, k).map((x) => x.var))
    return targets.some((t) => {
      const tied = tiedTo(l.var, t.index, fixed)
      return left.some((r) => tied.has(r.var))
    })
  })
}

/**
 * Returns the variables that are tied to `v`: they occur in one dimension with `v`, or with another tied variable.
 * Variables in `fixed` do not count.
 */
function tiedTo(v: string, index: readonly Expr[], fixed: ReadonlySet<string>): ReadonlySet<string> {
  const out = new Set([v])
  for (let changed = true; changed; ) {
    const before = out.size
    for (const e of index) {
      const own = [...freeVars(e)].filter((x) => !fixed.has(x))
      if (own.some((x) => out.has(x))) for (const x of own) out.add(x)
    }
    changed = out.size > before
  }
  return out
}
