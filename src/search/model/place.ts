/** Where a walk through loops stands: what is known there, how often it is reached, and what conditions let through. */
import type { Expr, Load, Search } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { For } from '../../ir/loops.ts'
import { expected, type Known, shareOf } from './estimates.ts'
import type { Frame } from './frames.ts'
import { isWhole } from './whole.ts'

/** Where the walk stands. */
export interface Place extends Known {
  readonly times: number
  /** As if every loop that reduces ran once: how often an accumulator starts. */
  readonly starts: number
  /** Of the iterations of predicated loops, the share that reads anything new. */
  readonly useful: number
  readonly frames: readonly Frame[]
  /** Guards that hold here, with the share that they let through. */
  readonly held: readonly Held[]
}

export interface Held {
  readonly vars: ReadonlySet<string>
  readonly share: number
}

/**
 * The share of iterations that the guards of a loop let through. A guard over more variables implies those before it over
 * fewer of them, as the guards of a split loop do that is split again: their share is not taken twice.
 */
export function guarded(s: For, p: Place): { readonly share: number; readonly held: readonly Held[] } {
  let [share, held] = [1, p.held]
  for (const g of s.guards) {
    const vars = freeVars(g)
    const implied = held.filter((h) => [...h.vars].every((v) => vars.has(v)))
    const before = implied.reduce((product, h) => product * h.share, 1)
    const all = shareOf(g, p)
    share *= before === 0 ? 0 : Math.min(1, all / before)
    held = [...held.filter((h) => !implied.includes(h)), { vars, share: all }]
  }
  return { share, held }
}

/**
 * How often an access inside of the loops up to `at` is made: once for all iterations of a loop that stand side by side in the
 * text, where its address is the same in them; and inside of an instruction once for each element of an operand.
 */
export function timesOf(p: Place, x: Load | Search, at: number): number {
  const vars = freeVars(x)
  const from = p.frames.findIndex((f) => f.loop?.mode.kind === 'instr')
  const text = p.frames.slice(0, at + 1).findLastIndex((f) => !f.loop || !isWhole(f.loop)) + 1
  const first = from < 0 ? text : Math.min(from, text)
  return p.frames
    .slice(first, at + 1)
    .reduce((n, f) => (f.loop && vars.has(f.loop.var) ? n * f.extent : n), p.frames[first - 1]?.times ?? 1)
}

/** Of the iterations of a thread's loops around a statement, the share in which what it reads there is read. */
export function onceOf(p: Place, x: Load | Search, at: number): number {
  const vars = freeVars(x)
  const text = p.frames.slice(0, at + 1).findLastIndex((f) => !f.loop || !isWhole(f.loop)) + 1
  return p.frames.reduce((n, f, k) => {
    if (!f.loop || f.loop.mode.kind === 'bind') return n
    const counts = k < text || (k <= at && vars.has(f.loop.var))
    return counts ? n : n / Math.max(1, f.extent)
  }, 1)
}

/** Ranges where a bound of one variable holds, or does not. */
export function narrowed(cond: Expr, p: Place, holds: boolean): Known['ranges'] {
  if (cond.kind !== 'binary' || cond.op !== 'lt' || cond.a.kind !== 'var') return p.ranges
  const [range, bound] = [p.ranges.get(cond.a.name), expected(cond.b, p)]
  if (!range || Number.isNaN(bound)) return p.ranges
  const end = range.lo + range.extent
  const at = Math.min(end, Math.max(range.lo, bound))
  const part = holds ? { lo: range.lo, extent: at - range.lo } : { lo: at, extent: end - at }
  return new Map(p.ranges).set(cond.a.name, part)
}
