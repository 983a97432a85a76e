/** Guards that facts about sizes decide. */
import { ceildiv, div, type Expr, int } from '../../ir/expr.ts'
import { keyOf } from '../../ir/keys.ts'
import type { Buffer, Fact, For, Stmt } from '../../ir/loops.ts'
import { type Body, bodiesOf, mapSame, stmt, withBodies } from '../../ir/tree.ts'
import { isMultiple } from './facts.ts'
import { linear, loopMap, rangeOf } from './linear.ts'

/** The loops without the guards that always hold: `v c + rest < n` over `n / c` tiles, where c divides n; v may be a coordinate. */
export function withoutHeld(body: Body, buffers: readonly Buffer[], facts: readonly Fact[]): Body {
  const go = (list: Body, path: readonly For[]): Body =>
    mapSame(list, (s): Stmt => {
      const inside = s.kind === 'for' ? [...path, s] : path
      const next = withBodies(
        s,
        bodiesOf(s).map((b) => go(b, inside)),
      )
      if (next.kind !== 'for') return next
      const guards = next.guards.filter((g) => !holds(g, inside, buffers, facts))
      return guards.length === next.guards.length ? next : stmt({ ...next, guards })
    })
  return go(body, [])
}

function holds(
  guard: Expr,
  path: readonly For[],
  buffers: readonly Buffer[],
  facts: readonly Fact[],
): boolean {
  if (guard.kind !== 'binary' || guard.op !== 'lt') return false
  const { a, b: size } = guard
  const sum = linear(a)
  const loops = loopMap(path)
  for (const [key, { term, coefficient: c }] of sum.terms) {
    const whole =
      term.kind === 'var'
        ? loops.get(term.name)?.extent
        : term.kind === 'load'
          ? buffers.find((b) => b.name === term.buffer)?.below
          : undefined
    if (!whole || c < 1 || !isMultiple(size, c, facts)) continue
    const extent = keyOf(whole)
    if (extent !== keyOf(ceildiv(size, int(c))) && extent !== keyOf(div(size, int(c)))) continue
    let [low, high] = [sum.constant, sum.constant]
    let known = true
    for (const [other, t] of sum.terms) {
      if (other === key) continue
      const r = rangeOf(t.term, loops)
      known &&= r !== undefined
      low += t.coefficient * (r?.[t.coefficient > 0 ? 0 : 1] ?? 0)
      high += t.coefficient * (r?.[t.coefficient > 0 ? 1 : 0] ?? 0)
    }
    if (known && low >= 0 && high < c) return true
  }
  return false
}
