/** The statement of Stage III that calls a declared instruction, and the operands in its generated code. */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'

/** A piece of an instruction's code: text, a value, or a location in a buffer. */
export type CallPiece =
  | string
  | { readonly kind: 'value'; readonly value: Expr }
  | {
      /** A register (or the 32-bit word that contains it), or an element's address, shared address or index. */
      readonly kind: 'slot' | 'word' | 'address' | 'shared' | 'index' | 'name'
      readonly buffer: string
      /** One index per dimension of the buffer before `flatten`; indices of `slot` and `word` end with the slot. */
      readonly index: readonly Expr[]
      /**
       * `meet`: the location of a barrier object, where threads and copies synchronise; needs no barriers around it.
       */
      readonly mode: 'read' | 'write' | 'update' | 'meet'
    }
  | {
      /** The address of the matrix descriptor of a buffer. */
      readonly kind: 'map'
      readonly buffer: string
      readonly index: readonly []
      readonly mode: 'read' | 'write' | 'update'
      readonly matrix: Matrix
    }

/** Descriptor of a buffer as a matrix (tensor map), for instructions that copy boxes of it. */
export interface Matrix {
  /** Over parameters. */
  readonly rows: Expr
  readonly columns: Expr
  /** Rows and columns of a box. */
  readonly box: readonly [number, number]
  /** Bytes of a box row within which 16-byte chunks are permuted; 0: no swizzle. */
  readonly swizzle: number
}

/** Stage III: a call of a declared instruction, with its code for each target that it supports. */
export interface InstrCall {
  readonly kind: 'instr'
  readonly instr: string
  /** The number of threads that execute it together. */
  readonly threads: number
  /** Fraction bits kept of each factor; all if absent. */
  readonly precision?: number | undefined
  /** Executed by one thread of the block. */
  readonly once?: boolean | undefined
  /** Registers that it writes are valid only after a wait. */
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
