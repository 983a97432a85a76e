/**
 * Axes: the storage of coordinates. An axis is a level of a tree; a root has no parent, a child has one segment of
 * coordinates per position of its parent. `ast/nodes/axis-kinds.ts` declares the kinds; consumers use the properties of their
 * levels (Chou et al., OOPSLA 2018; SparseTIR, ASPLOS 2023, section 3.1).
 */

import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import {
  AXES,
  type AxisWord,
  type Flags,
  type KindOwning,
  LEVEL_ARRAYS,
  type LevelArray,
  type LevelKind,
  type LevelProperties,
  levelProperties,
  type OperandKind,
  SEGMENT_SIZES,
  type SparseKind,
  STORES_GAPS,
  type ViewKind,
} from '../../ast/nodes/axis-kinds.ts'
import type { Expr } from '../expressions/expr.ts'
import { freeVars } from '../expressions/expr-tree.ts'

interface AxisBase {
  readonly name: string
  /** The declared axis that this one is a per-tensor copy of; diagnostics print that name. */
  readonly copyOf?: string | undefined
  readonly span?: Span | undefined
}

/** Operands as axes and buffers by name, and expressions over sizes. */
interface Operands extends Record<OperandKind, unknown> {
  readonly parent: string
  readonly 'root?': string | null
  readonly size: Expr
  readonly axis: string
  readonly axes: readonly string[]
  readonly buffer: string
}

/** Fields of levels of fixed width. */
interface Padding {
  /** Positions under each parent position. */
  readonly width: Expr
  /**
   * Coordinate stored at empty positions, instead of `extent`. It is within the extent, so loops visit these positions
   * and read the fill value. They come last, may repeat, and are exempt from `ordered` and `unique`. `last`: they
   * repeat the coordinate of the segment's last element, which must exist. Padding does not extend the set of visited
   * coordinates.
   */
  readonly padding?: Expr | 'last' | undefined
  /** No position is empty: claimed by the format's declaration and checked for every bound array. */
  readonly compact?: boolean | undefined
}
type WidthKind = LevelKind<{ readonly positions: 'width' }>
/** Fields of dense levels. */
interface CountedLoop {
  /**
   * End of the loops over this level: a count computed by the kernel, at most the extent, over the coordinates of the
   * enclosing axes. Only loops use it; statements carry an equivalent condition.
   */
  readonly count?: Expr | undefined
  /**
   * Name of the array of offsets that the kernel fills: the first position under each parent position, then the total.
   * Positions are contiguous, as on an axis with an indptr. Only loops use it.
   */
  readonly offsets?: string | undefined
  /** Capacity: the total number of contiguous positions, over sizes. */
  readonly capacity?: Expr | undefined
}
type DenseKind = LevelKind<{ readonly positions: 'extent' }>
/** Fields of levels with index arrays. */
interface Packing {
  /**
   * Not `unique` only because each position has its own child position (a branchless axis): the declaration does not
   * keep elements with equal coordinates apart.
   */
  readonly perChild?: boolean | undefined
  /**
   * Bits of each coordinate. Coordinates are fields of 32-bit words, the first in the lowest bits. Constant in a
   * kernel.
   */
  readonly packed?: Expr | undefined
}
type IndexedKind = KindOwning<'indices'>

type AxisOf<K extends AxisWord> = AxisBase & { readonly kind: K } & {
  readonly [F in keyof (typeof AXES)[K]['takes']]: Operands[(typeof AXES)[K]['takes'][F] & OperandKind]
} & (K extends SparseKind | IndexedKind ? Flags : unknown) &
  (K extends WidthKind ? Padding : unknown) &
  (K extends DenseKind ? CountedLoop : unknown) &
  (K extends IndexedKind ? Packing : unknown)
type AxesOf<K extends AxisWord> = { readonly [X in K]: AxisOf<X> }[K]

/** Axes that own storage. */
export type StoredAxis = AxesOf<LevelKind>
/** Axes that are views of other axes: they can be iterated, but are not stored. */
type DerivedAxis = AxesOf<ViewKind>
export type Axis = StoredAxis | DerivedAxis

export type DenseAxis = AxesOf<LevelKind<{ readonly positions: 'extent' }>>
export type PaddedAxis = AxesOf<WidthKind>
export type IndexedAxis = AxesOf<IndexedKind>
export type SegmentedAxis = AxesOf<KindOwning<'indptr'>>
export type AxisOfKind<K extends LevelKind> = Extract<StoredAxis, { readonly kind: K }>
export type FusedAxis = AxisOf<'fused'>
export type AttachedAxis = AxisOf<'attached'>
export type GatheredAxis = AxisOf<'gathered'>

