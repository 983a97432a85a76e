/**
 * Memories and instructions that programs declare, as plain data. Nothing here knows a particular one: what an
 * instruction computes is its body, what it looks like is its text.
 */
import type { Span } from '../ast/diagnostic.ts'
import type { Dtype } from './dtype.ts'
import type { Expr } from './expr.ts'
import type { InstrCall, Reduce, Store } from './loops.ts'

/**
 * How a tile of `shape` is held. In registers: by `threads` neighbouring threads together, each of which has `size`
 * of its elements. In shared memory: at addresses of its own, the tile taking `size` elements.
 */
export interface Memory {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly scope: 'shared' | 'register'
  /** 1 in shared memory. */
  readonly threads: number
  readonly size: number
  /** Bytes that the first element is aligned to. */
  readonly align: number
  /** In registers, over `LANE` and `SLOT`: the coordinates of an element. In shared memory empty. */
  readonly element: readonly Expr[]
  /** In shared memory, over `COORDINATES[k]`: the address of an element. */
  readonly address?: Expr | undefined
  readonly span?: Span | undefined
}

/** The variables of a memory's maps, and of the texts of instructions. */
export const LANE = '@lane'
export const SLOT = '@slot'
export const coordinateName = (k: number): string => `@${k}`

/** Where an operand lives: anywhere in a memory of the device, or in a declared one. */
export interface Operand {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly scope: 'global' | 'shared' | 'register'
  readonly memory?: Memory | undefined
  /** Bytes, of its last dimension, that stand together from an address which is a multiple of them; 0: any. */
  readonly align: number
  readonly mode: 'read' | 'write' | 'update'
}

export interface InstrIter {
  readonly name: string
  readonly extent: number
  readonly reduce: boolean
}

/** What a text says of an operand, or of the threads. */
export type Placeholder =
  /** `$lane`: the number of the thread among those that execute the instruction; `$pending`: of groups. */
  | { readonly kind: 'lane' | 'pending' }
  | {
      readonly kind: 'operand'
      readonly operand: string
      /** A register by slot or by word of 32 bits; an element's address, 32-bit shared address or index; the array. */
      readonly what: 'slot' | 'word' | 'address' | 'shared' | 'index' | 'name'
      /** A slot; or coordinates over `LANE`. */
      readonly args: readonly Expr[]
    }
export type InstrPiece = string | Placeholder

export interface InstrText {
  readonly target: string
  /** The least version of the target's device: 9.0. */
  readonly from: number
  readonly pieces: readonly InstrPiece[]
}

export interface Instr {
  readonly name: string
  readonly operands: readonly Operand[]
  /** The threads that execute it together. */
  readonly threads: number
  readonly atomic: boolean
  readonly iters: readonly InstrIter[]
  /** Over operands, whose index is iterators; the only statement. */
  readonly body: Store | Reduce
  readonly texts: readonly InstrText[]
  /** What it writes is there after the group that it was committed in was waited for. */
  readonly asynchronous?: {
    readonly commit: readonly InstrText[]
    readonly wait: readonly InstrText[]
    /** Those that follow each other on the same operands find what those before did, without waiting. */
    readonly ordered: boolean
  }
  readonly span?: Span | undefined
}

/** Ends a group of asynchronous instructions; every thread that may have executed some does it. */
export const commitOf = (instr: Instr): InstrCall => callOf(instr, instr.asynchronous?.commit ?? [], 0)

/** Waits until all but the latest `pending` groups of this thread are done. A barrier makes it true of all threads. */
export const waitOf = (instr: Instr, pending: number): InstrCall =>
  callOf(instr, instr.asynchronous?.wait ?? [], pending)

const callOf = (instr: Instr, texts: readonly InstrText[], pending: number): InstrCall =>
  Object.freeze({
    kind: 'instr',
    instr: instr.name,
    threads: 1,
    texts: texts.map((t) => ({
      target: t.target,
      from: t.from,
      pieces: t.pieces.map((p) => (typeof p === 'string' ? p : String(pending))),
    })),
    span: instr.span,
  })
