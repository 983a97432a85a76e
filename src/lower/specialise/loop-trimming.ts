/**
 * Loop trimming: index set reduction by guards. Invariant reached: a long serial loop of constant extent with guard `v + rest < n` becomes
 * `for v in 0..min(extent, n - rest)`, without the guard. n may be loaded, for example the length of a list built at run time, because
 * guards read nothing that their loop writes. A single CPU thread gains from few iterations. Launches with many threads need more, because
 * loops of constant extent are unrolled.
 * `LONG` is the minimum extent in iterations for one thread (`alone`) and for many (`threads`).
 */
import { coefficientOf, keepTerms, linear, loopMap, sumExpr } from '../../analysis/integers/linear.ts'
import { naturals, registersOver } from '../../analysis/integers/ranges.ts'
import { type Expr, int, max, min, sub } from '../../ir/expressions/expr.ts'
import { mentions, readsMemory, someExpr } from '../../ir/expressions/expr-tree.ts'
import { accessesOf } from '../../ir/statements/accesses.ts'
import { allocatedNames } from '../../ir/statements/bindings.ts'
import type { For, Kernel2 } from '../../ir/statements/loops.ts'
import { mapLoops, stmt } from '../../ir/statements/tree.ts'
import { isShared } from './loop-partitioning.ts'

const LONG = { alone: 16, threads: 1024 }

export function trimLoops(
  kernel: Kernel2,
  { promote }: { readonly promote?: boolean | undefined } = {},
): Kernel2 {
  const least = promote ? LONG.alone : LONG.threads
  const natural = naturals(kernel.body, kernel.params, kernel.buffers)
  const allocated = allocatedNames(kernel.body)
  const isLong = (l: For): boolean =>
    l.extent.kind === 'const' && l.extent.value >= least && l.mode.kind === 'serial' && !l.cooperative
  const ended = (l: For, path: readonly For[]): For => {
    const { guards } = l
    if (guards.length === 0 || !isLong(l) || isShared(l) || indexes(l, allocated)) return l
    const registers = registersOver(loopMap(path))
    const end = (g: Expr, k: number): Expr | undefined => {
      // A guard that loads may be in range only because of the guards before it.
      if (k > 0 && readsMemory(g)) return undefined
      if (g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, l.var) || coefficientOf(g.a, l.var) !== 1)
        return undefined
      const rest = sumExpr(keepTerms(linear(g.a), ({ term }) => term.kind !== 'var' || term.name !== l.var))
      if (mentions(rest, l.var) || !natural(rest)) return undefined
      if ([rest, g.b].some((e) => someExpr(e, (x) => registers(x).wraps))) return undefined
      // Clamped to 0 first, because a large negative number minus the rest would wrap.
      return max(int(0), sub(natural(g.b) ? g.b : max(int(0), g.b), rest))
    }
    const ends = guards.map(end)
    const at = ends.findIndex((e) => e !== undefined)
    if (at < 0) return l
    return stmt<For>({
      ...l,
      extent: min(l.extent, ends[at]!),
      guards: guards.filter((_, k) => k !== at),
    })
  }
  const body = mapLoops(kernel.body, ended)
  return body === kernel.body ? kernel : { ...kernel, body }
}

/** Returns true if the loop indexes one of the arrays. Register arrays require that such loops are unrolled. */
export const indexes = (l: For, arrays: ReadonlySet<string>): boolean =>
  accessesOf(l.body).some((a) => arrays.has(a.buffer) && a.index.some((e) => mentions(e, l.var)))
