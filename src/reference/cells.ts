/** Names while a body is turned into closures: cells that hold values, and the iterators that are open. */
import { InternalError, invariant } from '../ast/diagnostic.ts'
import type { Axis } from '../ir/axis.ts'
import type { Expr } from '../ir/expr.ts'
import type { Monoid } from '../ir/monoid.ts'
import type { Level } from './axis-trees.ts'
import type { Tensor } from './reference-buffers.ts'

/** An expression as a closure. */
export type Thunk = () => number

/** A mutable number; closures hold on to it. */
export interface Cell {
  v: number
  /** The error bound of `v` (`error.ts`), where it may have one. */
  error?: number
}

/** An iterator that is running: its coordinate, and the node where it stands. */
export interface Open {
  /** The name that stands for its coordinate. */
  readonly name: string
  /** The axis as declared (an attached axis, say) and the stored axis whose nodes it visits. */
  readonly axis: string
  readonly level: Level | null
  readonly coord: Cell
  readonly node: Cell
  /** What entered the segment: by its node, or by its coordinate if `attached`. */
  readonly parent: Open | null
  readonly attached: boolean
}

export interface Scope {
  readonly cells: ReadonlyMap<string, Cell>
  /** Innermost last. */
  readonly open: readonly Open[]
}

/** Told what a declared reducer combines into an element of the first target's array, as it comes. */
export type OnReduce = (reducer: Monoid, buffer: string, element: number, operand: readonly number[]) => void

export interface Context {
  readonly axes: ReadonlyMap<string, Axis>
  readonly levels: ReadonlyMap<string, Level>
  readonly tensors: ReadonlyMap<string, Tensor>
  /** How many conditions around are undecided: what would be written now is, too. */
  readonly doubt: Cell
  /** How many coordinates may still be visited; without it, all. */
  readonly visits?: Cell
  /** As of `RefOptions`. */
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

export const withOpen = (scope: Scope, open: Open): Scope => ({
  cells: new Map(scope.cells).set(open.name, open.coord),
  open: [...scope.open, open],
})

/** The innermost iterator over an axis: by the name declared, or by the stored axis it visits. */
export function innermost(scope: Scope, axis: string): Open {
  const open = scope.open.findLast((o) => o.axis === axis || o.level?.axis.name === axis)
  invariant(open, `axis ${axis} is iterated outside its parent`)
  return open
}

/** The iterator that a bare index names. */
export function openOf(scope: Scope, e: Expr): Open | undefined {
  if (e.kind !== 'var') return undefined
  const open = scope.open.findLast((o) => o.name === e.name)
  return open && scope.cells.get(e.name) === open.coord ? open : undefined
}