const propertiesOf = (a: Axis | null | undefined): LevelProperties | undefined =>
  a ? levelProperties(a.kind) : undefined
export const arraysOfAxis = (a: Axis): readonly LevelArray[] => propertiesOf(a)?.arrays ?? []
const owns = (a: Axis | null | undefined, array: LevelArray): boolean =>
  !!a && arraysOfAxis(a).includes(array)

export const isStored = (a: Axis): a is StoredAxis => propertiesOf(a) !== undefined
/** True if every coordinate is present: positions are computed arithmetically and need no arrays. */
export const isDense = (a: Axis | null | undefined): a is DenseAxis => propertiesOf(a)?.stores === 'all'
/** True if every parent position has the same number of positions, padding included. */
export const hasWidth = (a: Axis | null | undefined): a is PaddedAxis =>
  propertiesOf(a)?.positions === 'width'
export const hasIndptr = (a: Axis | null | undefined): a is SegmentedAxis => owns(a, 'indptr')
export const hasIndices = (a: Axis | null | undefined): a is IndexedAxis => owns(a, 'indices')
/** True if the coordinates of elements are stored, and no others. */
export const isSparse = (a: Axis | null | undefined): boolean => propertiesOf(a)?.stores === 'elements'
/** True if segments also contain absent coordinates between those of elements. */
export function storesGaps(a: Axis | null | undefined): boolean {
  const stores = propertiesOf(a)?.stores
  return stores !== undefined && STORES_GAPS[stores]
}
/** True for segments that contain all coordinates up to a stored length. */
export const isRagged = (a: Axis | null | undefined): boolean => propertiesOf(a)?.stores === 'prefix'

/** True if each parent position has exactly one position. */
export const isBranchless = (a: Axis): boolean => propertiesOf(a)?.branchless === true

/** Axes whose coordinates determine the end of loops over a counted axis; empty for other axes. */
export const countedBy = (a: Axis | null | undefined): readonly string[] =>
  isDense(a) && a.count ? [...freeVars(a.count)] : []

export const isFused = (a: Axis | null | undefined): a is FusedAxis => a?.kind === 'fused'
export const isAttached = (a: Axis | null | undefined): a is AttachedAxis => a?.kind === 'attached'
export const isGathered = (a: Axis | null | undefined): a is GatheredAxis => a?.kind === 'gathered'

export const sourceName = ({ name, copyOf }: Pick<AxisBase, 'name' | 'copyOf'>): string => copyOf ?? name

export const denseAxis = (name: string, extent: Expr, parent: string | null = null): DenseAxis => ({
  kind: 'dense_fixed',
  name,
  parent,
  extent,
})
/** An axis whose segments hold the coordinates 0 … length − 1; each length is stored and at most `extent`. */
export const raggedAxis = (name: string, parent: string, extent: Expr): StoredAxis => ({
  kind: 'dense_variable',
  name,
  parent,
  extent,
})
/** A compressed level (CSR columns): ordered, unique. */
export const compressedAxis = (name: string, parent: string | null, extent: Expr): StoredAxis => ({
  kind: 'sparse_variable',
  name,
  parent,
  extent,
  ordered: true,
  unique: true,
})
/** A level that stores `width` coordinates per parent position: ordered, unique and compact. */
export const listAxis = (name: string, parent: string, extent: Expr, width: Expr): PaddedAxis => ({
  kind: 'sparse_fixed',
  name,
  parent,
  extent,
  width,
  ordered: true,
  unique: true,
  compact: true,
})
export const fusedAxis = (name: string, members: readonly string[]): FusedAxis => ({
  kind: 'fused',
  name,
  members,
})
export const attachedAxis = (name: string, base: string, parent: string): AttachedAxis => ({
  kind: 'attached',
  name,
  base,
  parent,
})

export const parentOf = (a: Axis): string | null => ('parent' in a ? a.parent : null)
/** The operands of an axis as written: field name, kind and value. */
export const operandsOfAxis = (a: Axis): readonly (readonly [string, OperandKind, unknown])[] =>
  Object.entries<OperandKind>(AXES[a.kind].takes).map(([field, operandKind]) => [
    field,
    operandKind,
    a[field as keyof Axis],
  ])

