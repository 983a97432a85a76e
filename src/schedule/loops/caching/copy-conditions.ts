/**
 * Conditions of hoisted loads. A read happens only in iterations of the loops around it. Its copy is outside of the
 * loops that do not determine the element, and may read more elements than the loop does, but only elements that exist.
 */

import { factsInside } from '../../../analysis/integers/facts.ts'
import { boundKey, linear, rises } from '../../../analysis/integers/linear.ts'
import { distinctExprs } from '../../../ir/expressions/distinct-expressions.ts'
import { type Expr, int, isZero, type Load, lt, variable } from '../../../ir/expressions/expr.ts'
import {
  buffersRead,
  children,
  freeVars,
  mentions,
  mentionsSome,
  readsMemory,
  rewriteExpr,
  someExpr,
  substitute,
} from '../../../ir/expressions/expr-tree.ts'
import { keyOf } from '../../../ir/expressions/structural-equality.ts'
import { boundIndex } from '../../../ir/instructions/hardware-axes.ts'
import { printExpr } from '../../../ir/print/print-stage2.ts'
import type { LoopLocation } from '../../../ir/statements/definitions.ts'
import type { Buffer, For } from '../../../ir/statements/loops.ts'
import { forLoop } from '../../../ir/statements/statement-builders.ts'
import { exprsOf, stmt } from '../../../ir/statements/tree.ts'
import type { Use } from '../../legality/buffer-uses.ts'
import { namedAlike, neededBy } from '../../legality/footprint.ts'
import type { Context } from '../../state/context.ts'
import type { CacheScope } from '../../steps/arguments.ts'
import { conditionsFrom } from './block-tile.ts'

/**
 * Returns the conditions, from loops around the reads, that protect the address at the position of the copy: one list
 * for all uses, over the loops of the first use. Only a condition on data of the address protects it. Throws
 * `schedule/guard-not-decidable` if uses need different conditions.
 */
export function readConditions(
  cx: Context,
  at: LoopLocation,
  uses: readonly Use[],
  scope: CacheScope,
): readonly Expr[] {
  const lists = uses.map((u) => {
    const loops = neededBy(u)
    const first = namedAlike(loops, uses[0]!)
    const map = new Map<string, Expr>(loops.map((l, k) => [l.var, first[k]!]))
    return conditionsOf(cx, at, u, scope).map((e) => substitute(e, map))
  })
  // The copy needs the conditions of one read if they hold for all other reads as well.
  const keys = lists.map((l) => new Set(l.map(keyOf)))
  const weakest = keys.findIndex((own) => keys.every((other) => [...own].every((c) => other.has(c))))
  if (weakest < 0)
    cx.refuse('schedule/guard-not-decidable', [at.loop], {
      message: `the reads inside of ${at.loop.name} happen under different conditions`,
      hint: 'cache further inside, where a single condition is left',
    })
  return lists[weakest]!
}

function conditionsOf(cx: Context, at: LoopLocation, use: Use, scope: CacheScope): readonly Expr[] {
  const needed = neededBy(use)
  const hidden = use.path.filter((l) => !needed.includes(l))
  const around = [...at.path, at.loop]
  const names = new Set(hidden.map((l) => l.var))
  const anyThread =
    scope === 'shared'
      ? around.filter((l) => isForAll(l, at, [...use.index, ...needed.flatMap(exprsOf)]))
      : []
  const free = new Set([...names, ...anyThread.map((l) => l.var)])
  const facts = factsInside(around, cx.kernel)
  const out: Expr[] = []
  const refuse = (l: For, e: Expr): never =>
    cx.refuse('schedule/guard-not-decidable', [at.loop, l], {
      message: `${printExpr(e)} decides whether the element is read, and the copy is outside of ${l.name}`,
      hint: `cache at ${l.name} instead`,
    })
  /** Adds a condition, unless it is implied; `named` is the part that the copy cannot evaluate outside of hidden loops. */
  const add = (l: For, condition: Expr, named: Expr): void => {
    if (mentionsSome(named, names)) refuse(l, named)
    if (!facts.implies(condition)) out.push(condition)
  }
  const gathers = use.index.some(readsMemory)
  const protects = (e: Expr): boolean => use.index.some((x) => mayProtect(e, x))
  for (const l of hidden) {
    if (gathers && protects(l.extent)) add(l, lt(int(0), l.extent), l.extent)
    for (const g of use.asks && l === use.path.at(-1) ? [] : l.guards) {
      if (!protects(g)) continue
      const less = g.kind === 'binary' && g.op === 'lt' ? g : undefined
      const first = less && atFirst(less.a, free)
      if (!first || needed.some((x) => mentions(first, x.var))) return refuse(l, g)
      add(l, lt(first, less.b), isZero(first) || !mentionsSome(less.b, names) ? less.b : g)
    }
  }
  for (const e of use.under ?? []) {
    const innermost = use.path.at(-1)
    if (innermost && mentionsSome(e, names)) return refuse(innermost, e)
    out.push(e)
  }
  return distinctExprs(out)
}

