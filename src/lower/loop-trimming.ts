/**
 * Ends of long loops. Invariant reached: a long serial loop of constant extent with a guard `v + rest < n` ends where the guard
 * does, `for v in 0..min(extent, n - rest)`, and does not ask in each iteration. Such an n may be read of an array, as how long a
 * list is that the run found: guards read nothing that their loop writes. One thread gains by a few iterations; where there
 * are many, a constant extent is worth more, as loops of which all is known are written out, unless most of it may be beyond the end.
 */
import { coefficientOf, keepTerms, linear, loopMap, sumExpr } from '../analysis/integers/linear.ts'
import { naturals, registersOver } from '../analysis/integers/ranges.ts'
import { accessesOf } from '../ir/accesses.ts'
import { allocatedNames } from '../ir/bindings.ts'
import { type Expr, int, max, min, sub } from '../ir/expr.ts'
import { mentions, readsMemory, someExpr } from '../ir/expr-tree.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { mapLoops, stmt } from '../ir/tree.ts'
import { valuesIn } from '../ir/wrapping-values.ts'
import { isShared } from './loop-partitioning.ts'

const LONG = { alone: 16, threads: 1024 }

export function trimLoops(
  kernel: Kernel2,
  { promote }: { readonly promote?: boolean | undefined } = {},
): Kernel2 {
  const least = promote ? LONG.alone : LONG.threads
  const natural = naturals(kernel.body, kernel.params, kernel.buffers)
  const values = valuesIn(kernel.body)
  const own = allocatedNames(kernel.body)
  const isLong = (l: For): boolean =>
    l.extent.kind === 'const' && l.extent.value >= least && l.mode.kind === 'serial' && !l.cooperative
  const ended = (l: For, path: readonly For[]): For => {
    const { guards } = l
    if (guards.length === 0 || !isLong(l) || isShared(l) || indexes(l, own)) return l
    const registers = registersOver(loopMap(path), values)
    const end = (g: Expr, k: number): Expr | undefined => {
      // What a guard reads may be in range by the guards before it.
      if (k > 0 && readsMemory(g)) return undefined
      if (g.kind !== 'binary' || g.op !== 'lt' || mentions(g.b, l.var) || coefficientOf(g.a, l.var) !== 1)
        return undefined
      const rest = sumExpr(keepTerms(linear(g.a), ({ term }) => term.kind !== 'var' || term.name !== l.var))
      if (mentions(rest, l.var) || !natural(rest)) return undefined
      if ([rest, g.b].some((e) => someExpr(e, (x) => registers(x).wraps))) return undefined
      // A number far below 0, less the rest, would wrap to a large one.
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

/** Whether a loop says which element of some arrays: those in registers are indexed by loops that are written out. */
export const indexes = (l: For, arrays: ReadonlySet<string>): boolean =>
  accessesOf(l.body).some((a) => arrays.has(a.buffer) && a.index.some((e) => mentions(e, l.var)))
