/**
 * Reassociation by rank (Briggs and Cooper, Effective Partial Redundancy Elimination, PLDI 1994). Invariant reached: addresses in shared
 * memory that texts of instructions take are sums, what changes with outer loops before what changes with inner ones and constants last.
 * What tiles of a loop have in common is one expression then, computed where it changes, and tiles lie constants apart, which
 * instructions add by themselves. (Addresses are no elements of arrays there, whose constants compilers find.)
 */
import { type Linear, linear, sumExpr, type Term } from '../analysis/integers/linear.ts'
import type { Expr } from '../ir/expr.ts'
import { freeVars } from '../ir/expr-tree.ts'
import type { Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, mapPieces, withBodies } from '../ir/tree.ts'

/** In how many loops a variable is; what is not there changes with none. */
type Depths = ReadonlyMap<string, number>

export const reassociateAddresses = (body: Body): Body => within(body, new Map(), 0)

function within(body: Body, around: Depths, depth: number): Body {
  const depths = new Map(around)
  return body.map((s): Stmt => {
    if (s.kind === 'let') depths.set(s.name, rank(s.value, depths))
    if (s.kind === 'instr')
      return mapPieces(s, (p) =>
        p.kind === 'shared' ? Object.freeze({ ...p, index: p.index.map((e) => ordered(e, depths)) }) : p,
      )
    const inside = s.kind === 'for' ? new Map([...depths, [s.var, depth + 1]]) : depths
    const deeper = s.kind === 'for' || s.kind === 'while' ? depth + 1 : depth
    return withBodies(
      s,
      bodiesOf(s).map((b) => within(b, inside, deeper)),
    )
  })
}

function ordered(e: Expr, depths: Depths): Expr {
  const { terms, constant }: Linear = linear(e)
  const ranked = [...terms].map(([key, t]): readonly [number, readonly [string, Term]] => [
    rank(t.term, depths),
    [key, t],
  ])
  ranked.sort(([a], [b]) => a - b)
  return sumExpr({ terms: new Map(ranked.map(([, entry]) => entry)), constant })
}

/** The deepest loop that it may change with. */
const rank = (e: Expr, depths: Depths): number =>
  Math.max(0, ...[...freeVars(e)].map((v) => depths.get(v) ?? 0))
