/** Names during compilation into closures: cells that hold values, and open iterators. */

import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis } from '../../ir/coordinates/axis.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import { chainOf, findNode, findPath, isUnique, type Level } from './axis-trees.ts'
import type { Tensor } from './reference-buffers.ts'

export type Thunk = () => number

/** A mutable number that closures share. */
export interface Cell {
  v: number
  /** The error bound of `v` (`error.ts`), if it may have one. */
  error?: number
}

/** An active iterator: its coordinate and its node. */
export interface OpenIterator {
  /** The name of its coordinate. */
  readonly name: string
  /** The declared axis (for example an attached axis), and the level of the stored axis that it visits. */
  readonly axis: string
  readonly level: Level | null
  readonly coord: Cell
  readonly node: Cell
  /** The iterator that determines the segment: by its node, or by its coordinate if `attached`. */
  readonly parent: OpenIterator | null
  readonly attached: boolean
}

export interface Scope {
  readonly cells: ReadonlyMap<string, Cell>
  /** Innermost last. */
  readonly open: readonly OpenIterator[]
}

/** Called with each operand that a declared reducer combines into an element of the first target's array. */
export type OnReduce = (reducer: Monoid, buffer: string, element: number, operand: readonly number[]) => void

export interface Context {
  readonly axes: ReadonlyMap<string, Axis>
  readonly levels: ReadonlyMap<string, Level>
  readonly tensors: ReadonlyMap<string, Tensor>
  /** Number of enclosing undecided conditions; writes under them are undecided. */
  readonly undecidedDepth: Cell
  /** Number of coordinates that may still be visited; unlimited if absent. */
  readonly visits?: Cell
  /** As in `RefOptions`. */
  readonly precision?: number | undefined
  readonly onReduce?: OnReduce
}

export function cellOf(scope: Scope, name: string): Cell {
  const cell = scope.cells.get(name)
  if (!cell) throw new InternalError(`the reference meets the unknown variable ${name}`)
  return cell
}

export const withCell = (scope: Scope, name: string, cell: Cell): Scope => ({
  ...scope,
  cells: new Map(scope.cells).set(name, cell),
})

export const withOpen = (scope: Scope, open: OpenIterator): Scope => ({
  cells: new Map(scope.cells).set(open.name, open.coord),
  open: [...scope.open, open],
})

/** The innermost iterator over an axis: by the declared name, or by the stored axis it visits. */
export function innermost(scope: Scope, axis: string): OpenIterator {
  const open = scope.open.findLast((o) => o.axis === axis || o.level?.axis.name === axis)
  invariant(open, `axis ${axis} is iterated outside its parent`)
  return open
}

/** The iterator denoted by an index that is a bare name. */
function openOf(scope: Scope, e: Expr): OpenIterator | undefined {
  if (e.kind !== 'var') return undefined
  const open = scope.open.findLast((o) => o.name === e.name)
  return open && scope.cells.get(e.name) === open.coord ? open : undefined
}

// Element addresses from coordinates. If every index of a tree is the open iterator of that axis, the element is at the iterators' nodes.

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
