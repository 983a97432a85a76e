/** Where a walk through loops stands: what is known there, how often it is reached, and what conditions let through. */
import type { Expr, Load, Search } from '../../ir/expr.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { For } from '../../ir/loops.ts'
import { expected, type Known, shareOf } from './estimates.ts'
import type { Frame } from './frames.ts'

/** Where the walk stands. */
export interface Place extends Known {
  readonly times: number
  /** As if every loop that reduces ran once: how often an accumulator starts. */
  readonly starts: number
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

/** Inside of an instruction an operand's element is moved once, whatever loops of it repeat it. */
export function timesOf(p: Place, x: Load | Search, at: number): number {
  const from = p.frames.findIndex((f) => f.loop?.mode.kind === 'instr')
  const frame = p.frames[at]
  if (from < 0 || at < from) return frame ? frame.times : 1
  const vars = freeVars(x)
  const before = p.frames[from - 1]?.times ?? 1
  return p.frames.slice(from).reduce((n, f) => (f.loop && vars.has(f.loop.var) ? n * f.extent : n), before)
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
