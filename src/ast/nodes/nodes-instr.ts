/** Memories and instructions that a program declares (`nodes.ts` has the rest of the AST). */
import type { Ident, Item, Node, TypeName } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { Iterate } from './nodes-kernels.ts'

/** A parameter of a memory or an instruction: an integer `n`, or `t: f16 or bf16`, one of these types. */
export interface TileParam extends Node {
  readonly name: Ident
  readonly types: readonly TypeName[] | null
}
/** `tile(f16, 64)`: a memory or an instruction by name, with integers and type names as arguments. */
export interface Instance extends Node {
  readonly name: Ident
  readonly args: readonly Expr[]
}
/** `require n % 8 == 0`: a constraint on parameters. */
export interface Limit extends Item {
  readonly kind: 'limit'
  readonly cond: Expr
}
/** `examples (f16, 64), (bf16, 256)`: arguments for which the declaration is checked, and an instruction tested. */
export interface Examples extends Item {
  readonly kind: 'examples'
  readonly of: readonly (readonly Expr[])[]
}

/** `memory name(n): f32[16, n] in register of 32 threads replicated aligned 16 { element …, address … or texts }`. */
export interface Memory extends Item {
  readonly kind: 'memory'
  readonly name: Ident
  readonly params: readonly TileParam[]
  /** A scalar type, or the name of a type parameter. */
  readonly type: Ident
  readonly shape: readonly Expr[]
  readonly scope: Ident
  readonly threads: Expr | null
  /** Several threads hold the same element. */
  readonly replicated: boolean
  /** Alignment in bytes. */
  readonly aligned: Expr | null
  /** Elaboration checks that the items required by the scope are present. */
  readonly items: readonly MemoryItem[]
}
export type MemoryItem = ElementMap | AddressMap | MemoryText | Limit | Examples
/** `element (lane, slot) -> (e, …)`: the coordinates of the element in a thread's slot. */
export interface ElementMap extends Item {
  readonly kind: 'element'
  readonly lane: Ident
  readonly slot: Ident
  readonly to: readonly Expr[]
}
/** `address (i, j) -> e`: the address of a tile's element. */
export interface AddressMap extends Item {
  readonly kind: 'address'
  readonly from: readonly Ident[]
  readonly to: Expr
}

/**
 * `wgsl needs … \`type\``, `fill wgsl \`value\``: the type and initial value on a target of a tile whose elements are
 * opaque.
 */
export interface MemoryText extends Item {
  readonly kind: 'text'
  readonly what: 'type' | 'fill'
  readonly target: Ident
  readonly needs: readonly Need[]
  readonly code: Ident
}
/** `f16`, an extension of the target's language, or `lanes(32)`, a property of the device. */
export interface Need extends Node {
  readonly name: Ident
  readonly args: readonly string[]
}

/** `instr name(params)(operands) by 32 threads asynchronous { iterate … cuda `…` }`. */
export interface Instr extends Item {
  readonly kind: 'instr'
  readonly name: Ident
  readonly params: readonly TileParam[]
  readonly operands: readonly Operand[]
  readonly threads: Expr | null
  readonly words: readonly Ident[]
  readonly items: readonly InstrItem[]
}
/**
 * `C: f32[16, 8] in tiles aligned 16`; the memory is `global`, `shared`, or the name of a declared one. Alternatives
 * are allowed: `in tiles or rows(8)`.
 */
export interface Operand extends Node {
  readonly name: Ident
  /** A scalar type, or the name of a type parameter. */
  readonly type: Ident
  readonly shape: readonly Expr[]
  readonly memories: readonly Instance[]
  /** Bits of each element; elements are packed fields of words. */
  readonly packed: Expr | null
  readonly aligned: Expr | null
  /** Size of the aligned groups within which elements are strictly increasing. */
  readonly ascending: Expr | null
  readonly mapped: Mapped | null
  /** Read through the async proxy, or written with the fence that allows this. */
  readonly fenced: boolean
}
/** `mapped swizzle 128`: the operand is a box of a matrix, for which the launch passes a descriptor to the device. */
export interface Mapped {
  /** In bytes. */
  readonly swizzle: Expr | null
}
export type InstrItem = Iterate | InstrText | Limit | Examples | Precision
/** `precision 10 bits`: fraction bits kept of the factors of products. */
export interface Precision extends Item {
  readonly kind: 'precision'
  readonly bits: Expr
}
/** Purposes of an instruction's texts other than executing it. */
export const INSTR_TEXTS = [
  'commit',
  'prepare',
  'publish',
  'expect',
  'wait',
  'wait_read',
  'multicast',
  'release',
  'filled',
] as const

/** `cuda from 9.0 \`text\``. */
export interface InstrText extends Item {
  readonly kind: 'text'
  readonly what: 'run' | (typeof INSTR_TEXTS)[number]
  readonly target: Ident
  /** The least version of the target's device. */
  readonly from: number | null
  readonly needs: readonly Need[]
  /** The code between the backticks, with its span. */
  readonly code: Ident
}
