/** The statement of Stage III that calls a declared instruction, and what its texts mention. */
import type { Span } from '../ast/diagnostic.ts'
import type { Expr } from './expr.ts'

/** What stands in the text of an instruction: text, a value, or a place in a buffer. */
export type CallPiece =
  | string
  | { readonly kind: 'value'; readonly value: Expr }
  | {
      /** A register (or the word of 32 bits that it is in), or an element's address, shared address or index. */
      readonly kind: 'slot' | 'word' | 'address' | 'shared' | 'index' | 'name'
      readonly buffer: string
      /** Before `flatten` as many as the buffer has dimensions; those of `slot` and `word` end with the slot. */
      readonly index: readonly Expr[]
      /** `meet`: threads and copies meet there, without barriers around. */
      readonly mode: 'read' | 'write' | 'update' | 'meet'
    }
  | {
      /** The address of the description of a buffer as a matrix. */
      readonly kind: 'map'
      readonly buffer: string
      readonly index: readonly []
      readonly mode: 'read' | 'write' | 'update'
      readonly matrix: Matrix
    }

/** How a launch describes a buffer to the device whose instructions move boxes of it. */
export interface Matrix {
  /** Over parameters. */
  readonly rows: Expr
  readonly columns: Expr
  /** Rows and columns of a box. */
  readonly box: readonly [number, number]
  /** Bytes of a row of the box within which chunks of 16 change places; 0: none do. */
  readonly swizzle: number
}

/** Stage III: a declared instruction, as text for each target that it has one for. */
export interface InstrCall {
  readonly kind: 'instr'
  readonly instr: string
  /** The threads that arrive together. */
  readonly threads: number
  /** Bits that are kept of the fraction of a factor. */
  readonly precision?: number | undefined
  /** One thread of the block does it. */
  readonly once?: boolean | undefined
  /** What it writes in registers stays there until it is waited for. */
  readonly asynchronous?: true | undefined
  readonly texts: readonly {
    readonly target: string
    readonly from: number
    readonly needs?: readonly string[] | undefined
    readonly pieces: readonly CallPiece[]
  }[]
  readonly span?: Span | undefined
}

export const instrCall = (fields: Omit<InstrCall, 'kind'>): InstrCall =>
  Object.freeze({ kind: 'instr', ...fields })
