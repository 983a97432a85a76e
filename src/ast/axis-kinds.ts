/** The kinds of axes, each declared once: nodes, parsing, printing, and how a level of each is stored follow. */
import type { Ident, Node } from './nodes-base.ts'
import type { Element, Expr } from './nodes-exprs.ts'

/** What an operand is: a name that a parent has (`root?`: or none), a number, a name, or all names that are left. */
interface Operands {
  readonly parent: Element
  readonly 'root?': Element | null
  readonly size: Expr
  readonly axis: Ident
  readonly axes: readonly Ident[]
  readonly buffer: Ident
}
export type OperandKind = keyof Operands

/**
 * How a level is stored, as properties of its format (Chou et al., OOPSLA 2018). Positions under one parent position p:
 * `extent`, `width` of them, or `indptr[p+1] - indptr[p]`. The coordinate at position q: `implicit`, its distance
 * from the first; `indices[q]`; or which bit is set in the `mask` of p.
 */
export type LevelFormat =
  | { readonly positions: 'extent'; readonly coordinates: 'implicit' }
  | { readonly positions: 'width'; readonly coordinates: 'indices' }
  | { readonly positions: 'indptr'; readonly coordinates: 'implicit' | 'indices' | 'mask' }

interface AxisKind {
  /** How it is written. */
  readonly form: string
  /** Fields of the node, in the order of its text. */
  readonly takes: Readonly<Record<string, OperandKind>>
  /** Of an axis that owns storage; a view of others has none. */
  readonly level?: LevelFormat
  /** It may be `unordered` and `nonunique`. */
  readonly sparse?: true
}

export const AXES = {
  /** Coordinates 0 … extent-1, all present: of a root once, of a child under every position of its parent. */
  dense_fixed: {
    form: 'dense_fixed(extent)` or, under a parent, `dense_fixed(parent, extent)',
    takes: { parent: 'root?', extent: 'size' },
    level: { positions: 'extent', coordinates: 'implicit' },
  },
  /** Ragged: coordinates 0 … length(p)-1 under parent position p; `extent` bounds the lengths. */
  dense_variable: {
    form: 'dense_variable(parent, max)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'indptr', coordinates: 'implicit' },
  },
  /** Exactly `width` positions under each parent position; one that holds nothing has the coordinate `extent` and comes last. */
  sparse_fixed: {
    form: 'sparse_fixed(parent, extent, width)',
    takes: { parent: 'parent', extent: 'size', width: 'size' },
    level: { positions: 'width', coordinates: 'indices' },
    sparse: true,
  },
  /** A compressed level. Without a parent it is one segment (its indptr is `[0, n]`). */
  sparse_variable: {
    form: 'sparse_variable(parent, extent)` or, as a root, `sparse_variable(extent)',
    takes: { parent: 'root?', extent: 'size' },
    level: { positions: 'indptr', coordinates: 'indices' },
    sparse: true,
  },
  /**
   * Coordinates under a parent position as bits of a mask, `ceildiv(extent, 32)` words each, lowest bit first; the
   * positions that exist are packed. Ordered and unique; `extent` is a constant up to `MAX_BITMAP` (`ir/axis.ts`).
   */
  bitmap: {
    form: 'bitmap(parent, extent)',
    takes: { parent: 'parent', extent: 'size' },
    level: { positions: 'indptr', coordinates: 'mask' },
  },
  /**
   * One loop over all positions of the last member; `members`, two at least, are a parent → child chain from a root. An
   * iterator over it has no coordinate of its own: the members' names stand for theirs.
   */
  fused: { form: 'fused(root, child, …)', takes: { members: 'axes' } },
  /** `base`, entered by the *coordinate* of `parent` instead of by a position of its own parent (two-hop structures). */
  attached: { form: 'attached(base, parent)', takes: { base: 'axis', parent: 'axis' } },
  /** Positions 0 … extent-1 of the root `list`; the coordinate is `buffer[position]`, a coordinate of `base`. */
  gathered: { form: 'gathered(base, L)', takes: { base: 'axis', buffer: 'buffer' } },
} as const satisfies Readonly<Record<string, AxisKind>>

export type AxisWord = keyof typeof AXES
/** Kinds with a property, of the level or their own. */
type KindsWith<P> = { [K in AxisWord]: (typeof AXES)[K] extends P ? K : never }[AxisWord]
export type LevelKind<P = unknown> = KindsWith<{ readonly level: P }>
export type SparseKind = KindsWith<{ readonly sparse: true }>
export type ViewKind = Exclude<AxisWord, LevelKind>

/** How levels of a kind are stored; `undefined`: it is a view. */
export const levelFormat = (kind: AxisWord): LevelFormat | undefined => {
  const declared: AxisKind = AXES[kind]
  return declared.level
}

/** What modifiers say of a sparse axis. */
export interface Flags {
  readonly ordered: boolean
  readonly unique: boolean
}

/** The node of a kind. */
export type AxisDefOf<K extends AxisWord> = Node & { readonly kind: K } & {
  readonly [F in keyof (typeof AXES)[K]['takes']]: Operands[(typeof AXES)[K]['takes'][F] & OperandKind]
} & (K extends SparseKind ? Flags : unknown)
export type AxisDef = { readonly [K in AxisWord]: AxisDefOf<K> }[AxisWord]

/** A field of a definition, its value as its kind says. */
type Operand = {
  readonly [K in OperandKind]: { readonly field: string; readonly kind: K; readonly value: Operands[K] }
}[OperandKind]

/** The operands of a definition, in the order of its text. */
export const operandsOf = (def: AxisDef): readonly Operand[] =>
  Object.entries(AXES[def.kind].takes).map(
    ([field, kind]) => ({ field, kind, value: def[field as keyof AxisDef] }) as unknown as Operand,
  )

/** The definition with other values of its operands. */
export const mapOperands = (def: AxisDef, f: (o: Operand) => Operand['value']): AxisDef =>
  ({ ...def, ...Object.fromEntries(operandsOf(def).map((o) => [o.field, f(o)])) }) as AxisDef
