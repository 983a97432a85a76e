/**
 * Element addresses from coordinates. If every index of a tree is the open iterator of that axis, the element is at the
 * iterators' nodes (which distinguishes duplicates of a nonunique axis). Other coordinates are searched for, and absent
 * ones read the fill value.
 */
import { invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { chainOf, findNode, findPath, isUnique, type Level } from './axis-trees.ts'
import { type Context, type OpenIterator, openOf, type Scope, type Thunk } from './cells.ts'
import type { Tensor } from './reference-buffers.ts'

/** Returns the leaf node of one tree, or −1. `alwaysFound`: never −1. */
interface Finder {
  readonly find: Thunk
  readonly alwaysFound: boolean
}

/** The iterator at the node that these indices denote, if the program text alone determines it. */
function iteratorAt(chain: readonly Level[], index: readonly Expr[], scope: Scope): OpenIterator | undefined {
  const opens = chain.map((_, k) => openOf(scope, index[k]!))
  for (let k = chain.length - 1; k >= 0; k--) {
    const open = opens[k]
    if (open?.level !== chain[k]) return undefined
    if (k > 0 && opens[k - 1] !== open?.parent) return undefined
    // Entered by its parent's coordinate: the parent's node is irrelevant.
    if (open?.attached) break
  }
  return opens.at(-1)
}

function finder(leaf: Level, index: readonly Expr[], scope: Scope, coord: (e: Expr) => Thunk): Finder {
  const chain = chainOf(leaf)
  const open = iteratorAt(chain, index, scope)
  if (open) {
    const node = open.node
    return { find: () => node.v, alwaysFound: true }
  }
  const coords = index.map(coord)
  if (chain.length === 1) {
    const c = coords[0]!
    if (leaf.start) return { find: () => findNode(leaf, 0, c()), alwaysFound: false }
    const n = leaf.count
    const find = (): number => {
      const x = c()
      return x >= 0 && x < n ? x : -1
    }
    return { find, alwaysFound: false }
  }
  if (!chain.every(isUnique))
    return {
      find: () =>
        findPath(
          chain,
          coords.map((c) => c()),
        ),
      alwaysFound: false,
    }
  const find = (): number => {
    let q = 0
    for (let k = 0; k < chain.length && q >= 0; k++) q = findNode(chain[k]!, q, coords[k]!())
    return q
  }
  return { find, alwaysFound: false }
}

/** The address of an element, or −1 if it does not exist. @param coord compiles an index that has to be searched for */
export function compileAddress(t: Tensor, access: Load, scope: Scope, coord: (e: Expr) => Thunk): Thunk {
  invariant(
    access.index.length === t.buffer.axes.length,
    `${t.buffer.name} takes ${t.buffer.axes.length} indices`,
  )
  const finders = t.leaves.map((leaf, k) =>
    finder(
      leaf,
      t.dims[k]!.map((d) => access.index[d]!),
      scope,
      coord,
    ),
  )
  const counts = t.leaves.map((l) => l.count)
  const find = finders.map((f) => f.find)
  const [f0, f1] = find
  const [, n1 = 0] = counts
  if (!f0) return () => 0
  if (!f1) return f0
  if (find.length === 2) {
    if (finders.every((f) => f.alwaysFound)) return () => f0() * n1 + f1()
    return () => {
      const p = f0()
      if (p < 0) return -1
      const q = f1()
      return q < 0 ? -1 : p * n1 + q
    }
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

export function tensorOf(ctx: Context, name: string): Tensor {
  const t = ctx.tensors.get(name)
  invariant(t, `no buffer ${name}`)
  return t
}
