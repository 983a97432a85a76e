/**
 * Axes: how coordinates are stored. An axis is a level of a tree; a root has no parent, a child has one
 * segment of coordinates per position of its parent.
 *
 * | kind            | arrays            | positions under one parent position p | coordinate at position q      |
 * |-----------------|-------------------|----------------------------------------|-------------------------------|
 * | dense_fixed     | none              | extent                                 | q - p·extent                  |
 * | dense_variable  | indptr            | indptr[p+1] - indptr[p]                | q - indptr[p]                 |
 * | sparse_fixed    | indices           | width                                  | indices[q]; `extent` = padding |
 * | sparse_variable | indptr + indices  | indptr[p+1] - indptr[p]                | indices[q]                    |
 * | bitmap          | indptr + mask     | bits set in the mask of p              | which bit                     |
 *
 * (SparseTIR, ASPLOS 2023, section 3.1; level properties as in Chou et al., OOPSLA 2018.)
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'

interface AxisBase {
  readonly name: string
  readonly span?: Span | undefined
}

/** Coordinates 0 … extent-1, all present: of a root once, of a child under every position of its parent. */
export interface DenseFixed extends AxisBase {
  readonly kind: 'dense_fixed'
  readonly parent: string | null
  readonly extent: Expr
}

/** Ragged: coordinates 0 … length(p)-1 under parent position p; `extent` bounds the lengths. */
export interface DenseVariable extends AxisBase {
  readonly kind: 'dense_variable'
  readonly parent: string
  readonly extent: Expr
}

/** Exactly `width` positions under each parent position; a position that holds nothing has the coordinate `extent` and comes last. */
export interface SparseFixed extends AxisBase {
  readonly kind: 'sparse_fixed'
  readonly parent: string
  readonly extent: Expr
  readonly width: Expr
  readonly ordered: boolean
  readonly unique: boolean
  /**
   * Coordinate of positions that hold nothing, in the place of `extent`; within the extent, so that they are visited
   * as positions with the fill value. Of `ordered` and `unique` they are no part: they come last, and may repeat.
   */
  readonly padding?: Expr | undefined
  /** Every position holds something: claimed by the format's text, and checked of all arrays. */
  readonly compact?: boolean | undefined
}

/** A compressed level. Without a parent it is one segment (its indptr is `[0, n]`). */
export interface SparseVariable extends AxisBase {
  readonly kind: 'sparse_variable'
  readonly parent: string | null
  readonly extent: Expr
  readonly ordered: boolean
  readonly unique: boolean
}

/** Words of a mask are counted one by one. */
export const MAX_BITMAP = 1024

/**
 * Coordinates under a parent position as bits of a mask, `ceildiv(extent, 32)` words each, lowest bit first; the
 * positions that exist are packed. Ordered and unique; `extent` is a constant up to `MAX_BITMAP`.
 */
export interface Bitmap extends AxisBase {
  readonly kind: 'bitmap'
  readonly parent: string
  readonly extent: Expr
}

/**
 * One loop over all positions of the last member; `members` is a parent → child chain from a root. An iterator
 * over it has no coordinate of its own: the members' names stand for theirs.
 */
export interface FusedAxis extends AxisBase {
  readonly kind: 'fused'
  readonly members: readonly string[]
}

/** `base`, entered by the *coordinate* of `parent` instead of by a position of its own parent (two-hop structures). */
export interface AttachedAxis extends AxisBase {
  readonly kind: 'attached'
  readonly base: string
  readonly parent: string
}

/** Positions 0 … extent-1 of the root `list`; the coordinate is `buffer[position]`, a coordinate of `base`. */
export interface GatheredAxis extends AxisBase {
  readonly kind: 'gathered'
  readonly base: string
  readonly buffer: string
}

/** Axes that own storage. */
export type StoredAxis = DenseFixed | DenseVariable | SparseFixed | SparseVariable | Bitmap
/** Axes that are views of others and can be iterated, not stored. */
export type DerivedAxis = FusedAxis | AttachedAxis | GatheredAxis
export type Axis = StoredAxis | DerivedAxis

export const isStored = (a: Axis): a is StoredAxis =>
  a.kind !== 'fused' && a.kind !== 'attached' && a.kind !== 'gathered'
export const parentOf = (a: Axis): string | null =>
  a.kind === 'fused' || a.kind === 'gathered' ? null : a.parent

/** The names from the root down to a stored axis. */
export function chainTo(axes: ReadonlyMap<string, Axis>, name: string): readonly string[] {
  const axis = axes.get(name)
  const parent = axis ? parentOf(axis) : null
  return parent === null ? [name] : [...chainTo(axes, parent), name]
}

/** Whether the axis and all above it hold every coordinate: its positions need no arrays. */
export function isDenseChain(axes: ReadonlyMap<string, Axis>, name: string): boolean {
  return chainTo(axes, name).every((a) => axes.get(a)?.kind === 'dense_fixed')
}
export const isDenseRoot = (a: Axis): boolean => a.kind === 'dense_fixed' && a.parent === null
export const hasIndptr = (a: Axis): a is DenseVariable | SparseVariable | Bitmap =>
  a.kind === 'dense_variable' || a.kind === 'sparse_variable' || a.kind === 'bitmap'
export const hasIndices = (a: Axis): a is SparseFixed | SparseVariable =>
  a.kind === 'sparse_fixed' || a.kind === 'sparse_variable'

/** Whether positions that hold nothing have a coordinate that others may have. */
export const isPadded = (a: Axis): boolean => a.kind === 'sparse_fixed' && a.padding !== undefined
/** Whether a position may have no coordinate. */
export const hasHoles = (a: Axis): boolean =>
  a.kind === 'sparse_fixed' && a.padding === undefined && a.compact !== true
/** Whether the axis is declared so that entries of one coordinate stay apart. */
export const isNonunique = (a: Axis): boolean => 'unique' in a && !a.unique

/** Whether a loop over a segment can meet a coordinate twice. */
export const repeats = (a: Axis): boolean => isNonunique(a) || isPadded(a)

/** Names of the arrays an axis owns, as buffers of Stages II and III and as keys of bound arrays. */
export const indptrOf = (axis: string): string => `${axis}_indptr`
export const indicesOf = (axis: string): string => `${axis}_indices`
export const maskOf = (axis: string): string => `${axis}_mask`
/** Name of the derived size parameter that counts all positions of a variable axis. */
export const countOf = (axis: string): string => `${axis}_count`
/** All of these: an axis takes them, whichever it has. */
export const ownedNames = (axis: string): string[] =>
  [indptrOf, indicesOf, maskOf, countOf].map((of) => of(axis))
/** What an axis takes: its own name, and those. */
export const namesOfAxis = (axis: string): string[] => [axis, ...ownedNames(axis)]
