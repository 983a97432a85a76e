/**
 * Axes: how coordinates are stored. An axis is a level of a tree; a root has no parent, a child has one
 * segment of coordinates per position of its parent. `ast/axis-kinds.ts` declares the kinds; who reads them goes by the
 * properties of their levels (Chou et al., OOPSLA 2018; SparseTIR, ASPLOS 2023, section 3.1).
 */
import {
  AXES,
  type AxisWord,
  type Flags,
  type LevelFormat,
  type LevelKind,
  levelFormat,
  type OperandKind,
  type SparseKind,
  type ViewKind,
} from '../ast/axis-kinds.ts'
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'
import { freeVars } from './expr-tree.ts'

interface AxisBase {
  readonly name: string
  /** The axis of the text that this one is a tensor's own copy of: errors say that name. */
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

/** Of levels of fixed width. */
interface Padding {
  /**
   * Coordinate of positions that hold nothing, in the place of `extent`; within the extent, so that they are visited
   * as positions with the fill value. Of `ordered` and `unique` they are no part: they come last, and may repeat.
   * `last`: that of the segment's last element, of which there is one then. No others are visited than without padding.
   */
  readonly padding?: Expr | 'last' | undefined
  /** Every position holds something: claimed by the format's text, and checked of all arrays. */
  readonly compact?: boolean | undefined
}
type WidthKind = LevelKind<{ readonly positions: 'width' }>
/** Of levels of all coordinates. */
interface Counting {
  /**
   * Where loops over it end: what the kernel has counted, at most the extent. Over the coordinates of axes that are iterated
   * around it. Only loops know: statements have a condition that says the same.
   */
  readonly counted?: Expr | undefined
  /**
   * An array that the kernel fills with where the positions under each one of the parent begin, and how many there are in all:
   * positions lie one after the other, as those of an axis with an indptr. Only loops know.
   */
  readonly offsets?: string | undefined
  /** How many positions there is room for in all, where they lie one after the other: over sizes. */
  readonly room?: Expr | undefined
}
type DenseKind = LevelKind<{ readonly positions: 'extent' }>
/** Of levels with indices. */
interface Packing {
  /** Bits of each coordinate, which is a field of a 32-bit word, the first in its lowest bits. A constant in a kernel. */
  readonly packed?: Expr | undefined
}
type IndexedKind = LevelKind<{ readonly coordinates: 'indices' }>

type AxisOf<K extends AxisWord> = AxisBase & { readonly kind: K } & {
  readonly [F in keyof (typeof AXES)[K]['takes']]: Operands[(typeof AXES)[K]['takes'][F] & OperandKind]
} & (K extends SparseKind ? Flags : unknown) &
  (K extends WidthKind ? Padding : unknown) &
  (K extends DenseKind ? Counting : unknown) &
  (K extends IndexedKind ? Packing : unknown)
type AxesOf<K extends AxisWord> = { readonly [X in K]: AxisOf<X> }[K]

/** Axes that own storage. */
export type StoredAxis = AxesOf<LevelKind>
/** Axes that are views of others and can be iterated, not stored. */
export type DerivedAxis = AxesOf<ViewKind>
export type Axis = StoredAxis | DerivedAxis

export type DenseAxis = AxesOf<LevelKind<{ readonly positions: 'extent' }>>
export type PaddedAxis = AxesOf<WidthKind>
export type IndexedAxis = AxesOf<IndexedKind>
export type SegmentedAxis = AxesOf<LevelKind<{ readonly positions: 'indptr' }>>
export type MaskedAxis = AxesOf<LevelKind<{ readonly coordinates: 'mask' }>>
export type FusedAxis = AxisOf<'fused'>
export type AttachedAxis = AxisOf<'attached'>
export type GatheredAxis = AxisOf<'gathered'>

const has = <F extends keyof LevelFormat>(
  a: Axis | null | undefined,
  field: F,
  value: LevelFormat[F],
): boolean => !!a && levelFormat(a.kind)?.[field] === value

export const isStored = (a: Axis): a is StoredAxis => levelFormat(a.kind) !== undefined
/** Every coordinate is present: positions are arithmetic, and need no arrays. */
export const isDense = (a: Axis | null | undefined): a is DenseAxis => has(a, 'positions', 'extent')
/** As many positions under each parent position, padding among them. */
export const hasWidth = (a: Axis | null | undefined): a is PaddedAxis => has(a, 'positions', 'width')
export const hasIndptr = (a: Axis | null | undefined): a is SegmentedAxis => has(a, 'positions', 'indptr')
export const hasIndices = (a: Axis | null | undefined): a is IndexedAxis => has(a, 'coordinates', 'indices')
export const hasMask = (a: Axis | null | undefined): a is MaskedAxis => has(a, 'coordinates', 'mask')
/** Coordinates are stored, one for each position. */
export const isSparse = (a: Axis | null | undefined): boolean => hasIndices(a) || hasMask(a)
/** Segments of all coordinates up to a length that is stored. */
export const isRagged = (a: Axis | null | undefined): boolean =>
  hasIndptr(a) && has(a, 'coordinates', 'implicit')

/** The axes whose coordinates say where loops over one end that are counted. */
export const endsBy = (a: Axis | null | undefined): readonly string[] =>
  isDense(a) && a.counted ? [...freeVars(a.counted)] : []

export const isFused = (a: Axis | null | undefined): a is FusedAxis => a?.kind === 'fused'
export const isAttached = (a: Axis | null | undefined): a is AttachedAxis => a?.kind === 'attached'
export const isGathered = (a: Axis | null | undefined): a is GatheredAxis => a?.kind === 'gathered'

/** What the text calls an axis. */
export const axisInText = ({ name, copyOf }: Pick<AxisBase, 'name' | 'copyOf'>): string => copyOf ?? name

export const denseAxis = (name: string, extent: Expr, parent: string | null = null): DenseAxis => ({
  kind: 'dense_fixed',
  name,
  parent,
  extent,
})
/** As many coordinates of each parent position as its segment is long, at most `extent`. */
export const raggedAxis = (name: string, parent: string, extent: Expr): StoredAxis => ({
  kind: 'dense_variable',
  name,
  parent,
  extent,
})
/** Ordered and unique. */
export const compressedAxis = (name: string, parent: string | null, extent: Expr): StoredAxis => ({
  kind: 'sparse_variable',
  name,
  parent,
  extent,
  ordered: true,
  unique: true,
})
/** As many coordinates as there are positions: ordered, unique and compact. */
export const listedAxis = (name: string, parent: string, extent: Expr, width: Expr): PaddedAxis => ({
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
/** Operands as they are written, with what they are. */
export const operandsOfAxis = (a: Axis): readonly (readonly [string, OperandKind, unknown])[] =>
  Object.entries<OperandKind>(AXES[a.kind].takes).map(([field, of]) => [field, of, a[field as keyof Axis]])

/** Positions under each parent position, where that is one number. */
export const segmentSize = (a: StoredAxis): Expr | null =>
  hasWidth(a) ? a.width : isDense(a) ? a.extent : null
/** All expressions of an axis. */
export const sizesOfAxis = (a: StoredAxis): readonly Expr[] => {
  const padding = paddingOf(a)
  return [a.extent, ...(hasWidth(a) ? [a.width, ...(padding ? [padding] : [])] : [])]
}
/** With other names of itself and its parent, and other sizes. */
export function mapAxis(a: StoredAxis, name: (axis: string) => string, size: (e: Expr) => Expr): StoredAxis {
  const operands = operandsOfAxis(a).map(([field, of, x]) => [
    field,
    of === 'size' ? size(x as Expr) : x === null ? null : name(x as string),
  ])
  const own = paddingOf(a)
  const padding = own ? { padding: size(own) } : {}
  const packed = hasIndices(a) && a.packed ? { packed: size(a.packed) } : {}
  return { ...a, name: name(a.name), ...Object.fromEntries(operands), ...padding, ...packed }
}

/** Bits of packed coordinates: fields do not cross words. */
export const isFieldWidth = (bits: number): boolean => [1, 2, 4, 8, 16].includes(bits)
/** Whether coordinates are packed into fields that are none. */
export const isPackedWrong = ({ packed: e }: IndexedAxis): boolean =>
  e !== undefined && !(e.kind === 'const' && isFieldWidth(e.value))
export const FIELD_WIDTHS = '1, 2, 4, 8 or 16 bits'
/** Bits of each element of an axis' indices. */
export const indexBits = (a: Axis): number =>
  hasIndices(a) && a.packed?.kind === 'const' ? a.packed.value : 32
/** How many different numbers its indices may be: coordinates, and one for positions that hold none. */
export const codesOf = (a: Axis, extent: number): number => extent + (hasHoles(a) ? 1 : 0)

/** Words of a mask are counted one by one. */
export const MAX_BITMAP = 1024
/** Whether the bits of a mask are as many as can be. */
export const hasMaskSize = ({ extent }: MaskedAxis): boolean =>
  extent.kind === 'const' && extent.value <= MAX_BITMAP

/** The names from the root down to a stored axis. */
export function chainTo(axes: ReadonlyMap<string, Axis>, name: string): readonly string[] {
  const axis = axes.get(name)
  const parent = axis ? parentOf(axis) : null
  return parent === null ? [name] : [...chainTo(axes, parent), name]
}

/** Whether the axis and all above it hold every coordinate: its positions need no arrays. */
export function isDenseChain(axes: ReadonlyMap<string, Axis>, name: string): boolean {
  return chainTo(axes, name).every((a) => isDense(axes.get(a)))
}
export const isDenseRoot = (a: Axis): boolean => isDense(a) && a.parent === null

/** Whether positions that hold nothing have a coordinate that others may have. */
export const isPadded = (a: Axis): boolean => hasWidth(a) && a.padding !== undefined
/** The coordinate that is the padding of all segments, if there is one. */
export const paddingOf = (a: Axis): Expr | null =>
  hasWidth(a) && a.padding && a.padding !== 'last' ? a.padding : null
/** Whether what a segment does not fill repeats the coordinate of its last element. */
export const padsWithLast = (a: Axis): boolean => hasWidth(a) && a.padding === 'last'
/** Whether a position may have no coordinate. */
export const hasHoles = (a: Axis): boolean => hasWidth(a) && a.padding === undefined && a.compact !== true
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
