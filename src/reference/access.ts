/**
 * From coordinates to elements. Where every index down a tree is the open iterator of that very axis, the
 * element is where the iterators stand (which is what tells the duplicates of a nonunique axis apart); any
 * other coordinates are looked up, and absent ones read the fill value.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import type { Expr, Load } from '../ir/expr.ts'
import { rounding } from '../ir/rounding.ts'
import { compileBounded, isExact } from './bounded.ts'
import { type Bounds, errorAt, last, through, undecide } from './error.ts'
import { compileExpr, type Thunk } from './expressions.ts'
import { type Context, type Open, openOf, type Scope } from './scope.ts'
import { at, type Tensor } from './storage.ts'
import { chainOf, findNode, findPath, isUnique, type Level } from './structure.ts'

/** Gives the leaf node of one tree, or -1. `sure`: never -1. */
interface Finder {
  readonly find: Thunk
  readonly sure: boolean
}

/** The iterator that stands at the node these indices name, if that is certain from the text alone. */
function standing(chain: readonly Level[], index: readonly Expr[], scope: Scope): Open | undefined {
  const opens = chain.map((_, k) => openOf(scope, index[k]!))
  for (let k = chain.length - 1; k >= 0; k--) {
    const open = opens[k]
    if (open?.level !== chain[k]) return undefined
    if (k > 0 && opens[k - 1] !== open?.parent) return undefined
    // Entered by its parent's coordinate: where the parent itself stands does not matter.
    if (open?.attached) break
  }
  return opens.at(-1)
}

function finder(leaf: Level, index: readonly Expr[], scope: Scope, ctx: Context): Finder {
  const chain = chainOf(leaf)
  const open = standing(chain, index, scope)
  if (open) {
    const node = open.node
    return { find: () => node.v, sure: true }
  }
  const coords = index.map((e) => compileExpr(e, scope, ctx))
  if (chain.length === 1) {
    const c = coords[0]!
    if (leaf.start) return { find: () => findNode(leaf, 0, c()), sure: false }
    const n = leaf.count
    const find = (): number => {
      const x = c()
      return x >= 0 && x < n ? x : -1
    }
    return { find, sure: false }
  }
  if (!chain.every(isUnique))
    return {
      find: () =>
        findPath(
          chain,
          coords.map((c) => c()),
        ),
      sure: false,
    }
  const find = (): number => {
    let q = 0
    for (let k = 0; k < chain.length && q >= 0; k++) q = findNode(chain[k]!, q, coords[k]!())
    return q
  }
  return { find, sure: false }
}

/** The address of an element, or -1 where it does not exist. */
function compileAddress(t: Tensor, access: Load, scope: Scope, ctx: Context): Thunk {
  invariant(
    access.index.length === t.buffer.axes.length,
    `${t.buffer.name} takes ${t.buffer.axes.length} indices`,
  )
  const finders = t.leaves.map((leaf, k) =>
    finder(
      leaf,
      t.dims[k]!.map((d) => access.index[d]!),
      scope,
      ctx,
    ),
  )
  const counts = t.leaves.map((l) => l.count)
  const find = finders.map((f) => f.find)
  const [f0, f1, f2] = find
  const [, n1 = 0, n2 = 0] = counts
  if (!f0) return () => 0
  if (!f1) return f0
  if (!f2) {
    if (finders.every((f) => f.sure)) return () => f0() * n1 + f1()
    return () => {
      const p = f0()
      if (p < 0) return -1
      const q = f1()
      return q < 0 ? -1 : p * n1 + q
    }
  }
  if (find.length === 3)
    return () => {
      const p = f0()
      if (p < 0) return -1
      const q = f1()
      if (q < 0) return -1
      const r = f2()
      return r < 0 ? -1 : (p * n1 + q) * n2 + r
    }
  return () => {
    let a = 0
    for (let k = 0; k < find.length; k++) {
      const q = find[k]!()
      if (q < 0) return -1
      a = a * counts[k]! + q
    }
    return a
  }
}

function tensorOf(ctx: Context, name: string): Tensor {
  const t = ctx.tensors.get(name)
  invariant(t, `no buffer ${name}`)
  return t
}

export function compileLoad(e: Load, scope: Scope, ctx: Context): Thunk {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, ctx)
  const { data } = t
  const { fill } = t.buffer
  return () => {
    const a = address()
    return a < 0 ? fill : data[a]!
  }
}

/** The same with the error bound, for buffers that are computed. An index that is undecided may name any element. */
export function compileElement(e: Load, scope: Scope, ctx: Context): Thunk {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, ctx)
  const unsure = undecidedIndex(e, scope, ctx)
  const { data, bounds } = t
  const { fill, dtype, accumulate } = t.buffer
  const round = rounding(dtype)
  return () => {
    if (unsure?.()) {
      last.error = Number.POSITIVE_INFINITY
      return fill
    }
    const a = address()
    last.error = 0
    if (a < 0) return fill
    if (!bounds) return data[a]!
    const v = round(data[a]!)
    last.error = through(round, data[a]!, errorAt(bounds, a, dtype, accumulate), v)
    return v
  }
}

/** Whether some index is within its error of another one; nothing where that cannot be. */
function undecidedIndex(e: Load, scope: Scope, ctx: Context): (() => boolean) | null {
  const open = e.index.filter((x) => !isExact(x, scope, ctx)).map((x) => compileBounded(x, scope, ctx))
  if (open.length === 0) return null
  return () =>
    open.some((x) => {
      x()
      return last.error > 0
    })
}

export interface Target {
  readonly data: Float64Array
  readonly bounds: Bounds
  /**
   * Throws where the element does not exist, unless `changesNothing` (a reducer's identity); -1 there and where it is
   * not known which one is written.
   */
  readonly address: (changesNothing: boolean) => number
}

export function compileTarget(e: Load, scope: Scope, ctx: Context): Target {
  const t = tensorOf(ctx, e.buffer)
  const address = compileAddress(t, e, scope, ctx)
  const coords = e.index.map((x) => compileExpr(x, scope, ctx))
  const unsure = undecidedIndex(e, scope, ctx)
  const { bounds } = t
  invariant(bounds, `${e.buffer} is written`)
  return {
    data: t.data,
    bounds,
    address: (changesNothing) => {
      if (unsure?.()) {
        undecide(bounds)
        return -1
      }
      const a = address()
      if (a >= 0 || changesNothing || ctx.doubt.v > 0) return a
      return fail({
        code: 'reference/absent-target',
        message: `${e.buffer}[${coords.map((c) => c()).join(', ')}] is written, but it is not stored`,
        ...at(e.span),
        hint: 'write only to coordinates that the buffer holds: iterate its own axes, or guard with `if`',
      })
    },
  }
}
