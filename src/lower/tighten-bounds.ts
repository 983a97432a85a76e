/**
 * Loop bound tightening (guards become trip counts). Invariant reached: a serial loop over every c-th place, from place r
 * on, ends where its places do: `for v in 0..ceildiv(n, c)` that runs where `v * c + r < n`, with 0 <= r < c, is `for v in
 * 0..(n + c - 1 - r) / c`. What threads that share places out by turns (r is a thread's number) ask once instead of at every
 * place.
 */

import { isIndex } from '../analysis/integers/interval.ts'
import { linear, linearKey, loopMap } from '../analysis/integers/linear.ts'
import { rangesOver } from '../analysis/integers/ranges.ts'
import { div, type Expr, int, max, sub } from '../ir/expr.ts'
import type { For, Kernel2 } from '../ir/loops.ts'
import { type Body, bodiesOf, mapSame, stmt, withBodies } from '../ir/tree.ts'
import { isShared, without } from './loop-partitioning.ts'

export function tightenLoops(kernel: Kernel2): Kernel2 {
  const go = (list: Body, path: readonly For[]): Body =>
    mapSame(list, (s) => {
      const next = s.kind === 'for' ? tightened(s, path) : s
      const inner = next.kind === 'for' ? [...path, next] : path
      return withBodies(
        next,
        bodiesOf(next).map((b) => go(b, inner)),
      )
    })
  const body = go(kernel.body, [])
  return body === kernel.body ? kernel : { ...kernel, body }
}

function tightened(loop: For, path: readonly For[]): For {
  if (loop.mode.kind === 'bind' || loop.cooperative || loop.guards.length === 0 || isShared(loop)) return loop
  const { extent } = loop
  if (extent.kind !== 'binary' || extent.op !== 'div' || extent.b.kind !== 'const') return loop
  const size = extent.b.value
  const padded = linear(extent.a)
  const total = linearKey({ ...padded, constant: padded.constant - (size - 1) })
  const range = rangesOver(loopMap(path))
  const rests = loop.guards.map((g): Expr | undefined => {
    if (g.kind !== 'binary' || g.op !== 'lt' || linearKey(linear(g.b)) !== total) return undefined
    const rest = without(linear(g.a), loop.var, size)
    return rest && isIndex(range(rest), size) ? rest : undefined
  })
  const at = rests.findIndex((r) => r !== undefined)
  if (at < 0) return loop
  return stmt({
    ...loop,
    // Never negative, by the range of r; said so that no rounding down is spelled out.
    extent: div(max(int(0), sub(extent.a, rests[at]!)), int(size)),
    guards: loop.guards.filter((_, k) => k !== at),
  })
}
