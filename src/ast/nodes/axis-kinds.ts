/**
 * The kinds of axes, each declared once. Nodes, parsing, printing and the storage of levels follow from the
 * declaration.
 */
import type { Ident, Node } from './nodes-base.ts'
import type { Element, Expr } from './nodes-exprs.ts'

/** Values of operands by kind: a parent's name (`root?`: optional), a number, a name, or all remaining names. */
interface Operands {
  readonly parent: Element
  readonly 'root?': Element | null
  readonly size: Expr
  readonly axis: Ident
  readonly axes: readonly Ident[]
  readonly buffer: Ident
}
export type OperandKind = keyof Operands

/** Index arrays of levels, in the order in which they are listed. Their names are `AXIS_indptr` and so on. */
export const LEVEL_ARRAYS = ['indptr', 'indices', 'mask', 'starts'] as const
export type LevelArray = (typeof LEVEL_ARRAYS)[number]

/** Segments also contain absent coordinates between those of elements, by what levels store. */
export const STORES_GAPS = { all: false, prefix: true, interval: true, elements: false } as const

/** The operand that is the number of positions under one parent position; `null` if the number differs. */
export const SEGMENT_SIZES = { extent: 'extent', width: 'width', indptr: null } as const

/**
 * Properties of a level format (Chou et al., OOPSLA 2018). `levels/` defines the functions of each format; all other
 * modules depend on these properties only.
 */
export interface LevelProperties {
  /**
   * Number of positions under one parent position p: the extent; `width`, equal for all; or `indptr[p+1] - indptr[p]`.
   * Positions under successive parent positions are contiguous.
   */
  readonly positions: keyof typeof SEGMENT_SIZES
  /**
   * Coordinates of a segment, given those of its elements: all up to the extent; 0 up to the largest; the smallest up
   * to the largest; or the elements' own.
   */
  readonly stores: keyof typeof STORES_GAPS
  readonly arrays: readonly LevelArray[]
  /** Each parent position has exactly one position. */
  readonly branchless?: true
  /** The extent is a constant, and at most this. */
  readonly maxExtent?: number
}

interface AxisKind {
  /** The syntax, for messages. */
  readonly form: string
  /** Fields of the node, in source order. */
  readonly takes: Readonly<Record<string, OperandKind>>
  /** Storage of the level; absent for views of other axes, which own no storage. */
  readonly level?: LevelProperties
  /** The modifiers `unordered` and `nonunique` are allowed. */
  readonly sparse?: true
}

export const AXES = {
  /** Dense: coordinates 0 … extent-1, all present, once for a root or under every position of its parent. */
  dense_fixed: {
    form: 'dense_fixed(extent)` or, under a parent, `dense_fixed(parent, extent)',
    takes: { parent: 'root?', extent: 'size' },
    level: { positions: 'extent', stores: 'all', arrays: [] },
  },
  /** Ragged: coordinates 0 … length(p)-1 under parent position p; `extent` bounds the lengths. */
  dense_variable: {
    form: 'dense_variable(parent, max)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'indptr', stores: 'prefix', arrays: ['indptr'] },
  },
  /** Consecutive coordinates under parent position p, from `starts[p]` on; the number of positions is stored. */
  run: {
    form: 'run(parent, extent)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'indptr', stores: 'interval', arrays: ['indptr', 'starts'] },
  },
  /** Exactly `width` positions under each parent position; empty ones come last and store the coordinate `extent`. */
  sparse_fixed: {
    form: 'sparse_fixed(parent, extent, width)',
    takes: { parent: 'parent', extent: 'size', width: 'size' },
    level: { positions: 'width', stores: 'elements', arrays: ['indices'] },
    sparse: true,
  },
  /**
   * One coordinate under each parent position. So a parent with indices has a position for each element, and repeats its
   * coordinates: COO is a `singleton` under a `sparse_variable`.
   */
  singleton: {
    form: 'singleton(parent, extent)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'width', stores: 'elements', arrays: ['indices'], branchless: true },
  },
  /** A compressed level. Without a parent it is one segment (its indptr is `[0, n]`). */
  sparse_variable: {
    form: 'sparse_variable(parent, extent)` or, as a root, `sparse_variable(extent)',
    takes: { parent: 'root?', extent: 'size' },
    level: { positions: 'indptr', stores: 'elements', arrays: ['indptr', 'indices'] },
    sparse: true,
  },
  /**
   * Coordinates under a parent position as bits of a mask of `ceildiv(extent, 32)` words, lowest bit first; positions
   * exist for set bits only and are contiguous. Ordered and unique. Masks have at most 1024 bits, because loops count
   * their words one by one.
   */
  bitmap: {
    form: 'bitmap(parent, extent)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'indptr', stores: 'elements', arrays: ['indptr', 'mask'], maxExtent: 1024 },
  },
  /**
   * One loop over all positions of the last member. `members`, at least two, form a parent → child chain from a root.
   * An iterator over it has no coordinate of its own; the members' names stand for their coordinates.
   */
  fused: { form: 'fused(root, child, …)', takes: { members: 'axes' } },
  /**
   * `base`, indexed by the *coordinate* of `parent` instead of by a position of its own parent (two-hop structures).
   */
  attached: { form: 'attached(base, parent)', takes: { base: 'axis', parent: 'axis' } },
  /** Positions 0 … extent-1 of the root `list`; the coordinate is `buffer[position]`, a coordinate of `base`. */
  gathered: { form: 'gathered(base, L)', takes: { base: 'axis', buffer: 'buffer' } },
} as const satisfies Readonly<Record<string, AxisKind>>

export type AxisWord = keyof typeof AXES
/** Axis kinds with a given property, of the level or of the declaration. */
type KindsWith<P> = { [K in AxisWord]: (typeof AXES)[K] extends P ? K : never }[AxisWord]
export type LevelKind<P = unknown> = KindsWith<{ readonly level: P }>
/** Kinds of levels that own an array. */
export type KindOwning<A extends LevelArray> = {
  [K in LevelKind]: A extends (typeof AXES)[K]['level']['arrays'][number] ? K : never
}[LevelKind]
export type SparseKind = KindsWith<{ readonly sparse: true }>
export type ViewKind = Exclude<AxisWord, LevelKind>

/** The properties of levels of a kind; `undefined` for views. */
export const levelProperties = (kind: AxisWord): LevelProperties | undefined => {
  const declared: AxisKind = AXES[kind]
  return declared.level
}

export interface Flags {
  readonly ordered: boolean
  readonly unique: boolean
}

export type AxisDefOf<K extends AxisWord> = Node & { readonly kind: K } & {
  readonly [F in keyof (typeof AXES)[K]['takes']]: Operands[(typeof AXES)[K]['takes'][F] & OperandKind]
} & (K extends SparseKind ? Flags : unknown)
export type AxisDef = { readonly [K in AxisWord]: AxisDefOf<K> }[AxisWord]

type Operand = {
  readonly [K in OperandKind]: { readonly field: string; readonly kind: K; readonly value: Operands[K] }
}[OperandKind]

/** The operands of a definition, in source order. */
export const operandsOf = (def: AxisDef): readonly Operand[] =>
  Object.entries(AXES[def.kind].takes).map(
    ([field, kind]) => ({ field, kind, value: def[field as keyof AxisDef] }) as unknown as Operand,
  )