/** The number of positions under each parent position if it is uniform, otherwise `null`. */
export function segmentSize(a: StoredAxis): Expr | null {
  const { positions }: LevelProperties = AXES[a.kind].level
  const operand = SEGMENT_SIZES[positions]
  return operand === null ? null : (a as PaddedAxis)[operand]
}
export const sizesOfAxis = (a: StoredAxis): readonly Expr[] => {
  const padding = paddingOf(a)
  return [a.extent, ...(hasWidth(a) ? [a.width, ...(padding ? [padding] : [])] : [])]
}
/** The axis with its own name, its parent's name and its sizes mapped. */
export function mapAxis(a: StoredAxis, name: (axis: string) => string, size: (e: Expr) => Expr): StoredAxis {
  const operands = operandsOfAxis(a).map(([field, operandKind, x]) => [
    field,
    operandKind === 'size' ? size(x as Expr) : x === null ? null : name(x as string),
  ])
  const paddingExpr = paddingOf(a)
  const padding = paddingExpr ? { padding: size(paddingExpr) } : {}
  const packed = hasIndices(a) && a.packed ? { packed: size(a.packed) } : {}
  return { ...a, name: name(a.name), ...Object.fromEntries(operands), ...padding, ...packed }
}

/** True if fields of this many bits do not cross word boundaries. */
export const isFieldWidth = (bits: number): boolean => [1, 2, 4, 8, 16].includes(bits)
/** True if coordinates are packed into a width that is not a valid field width. */
export const isInvalidPacking = ({ packed: e }: IndexedAxis): boolean =>
  e !== undefined && !(e.kind === 'const' && isFieldWidth(e.value))
export const FIELD_WIDTHS = '1, 2, 4, 8 or 16 bits'
/** Bits of each element of an axis' index array: 32 unless packed. */
export const indexBits = (a: Axis): number =>
  hasIndices(a) && a.packed?.kind === 'const' ? a.packed.value : 32
/** The number of distinct values in the index array: the coordinates, and one code for empty positions. */
export const codesOf = (a: Axis, extent: number): number => extent + (hasHoles(a) ? 1 : 0)

/** The largest extent of an axis whose kind requires a constant one; otherwise undefined. */
export const maxExtentOf = (a: Axis): number | undefined => propertiesOf(a)?.maxExtent
/** True if the extent is not a constant within the limit of the axis' kind. */
export const isInvalidExtent = (a: StoredAxis): boolean => {
  const limit = maxExtentOf(a)
  return limit !== undefined && !(a.extent.kind === 'const' && a.extent.value <= limit)
}

/** The names from the root down to a stored axis. */
export function chainTo(axes: ReadonlyMap<string, Axis>, name: string): readonly string[] {
  const axis = axes.get(name)
  const parent = axis ? parentOf(axis) : null
  return parent === null ? [name] : [...chainTo(axes, parent), name]
}

/** True if the axis and all its ancestors are dense, so that positions need no arrays. */
export function isDenseChain(axes: ReadonlyMap<string, Axis>, name: string): boolean {
  return chainTo(axes, name).every((a) => isDense(axes.get(a)))
}
export const isDenseRoot = (a: Axis): boolean => isDense(a) && a.parent === null

/** True if empty positions store a coordinate that elements may also have. */
export const isPadded = (a: Axis): boolean => hasWidth(a) && a.padding !== undefined
/** The coordinate that pads every segment; `null` without one. */
export const paddingOf = (a: Axis): Expr | null =>
  hasWidth(a) && a.padding && a.padding !== 'last' ? a.padding : null
/** True if empty positions repeat the coordinate of the segment's last element. */
export const padsWithLast = (a: Axis): boolean => hasWidth(a) && a.padding === 'last'
/** True if a position may be empty, that is, without a coordinate. */
export const hasHoles = (a: Axis): boolean => hasWidth(a) && a.padding === undefined && a.compact !== true
/** True if a segment may store a coordinate more than once. */
export const isNonunique = (a: Axis): boolean => 'unique' in a && !a.unique

/** True if elements with equal coordinates stay separate, as in the source. */
export const keepsDuplicates = (a: Axis): boolean => isNonunique(a) && !(hasIndices(a) && a.perChild)

/** True if a loop over a segment can visit a coordinate twice. */
export const repeatsCoordinates = (a: Axis): boolean => isNonunique(a) || isPadded(a)

/** Name of an array that an axis owns, as a buffer of Stages II and III and as a key of bound arrays. */
export const arrayName = (axis: string, array: LevelArray): string => `${axis}_${array}`
export const indptrOf = (axis: string): string => arrayName(axis, 'indptr')
export const indicesOf = (axis: string): string => arrayName(axis, 'indices')
/** Name of the derived size parameter that counts all positions of a variable axis. */
export const countOf = (axis: string): string => `${axis}_count`
/** Names reserved for the arrays and the count of an axis, whichever of them it has. */
export const ownedNames = (axis: string): string[] => [
  ...LEVEL_ARRAYS.map((array) => arrayName(axis, array)),
  countOf(axis),
]
/** All names that an axis reserves: its own, and those of its arrays and count. */
export const namesOfAxis = (axis: string): string[] => [axis, ...ownedNames(axis)]
