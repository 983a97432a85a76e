/** Tail guards that copies need not inherit, because all elements that they exclude exist as well. */

import { Facts } from '../../../analysis/integers/facts.ts'
import { linear } from '../../../analysis/integers/linear.ts'
import { type Expr, int } from '../../../ir/expressions/expr.ts'
import { freeVars, mentions, someExpr, substitute } from '../../../ir/expressions/expr-tree.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import { beginsTile, type Footprint } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'

/**
 * Returns the guards of `members`, the loops of a copy, that only select slots of a stored tensor and do not protect
 * their existence; consumers of the copy evaluate such guards again. Each such guard holds in the first iteration of
 * the loops that it mentions. Therefore addresses that do not depend on these loops are valid, and addresses that
 * depend on them are within the buffer's shape.
 */
export function tailGuards(
  cx: Context,
  at: LoopLocation,
  buffer: Buffer,
  print: Pick<Footprint, 'index' | 'conditions'>,
  members: readonly For[],
): ReadonlySet<Expr> {
  const out = new Set<Expr>()
  // Slots of a buffer that the kernel writes may be uninitialised.
  if (buffer.role !== 'in' || buffer.scope !== 'global') return out
  const around = [...at.path, at.loop].filter((l) => !members.includes(l))
  const inScope = [...around, ...members]
  const end = (leaf: Expr): Expr | undefined =>
    leaf.kind === 'var'
      ? inScope.findLast((l) => l.var === leaf.name)?.extent
      : leaf.kind === 'load'
        ? cx.kernel.buffers.find((b) => b.name === leaf.buffer)?.below
        : undefined
  const facts = new Facts({ sizes: cx.kernel.facts, end })
  /** Returns whether a tile of a loop or coordinate begins at `first`. */
  const begins = (first: Expr, bound: Expr): boolean =>
    [...linear(first).terms.values()].some(({ term }) => {
      const tiles = end(term)
      return tiles !== undefined && beginsTile(first, bound, term, tiles)
    })
  const exists = (e: Expr, k: number): boolean => {
    const size = buffer.shape[k]
    return size !== undefined && facts.nonNegative(e) && facts.below(e, size)
  }
  for (const { guards, vars } of together(members)) {
    const speaks = (e: Expr): boolean => [...vars].some((v) => mentions(e, v))
    const first = new Map([...vars].map((v) => [v, int(0)]))
    const holdsFirst = (g: Expr): boolean =>
      g.kind === 'binary' && g.op === 'lt' && !speaks(g.b) && begins(substitute(g.a, first), g.b)
    const addressesThere = (e: Expr): boolean =>
      someExpr(e, (x) => (x.kind === 'load' || x.kind === 'search') && speaks(x))
    if (
      guards.every(holdsFirst) &&
      ![...members.map((l) => l.extent), ...print.conditions].some(speaks) &&
      print.index.every((e, k) => !speaks(e) || (!addressesThere(e) && exists(e, k)))
    )
      for (const g of guards) out.add(g)
  }
  return out
}

/** Returns the guards of loops in groups: guards that mention the same loop are together. */
function together(
  members: readonly For[],
): readonly { readonly guards: readonly Expr[]; readonly vars: ReadonlySet<string> }[] {
  const names = new Set(members.map((l) => l.var))
  let groups: { guards: Expr[]; vars: Set<string> }[] = []
  for (const g of members.flatMap((l) => l.guards)) {
    const vars = new Set([...freeVars(g)].filter((v) => names.has(v)))
    const meets = (o: { vars: Set<string> }): boolean => [...vars].some((v) => o.vars.has(v))
    const own = { guards: [g], vars }
    for (const o of groups.filter(meets)) {
      own.guards.push(...o.guards)
      for (const v of o.vars) own.vars.add(v)
    }
    groups = [...groups.filter((o) => !meets(o)), own]
  }
  return groups
}
