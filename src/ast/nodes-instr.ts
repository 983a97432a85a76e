/** Memories and instructions that a program declares (`nodes.ts` has the rest of the AST). */
import type { Ident, Item, Node, TypeName } from './nodes-base.ts'
import type { Expr } from './nodes-exprs.ts'
import type { Iterate } from './nodes-kernels.ts'

/** A parameter of a memory or an instruction: `n`, an integer, or `t: f16 or bf16`, one of these types. */
export interface TileParam extends Node {
  readonly name: Ident
  readonly types: readonly TypeName[] | null
}
/** `tile(f16, 64)`: a memory or an instruction by name, with its arguments: integers, and names of types. */
export interface Instance extends Node {
  readonly name: Ident
  readonly args: readonly Expr[]
}
/** `require n % 8 == 0`, of parameters. */
export interface Limit extends Item {
  readonly kind: 'limit'
  readonly cond: Expr
}
/** `examples (f16, 64), (bf16, 256)`: arguments with which the declaration is checked, and an instruction tested. */
export interface Examples extends Item {
  readonly kind: 'examples'
  readonly of: readonly (readonly Expr[])[]
}

/** `memory name(n): f32[16, n] in register of 32 threads replicated aligned 16 { element …, address … or texts }`. */
export interface Memory extends Item {
  readonly kind: 'memory'
  readonly name: Ident
  readonly params: readonly TileParam[]
  /** A scalar type, or a parameter that is one. */
  readonly type: Ident
  readonly shape: readonly Expr[]
  readonly scope: Ident
  readonly threads: Expr | null
  /** Several threads hold one element. */
  readonly replicated: boolean
  /** Bytes. */
  readonly aligned: Expr | null
  /** Elaboration asks for those that the scope needs. */
  readonly items: readonly MemoryItem[]
}
export type MemoryItem = ElementMap | AddressMap | MemoryText | Limit | Examples
/** `element (lane, slot) -> (e, …)`: the coordinates of what a thread holds. */
export interface ElementMap extends Item {
  readonly kind: 'element'
  readonly lane: Ident
  readonly slot: Ident
  readonly to: readonly Expr[]
}
/** `address (i, j) -> e`: where an element of the tile is. */
export interface AddressMap extends Item {
  readonly kind: 'address'
  readonly from: readonly Ident[]
  readonly to: Expr
}

/** `wgsl needs … \`type\``, `fill wgsl \`value\``: what a tile is on a target, where its elements are nobody's business. */
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
 * `C: f32[16, 8] in tiles aligned 16`; the memory is `global`, `shared`, or the name of a declared one, of which there
 * may be several: `in tiles or rows(8)`.
 */
export interface Operand extends Node {
  readonly name: Ident
  /** As in memories. */
  readonly type: Ident
  readonly shape: readonly Expr[]
  readonly memories: readonly Instance[]
  /** Bits of an element: fields of words. */
  readonly packed: Expr | null
  readonly aligned: Expr | null
  /** So many neighbours ascend. */
  readonly ascending: Expr | null
  readonly mapped: Mapped | null
  /** Read through the async proxy; or left so that it can be. */
  readonly fenced: boolean
}
/** `mapped swizzle 128`: the operand is a box of a matrix that the launch describes to the device. */
export interface Mapped {
  /** Bytes. */
  readonly swizzle: Expr | null
}
export type InstrItem = Iterate | InstrText | Limit | Examples | Precision
/** `precision 10 bits`: factors of products keep so many bits of their fraction. */
export interface Precision extends Item {
  readonly kind: 'precision'
  readonly bits: Expr
}
/** What a text of an asynchronous instruction is for, besides doing it. */
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
  /** As written between the backticks, and where. */
  readonly code: Ident
}
