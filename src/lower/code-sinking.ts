/**
 * Code sinking, for register pressure. Invariant reached: a name that is first used after a loop is computed after the loop,
 * so that it takes no register while the loop runs. What reads memory stays early: it takes time to arrive.
 */
import { freeVarsOf } from '../ir/bindings.ts'
import { someExpr } from '../ir/expr-tree.ts'
import { mapSame } from '../ir/lists.ts'
import type { Stmt } from '../ir/loops.ts'
import { type Body, bodiesOf, withBodies } from '../ir/tree.ts'

export function sinkCode(body: Body): Body {
  const inner = mapSame(body, (s) => withBodies(s, bodiesOf(s).map(sinkCode)))
  if (!inner.some(isLoop)) return inner
  /** Loops among the first k statements. */
  const loops = [0]
  for (const s of inner) loops.push(loops.at(-1)! + (isLoop(s) ? 1 : 0))
  const places = inner.map((_, k) => k)
  const firstUse = new Map<string, number>()
  for (let k = inner.length - 1; k >= 0; k--) {
    const s = inner[k]!
    const use = s.kind === 'let' ? firstUse.get(s.name) : undefined
    if (use !== undefined && isMovable(s) && loops[use]! > loops[k]!) places[k] = use
    for (const v of freeVarsOf([s])) firstUse.set(v, Math.min(firstUse.get(v) ?? Infinity, places[k]!))
  }
  if (places.every((p, k) => p === k)) return inner
  const before = new Map<number, Stmt[]>()
  for (const [k, p] of places.entries()) if (p !== k) before.set(p, [...(before.get(p) ?? []), inner[k]!])
  return inner.flatMap((s, k) => [...(before.get(k) ?? []), ...(places[k] === k ? [s] : [])])
}

const isLoop = (s: Stmt): boolean => s.kind === 'for' || s.kind === 'while'

/** Arithmetic alone. */
const isMovable = (s: Stmt): boolean =>
  s.kind === 'let' && !s.lane && !someExpr(s.value, (e) => e.kind === 'load' || e.kind === 'search')
