/**
 * Reassociation by rank (Briggs and Cooper, Effective Partial Redundancy Elimination, PLDI 1994). Invariant reached: shared-memory
 * addresses in inline assembly are sums. Terms of outer loops come before terms of inner loops, and constants come last. So the common
 * part of the addresses of tiles is one expression, and the tiles differ by constant offsets, which instructions add. (Compilers do not
 * find these constants, because the addresses are not array accesses.)
 */
import { type Linear, linear, sumExpr, type Term } from '../../analysis/integers/linear.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import { freeVars } from '../../ir/expressions/expr-tree.ts'
import type { Stmt } from '../../ir/statements/loops.ts'
import { type Body, mapBodies, mapPieces } from '../../ir/statements/tree.ts'

/** Nesting depth of the loop with which each variable changes. Absent variables are loop-invariant. */
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
    return mapBodies(s, (b) => within(b, inside, deeper))
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

/** The depth of the innermost loop with which `e` may change. */
const rank = (e: Expr, depths: Depths): number =>
  Math.max(0, ...[...freeVars(e)].map((v) => depths.get(v) ?? 0))