/**
 * Returns whether a thread-bound loop only distributes the filling of the copy: neither the path to the copy nor the
 * element depends on the thread.
 */
const isForAll = (l: For, at: LoopLocation, naming: readonly Expr[]): boolean =>
  boundIndex(l, 'thread') !== undefined &&
  ![...naming, ...conditionsFrom(l, at)].some((e) => mentions(e, l.var))

/** Returns whether a condition reads a variable or an array that the address is computed from. */
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

/**
 * Returns the sum with the loops `names` in their first iteration, which is its minimum; undefined if the sum does not
 * rise with them.
 */
function atFirst(e: Expr, names: ReadonlySet<string>): Expr | undefined {
  return rises(e, ...names) ? substitute(e, new Map([...names].map((n) => [n, int(0)]))) : undefined
}

// Bounding boxes of gathers. If an index is a sum of loop variables and of array elements with a constant
// upper bound, a copy of all elements that may be accessed has a dimension for the array element, as if it
// were a loop.

/** An access in which loops replace the loaded array elements. */
export interface Bounding<A> {
  readonly access: A
  /** The loaded array element that each new loop variable replaces. */
  readonly held: ReadonlyMap<string, Expr>
}

/**
 * Returns the loads with a constant upper bound that the sum `e` adds, if each occurs in one term only. Loads in the
 * index of a table are included unless a condition of `needed` reads them: each of their values is a valid index of
 * the table.
 */
function addends(e: Expr, bounded: (x: Load) => boolean, needed: readonly Expr[]): readonly Load[] {
  const terms = [...linear(e).terms.values()].map((t) => t.term)
  const alone = (x: Load, term: Expr): boolean =>
    terms.every((y) => y === term || !someExpr(y, (z) => keyOf(z) === keyOf(x)))
  return terms.flatMap((x) => {
    if (x.kind !== 'load') return []
    if (bounded(x)) return alone(x, x) ? [x] : []
    if (x.index.length !== 1) return []
    const isFree = (y: Load): boolean => !needed.some((g) => someExpr(g, (z) => keyOf(z) === keyOf(y)))
    return addends(x.index[0]!, bounded, needed).filter((y) => alone(y, x) && isFree(y))
  })
}

/**
 * Returns a function that adds loops to an access: one loop for each bounded array element in an index of the access.
 * Guards restrict the new loops to indices inside of the buffer.
 */
export function boundingOf(cx: Context, at: LoopLocation, buffer: Buffer) {
  const endOf = (e: Expr): number | undefined => {
    const below = e.kind === 'load' ? cx.buffer(e.buffer).below : undefined
    return below?.kind === 'const' ? below.value : undefined
  }
  return <A extends Pick<Use, 'index' | 'path'>>(access: A): Bounding<A> => {
    const held = new Map<string, Load>()
    const named = (e: Expr): Expr =>
      rewriteExpr(e, (x) => {
        const found = x.kind === 'load' && [...held].find(([, y]) => keyOf(y) === keyOf(x))
        return found ? variable(found[0]) : undefined
      })
    const inside = [...at.path, at.loop, ...access.path]
    // Guards that always hold are ignored.
    const known = factsInside(inside, cx.kernel)
    const isNeeded = (g: Expr): boolean => !known.implies(g)
    const needed = access.path.flatMap((l) => l.guards.filter(isNeeded))
    const index = access.index.map((e, k) => {
      for (const [n, x] of addends(e, (l) => endOf(l) !== undefined, needed).entries())
        held.set(`@${k}.${n}`, x)
      return named(e)
    })
    const added = [...held].map(([name, x]) =>
      forLoop(name, int(endOf(x)!), [], { name: x.buffer, nest: at.loop.nest }),
    )
    const facts = factsInside([...inside, ...added], cx.kernel)
    const loops = added.map((l) => {
      const guards = index.flatMap((e, k) =>
        mentions(e, l.var) && !facts.below(e, buffer.shape[k]!) ? [lt(e, buffer.shape[k]!)] : [],
      )
      return stmt<For>({ ...l, guards })
    })
    // Bounds checks of the element are guards of the new loops already, so the original guards are removed.
    const covered = new Set(loops.flatMap((l) => l.guards.map(boundKey)))
    const path = access.path.map((l) => {
      const guards = l.guards.filter((g) => isNeeded(g) && !covered.has(boundKey(named(g))))
      return guards.length === l.guards.length ? l : stmt<For>({ ...l, guards })
    })
    return { access: { ...access, index, path: [...path, ...loops] }, held }
  }
}
