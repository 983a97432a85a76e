/** Every access of a body with the iterators around it: what the rules about S and R look at. */
import type { Span } from '../ast/diagnostic.ts'
import { type Axis, isFused } from '../ir/axis.ts'
import type { Expr, Load } from '../ir/expr.ts'
import { substitute, walkExpr } from '../ir/expr-tree.ts'
import type { Iter, Stmt1 } from '../ir/stage1.ts'

/** An iterator that is open, with the coordinates it brings: one, or one for each member of a fused axis. */
export interface OpenIter {
  readonly iter: Iter
  readonly coords: readonly { readonly name: string; readonly axis: Axis }[]
}

export interface Access {
  readonly buffer: string
  /** `let`s are replaced by their values. */
  readonly index: readonly Expr[]
  readonly mode: 'read' | 'assign' | 'reduce'
  /** Name of the reducer. */
  readonly reducer: string | null
  readonly around: readonly OpenIter[]
  readonly span: Span | undefined
  /** Its place in the order of the text. */
  readonly order: number
}

/** In the order of the text; what a statement reads comes before what it writes. */
export function accessesOf(body: readonly Stmt1[], axes: ReadonlyMap<string, Axis>): readonly Access[] {
  const out: Access[] = []
  const add = (
    l: Load,
    mode: Access['mode'],
    reducer: string | null,
    around: readonly OpenIter[],
    lets: ReadonlyMap<string, Expr>,
  ): void => {
    const index = l.index.map((e) => substitute(e, lets))
    out.push({ buffer: l.buffer, index, mode, reducer, around, span: l.span, order: out.length })
  }
  const reads = (e: Expr, around: readonly OpenIter[], lets: ReadonlyMap<string, Expr>): void =>
    walkExpr(e, (x) => {
      if (x.kind === 'load') add(x, 'read', null, around, lets)
    })
  const go = (
    list: readonly Stmt1[],
    around: readonly OpenIter[],
    outer: ReadonlyMap<string, Expr>,
  ): void => {
    let lets = outer
    for (const s of list)
      switch (s.kind) {
        case 'let':
          reads(s.value, around, lets)
          lets = new Map(lets).set(s.name, substitute(s.value, lets))
          break
        case 'if':
          reads(s.cond, around, lets)
          go(s.then, around, lets)
          go(s.else, around, lets)
          break
        case 'iterate': {
          const inner = [...around, ...s.iters.map((iter) => open(iter, axes))]
          for (const w of s.where) reads(w, inner, lets)
          go(s.body, inner, lets)
          break
        }
        default:
          for (const v of s.values) reads(v, around, lets)
          for (const e of s.targets.flatMap((t) => t.index)) reads(e, around, lets)
          for (const t of s.targets) add(t, s.kind, s.kind === 'reduce' ? s.reducer.name : null, around, lets)
      }
  }
  go(body, [], new Map())
  return out
}

function open(iter: Iter, axes: ReadonlyMap<string, Axis>): OpenIter {
  const axis = axes.get(iter.axis)
  if (!axis) return { iter, coords: [] }
  if (!isFused(axis)) return { iter, coords: [{ name: iter.name, axis }] }
  return { iter, coords: axis.members.flatMap((m) => (axes.has(m) ? [{ name: m, axis: axes.get(m)! }] : [])) }
}
