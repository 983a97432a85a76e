/**
 * What copies ask before they read (safety of hoisted loads). A read happens only where the loops around it run; its copy
 * stands outside of those that are not needed to name the element, and may read more than is read of it, but nothing that
 * does not exist.
 */

import { rises } from '../analysis/integers/linear.ts'
import type { Found } from '../ir/definitions.ts'
import { type Expr, int, lt, variable } from '../ir/expr.ts'
import {
  buffersRead,
  children,
  freeVars,
  mentions,
  mentionsAny,
  readsMemory,
  substitute,
} from '../ir/expr-tree.ts'
import { boundTo } from '../ir/hardware-axes.ts'
import type { For } from '../ir/loops.ts'
import { printExpr } from '../ir/print-stage2.ts'
import { keyOf } from '../ir/structural-equality.ts'
import { exprsOf } from '../ir/tree.ts'
import type { CacheScope } from './arguments.ts'
import { wayTo } from './block-tile.ts'
import type { Use } from './buffer-uses.ts'
import type { Context } from './context.ts'
import { beginsTile, namedAlike, neededBy } from './footprint.ts'

/**
 * What the loops around the reads say that the address needs, where the copy stands: one list for all uses, over the loops of
 * the first. Only what speaks of the same as the address protects it.
 */
export function readConditions(
  cx: Context,
  at: Found,
  uses: readonly Use[],
  scope: CacheScope,
): readonly Expr[] {
  const lists = uses.map((u) => {
    const loops = neededBy(u)
    const first = namedAlike(loops, uses[0]!)
    const map = new Map<string, Expr>(loops.map((l, k) => [l.var, first[k]!]))
    return conditionsOf(cx, at, u, scope).map((e) => substitute(e, map))
  })
  // What has to hold for one of the reads, and for all others as well, is all that the copy has to ask.
  const keys = lists.map((l) => new Set(l.map(keyOf)))
  const weakest = keys.findIndex((own) => keys.every((other) => [...own].every((c) => other.has(c))))
  if (weakest < 0)
    cx.refuse({
      code: 'schedule/guard-not-decidable',
      message: `the reads inside of ${at.loop.name} happen under different conditions`,
      loops: [at.loop],
      hint: 'cache further inside, where only one of them is left',
    })
  return lists[weakest]!
}

function conditionsOf(cx: Context, at: Found, use: Use, scope: CacheScope): readonly Expr[] {
  const needed = neededBy(use)
  const hidden = use.path.filter((l) => !needed.includes(l))
  const around = [...at.path, at.loop]
  const names = new Set(hidden.map((l) => l.var))
  const anyThread =
    scope === 'shared'
      ? around.filter((l) => isForAll(l, at, [...use.index, ...needed.flatMap(exprsOf)]))
      : []
  const free = new Set([...names, ...anyThread.map((l) => l.var)])
  const out: Expr[] = []
  const refuse = (l: For, e: Expr): never =>
    cx.refuse({
      code: 'schedule/guard-not-decidable',
      message: `${printExpr(e)} decides whether the element is read, and the copy is outside of ${l.name}`,
      loops: [at.loop, l],
      hint: `cache at ${l.name} instead`,
    })
  const positive = (l: For, e: Expr): void => {
    if (mentionsAny(e, names)) refuse(l, e)
    if (e.kind !== 'const' || e.value <= 0) out.push(lt(int(0), e))
  }
  const gathers = use.index.some(readsMemory)
  const protects = (e: Expr): boolean => use.index.some((x) => mayProtect(e, x))
  for (const l of hidden) {
    if (gathers && protects(l.extent)) positive(l, l.extent)
    for (const g of use.asks && l === use.path.at(-1) ? [] : l.guards) {
      if (!protects(g)) continue
      const less = g.kind === 'binary' && g.op === 'lt' ? g : undefined
      const bound = less?.b
      const first = less && atFirst(less.a, free)
      if (!bound || !first || needed.some((x) => mentions(first, x.var))) return refuse(l, g)
      if (first.kind === 'const' && first.value === 0) positive(l, bound)
      else if (mentionsAny(bound, names)) refuse(l, g)
      else if (!around.some((x) => isWithin(first, bound, x))) out.push(lt(first, bound))
    }
  }
  for (const e of use.under ?? []) {
    const innermost = use.path.at(-1)
    if (innermost && mentionsAny(e, names)) return refuse(innermost, e)
    out.push(e)
  }
  return [...new Map(out.map((e) => [keyOf(e), e])).values()]
}

/**
 * A loop over threads that fill the copy together, whichever of them reads it: nothing that leads to the copy or to the
 * element depends on which it is.
 */
const isForAll = (l: For, at: Found, naming: readonly Expr[]): boolean =>
  boundTo(l, 'thread') !== undefined &&
  ![
    ...naming,
    ...wayTo(l, at.loop).flatMap((s) => (s.kind === 'for' || s.kind === 'if' ? exprsOf(s) : [])),
  ].some((e) => mentions(e, l.var))

/**
 * Whether what a condition computes with (variables, and arrays that it reads, whatever says where) is among what an address
 * is computed with, or the addresses that it is read from.
 */
function mayProtect(condition: Expr, address: Expr): boolean {
  const [vars, arrays] = [freeVars(address), buffersRead(address)]
  const speaks = (e: Expr): boolean =>
    e.kind === 'var'
      ? vars.has(e.name)
      : e.kind === 'load' || e.kind === 'search'
        ? arrays.has(e.buffer)
        : children(e).some(speaks)
  return speaks(condition)
}

/** Whether `first < bound` says that a loop over tiles has begun one. */
const isWithin = (first: Expr, bound: Expr, loop: For): boolean =>
  beginsTile(first, bound, variable(loop.var), loop.extent)

/** A sum with the loops `names` in their first iteration, where it is then the smallest. */
function atFirst(e: Expr, names: ReadonlySet<string>): Expr | undefined {
  return rises(e, ...names) ? substitute(e, new Map([...names].map((n) => [n, int(0)]))) : undefined
}
