/**
 * Expansion of reductions into load, combine and store; lane reductions become warp shuffles (butterfly). Invariant reached: the only
 * remaining reductions are atomic updates of one element.
 */
import type { Names } from '../../ir/expressions/bound-names.ts'
import { cast, type Expr, load, variable } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { loopsOf } from '../../ir/statements/definitions.ts'
import type { For, Lanes, Reduce, Stmt } from '../../ir/statements/loops.ts'
import { define, store } from '../../ir/statements/statement-builders.ts'
import { type Body, rewriteStmts, someStmt } from '../../ir/statements/tree.ts'

export function expandReductions(body: Body, names: Names): Body {
  return rewriteStmts(body, {
    stmt: (s) => {
      if (s.kind !== 'reduce' || s.atomic) return undefined
      return s.lanes ? exchange(s, s.lanes, names) : combine(s, names)
    },
  })
}

function exchange(r: Reduce, lanes: Lanes, names: Names): Stmt[] {
  const out: Stmt[] = []
  for (let xor = lanes.first ?? 1; xor < lanes.width; xor *= 2) {
    const others = r.values.map((value) =>
      define(names.fresh('other'), value, {
        lane: { xor, among: lanes.among },
        span: r.span,
      }),
    )
    const values = others.map((o) => variable(o.name, o.dtype))
    out.push(...others, ...combine({ ...r, values }, names))
  }
  return out
}

function combine(r: Reduce, names: Names): Stmt[] {
  const map = new Map<string, Expr>()
  r.targets.forEach((t, k) => {
    map.set(r.reducer.left[k]!.name, cast(load(t.buffer, t.index, t.dtype), r.reducer.left[k]!.dtype))
    map.set(r.reducer.right[k]!.name, cast(r.values[k]!, r.reducer.right[k]!.dtype))
  })
  const results = r.reducer.result.map((e, k) => cast(substitute(e, map), r.targets[k]!.dtype))
  const set = (k: number, value: Expr): Stmt =>
    store(r.targets[k]!.buffer, r.targets[k]!.index, value, { span: r.span })
  if (results.length === 1) return [set(0, results[0]!)]
  // All components are computed before the first is replaced.
  const lets = results.map((value) => define(names.fresh('next'), value, { span: r.span }))
  return [...lets, ...lets.map((l, k) => set(k, variable(l.name, l.dtype)))]
}

// Live ranges of accumulators: the loops inside which the targets of a reduction are allocated.

/**
 * The number of loops around a reduction that lie outside the live range of its targets. A local buffer is allocated anew in every
 * iteration of these loops, so they do not reduce into it. 0 for global buffers.
 */
export function outsideLifetime(reduce: Reduce, path: readonly For[]): number {
  const makes = (s: Stmt): boolean =>
    s.kind === 'alloc' && reduce.targets.some((t) => t.buffer === s.buffer.name)
  return path.findLastIndex((l) => someStmt(l.body, makes)) + 1
}

// Lanes of a warp (subgroup) for shuffles: threads that are adjacent in thread.x, at most as many as the
// target allows.

export const onX = (l: For): boolean => l.mode.kind === 'bind' && l.mode.to === 'thread.x'

/** The number of threads in thread.x, in the top-level nest that contains the reduction. */
function threadsInX(body: Body, reduce: Reduce): number {
  const holds = (top: Stmt): boolean => someStmt([top], (s) => s === reduce)
  const extents = loopsOf(body.filter(holds)).map((l) =>
    onX(l) && l.extent.kind === 'const' ? l.extent.value : 1,
  )
  return Math.max(1, ...extents)
}

/**
 * The largest number of lanes (at most `lanes`) in which the threads of `loop` can combine by exchange. It is a power of two that divides
 * the loop and the row of the block, so that no group spans two rows. 1 if no exchange is possible.
 */
export function laneWidth(body: Body, reduce: Reduce, loop: For, lanes: number): number {
  if (!onX(loop) || loop.extent.kind !== 'const') return 1
  const row = threadsInX(body, reduce)
  let width = 1
  while (width * 2 <= lanes && loop.extent.value % (width * 2) === 0 && row % (width * 2) === 0) width *= 2
  return width
}
