/** Implication of guards. Guards that facts about sizes decide. */
import { ceildiv, div, type Expr, int } from '../../ir/expr.ts'
import { keyOf } from '../../ir/keys.ts'
import type { Buffer, Fact, For, Stmt } from '../../ir/loops.ts'
import { type Body, bodiesOf, mapSame, stmt, withBodies } from '../../ir/tree.ts'
import { isMultiple } from './facts.ts'
import { isIndex } from './interval.ts'
import { linear, loopMap } from './linear.ts'
import { rangeOfSum, rangesOver } from './ranges.ts'

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
    const rest = { ...sum, terms: new Map([...sum.terms].filter(([other]) => other !== key)) }
    if (isIndex(rangeOfSum(rest, rangesOver(loops)), c)) return true
  }
  return false
}
