/** What an expression of a format depends on, through queries: old axes by name. */
import type { Expr } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { Query } from '../../ir/format.ts'

/**
 * The coordinates that decide the value, the stored coordinates as a whole being given: a count or sort depends
 * on what it is by, a rank also on what is ranked, the value and what is ordered by it on all of them.
 */
export function dependsOn(e: Expr, queries: readonly Query[], dims: readonly string[]): ReadonlySet<string> {
  const known = new Map<string, ReadonlySet<string>>(dims.map((d) => [d, new Set([d])]))
  const of = (x: Expr): string[] => [...freeVars(x)].flatMap((v) => [...(known.get(v) ?? [])])
  for (const q of queries) known.set(q.name, new Set(decidedBy(q, of, dims)))
  return new Set(of(e))
}

function decidedBy(q: Query, of: (x: Expr) => string[], dims: readonly string[]): readonly string[] {
  switch (q.kind) {
    case 'count':
      return q.by.flatMap(of)
    case 'rank':
      return [...q.of, ...q.by].flatMap(of)
    case 'place':
    case 'find':
      return of(q.of)
    case 'largest':
    case 'value':
    case 'held':
      return dims
  }
}
