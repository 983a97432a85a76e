/** Accesses of a body with the iterators around them, for the checks of S and R iterators. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import { type Axis, isFused } from '../../ir/coordinates/axis.ts'
import type { Iter, Iteration, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { readsOf1, walkStmts1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { substitute } from '../../ir/expressions/expr-tree.ts'
import { memoize } from '../../ir/memoize.ts'

/** An open iterator with its coordinate, or with the coordinates of all members of a fused axis. */
export interface OpenIter {
  readonly iter: Iter
  readonly coords: readonly { readonly name: string; readonly axis: Axis }[]
}

export interface Access {
  readonly buffer: string
  /** The index with the values of `let`s substituted. */
  readonly index: readonly Expr[]
  readonly mode: 'read' | 'assign' | 'reduce'
  /** The name of the reducer; null for other accesses. */
  readonly reducer: string | null
  readonly around: readonly OpenIter[]
  readonly span: Span | undefined
  /** The position in the order of the text. */
  readonly order: number
}

/** Returns the accesses in the order of the text; the reads of a statement come before its writes. */
export function accessesOf(body: readonly Stmt1[], axes: ReadonlyMap<string, Axis>): readonly Access[] {
  const out: Access[] = []
  const opened = memoize((iterations: readonly Iteration[]): readonly OpenIter[] =>
    iterations.flatMap((it) => it.iters.map((iter) => open(iter, axes))),
  )
  walkStmts1(body, (s, { iterations, lets }) => {
    const around = opened(s.kind === 'iterate' ? [...iterations, s] : iterations)
    const add = (l: Load, mode: Access['mode'], reducer: string | null): void => {
      const index = l.index.map((e) => substitute(e, lets))
      out.push({ buffer: l.buffer, index, mode, reducer, around, span: l.span, order: out.length })
    }
    for (const l of readsOf1(s)) add(l, 'read', null)
    if (s.kind === 'assign' || s.kind === 'reduce')
      for (const t of s.targets) add(t, s.kind, s.kind === 'reduce' ? s.reducer.name : null)
  })
  return out
}

function open(iter: Iter, axes: ReadonlyMap<string, Axis>): OpenIter {
  const axis = axes.get(iter.axis)
  if (!axis) return { iter, coords: [] }
  if (!isFused(axis)) return { iter, coords: [{ name: iter.name, axis }] }
  return { iter, coords: axis.members.flatMap((m) => (axes.has(m) ? [{ name: m, axis: axes.get(m)! }] : [])) }
}
