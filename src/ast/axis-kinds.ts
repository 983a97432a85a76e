/** The kinds of axes, each declared once: nodes, parsing, printing and what maps over definitions follow. */
import type { Ident, Node } from './nodes-base.ts'
import type { Element, Expr } from './nodes-exprs.ts'

/** What an operand is: a name that a parent has (`root?`: or none), a number, a name, or all names that are left. */
interface Operands {
  readonly parent: Element
  readonly 'root?': Element | null
  readonly size: Expr
  readonly axis: Ident
  readonly axes: readonly Ident[]
}
type OperandKind = keyof Operands

interface AxisKind {
  /** How it is written. */
  readonly form: string
  /** Fields of the node, in the order of its text. */
  readonly takes: Readonly<Record<string, OperandKind>>
  /** It may be `unordered` and `nonunique`. */
  readonly sparse?: true
}

export const AXES = {
  dense_fixed: {
    form: 'dense_fixed(extent)` or, under a parent, `dense_fixed(parent, extent)',
    takes: { parent: 'root?', extent: 'size' },
  },
  /** `extent` bounds the lengths. */
  dense_variable: { form: 'dense_variable(parent, max)', takes: { parent: 'parent', extent: 'size' } },
  sparse_fixed: {
    form: 'sparse_fixed(parent, extent, width)',
    takes: { parent: 'parent', extent: 'size', width: 'size' },
    sparse: true,
  },
  sparse_variable: {
    form: 'sparse_variable(parent, extent)` or, as a root, `sparse_variable(extent)',
    takes: { parent: 'root?', extent: 'size' },
    sparse: true,
  },
  bitmap: { form: 'bitmap(parent, extent)', takes: { parent: 'parent', extent: 'size' } },
  /** Two members at least. */
  fused: { form: 'fused(root, child, …)', takes: { members: 'axes' } },
  attached: { form: 'attached(base, parent)', takes: { base: 'axis', parent: 'axis' } },
  gathered: { form: 'gathered(base, L)', takes: { base: 'axis', buffer: 'axis' } },
} as const satisfies Readonly<Record<string, AxisKind>>

export type AxisWord = keyof typeof AXES

/** What modifiers say of a sparse axis. */
export interface Flags {
  readonly ordered: boolean
  readonly unique: boolean
}

/** The node of a kind. */
export type AxisDefOf<K extends AxisWord> = Node & { readonly kind: K } & {
  readonly [F in keyof (typeof AXES)[K]['takes']]: Operands[(typeof AXES)[K]['takes'][F] & OperandKind]
} & ((typeof AXES)[K] extends { readonly sparse: true } ? Flags : unknown)
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
