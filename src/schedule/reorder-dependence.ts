/**
 * Output dependences under interchange (reorder). Whether iterations of a spatial loop still run over different elements
 * where it leaves reduction loops.
 */
import type { Expr } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { For, Stmt } from '../ir/loops.ts'
import { reductionsOf } from '../ir/reductions.ts'

/**
 * Of the loops of `next` (an order of `chain`, both from the outside in), the spatial ones whose iterations may
 * meet once they stand outside of reduction loops that were around them. Elements differ from iteration to
 * iteration within one round of such a loop; that carries over to all rounds where no dimension ties the two
 * together, directly or through a variable that changes inside.
 *
 * Proof: let iterations l ≠ l' of such a loop be in rounds r and r'. The element of (l', r) differs from that of
 * (l, r), and can do so only in dimensions that are tied to l, if all else that changes is chosen equal. None of
 * them mentions r: the element of (l', r') differs there too.
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

/** The variables, `fixed` ones aside, that occur in a dimension with `v`, with such a one, and so on. */
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
