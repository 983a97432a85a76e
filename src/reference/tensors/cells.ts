/** Names during compilation into closures: cells that hold values, and open iterators. */
import { InternalError, invariant } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis } from '../../ir/coordinates/axis.ts'
import type { Expr } from '../../ir/expressions/expr.ts'
import type { Monoid } from '../../ir/values/monoid.ts'
import type { Level } from './axis-trees.ts'
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
export function openOf(scope: Scope, e: Expr): OpenIterator | undefined {
  if (e.kind !== 'var') return undefined
  const open = scope.open.findLast((o) => o.name === e.name)
  return open && scope.cells.get(e.name) === open.coord ? open : undefined
}
