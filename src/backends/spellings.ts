/**
 * Table of spellings that distinguishes the C-like target languages; `printer.ts` is shared by all. Registers hold values of
 * `computeType`; only buffers have narrow elements.
 */
import { InternalError } from '../ast/diagnostic.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Const, ThreadAxis } from '../ir/expr.ts'
import type { Buffer } from '../ir/loops.ts'
import type { MathFn } from '../ir/math.ts'
import type { BinaryOp } from '../ir/ops.ts'

/** Definitions of the helper functions that a module uses, by name. */
export type Helpers = Map<string, string>

/** A buffer in generated code. */
export interface BufferRef {
  readonly name: string
  readonly buffer: Buffer
  /** Updated atomically in this launch: every access goes through the target's atomics. */
  readonly atomic: boolean
  /** Declared as an array of vectors of `VECTOR` elements, since the launch has such accesses to it. */
  readonly vector: boolean
}

/** A value of several elements in one access. */
export interface VectorRef {
  readonly ref: BufferRef
  /** Index of the first element; a multiple of the number of elements. */
  readonly index: string
  /** Index of the vector in an array of vectors, if it needs no division. */
  readonly number?: string
  /** A name unused elsewhere in the generated code. */
  readonly temporary: string
}

/**
 * Arithmetic that may leave 32 bits: a value that a kernel computes, data that lead to an element, or an address that is
 * unused then.
 */
export type Wraps = 'value' | 'place' | 'unused'

/** A call of a mathematical function. */
export interface MathCall {
  /** Operands, without parentheses around those of lower precedence. */
  readonly args: readonly string[]
  readonly x: string
  readonly y: string
  /** Type of the result, as held in registers. */
  readonly dtype: Dtype
  readonly helpers: Helpers
}

export interface Spellings {
  /** Name of the target in declarations of instructions. */
  readonly name: string
  /** Type of a value in registers. */
  readonly type: (t: Dtype) => string
  readonly literal: (c: Const, helpers: Helpers) => string
  /** `null`: a minus sign will do. The operand is parenthesised already. */
  readonly neg: (x: string, dtype: Dtype, helpers: Helpers) => string | null
  /** `null`: the printer's C spelling will do. Operands are parenthesised already. */
  readonly binary: (
    op: BinaryOp,
    a: string,
    b: string,
    dtype: Dtype,
    operand: Dtype,
    wraps: Wraps | null,
    helpers: Helpers,
  ) => string | null
  readonly math: Readonly<Record<MathFn, (call: MathCall) => string>>
  readonly select: (cond: string, then: string, otherwise: string) => string
  /** Hides a first-iteration condition from the compiler (`peeled-iteration-workaround.ts`). */
  readonly hidden?: (cond: string, helpers: Helpers) => string
  readonly cast: (x: string, from: Dtype, to: Dtype, helpers: Helpers) => string
  readonly load: (b: BufferRef, index: string, helpers: Helpers) => string
  /** An expression that is 0 exactly if the element is, and cheaper than loading the element; null if there is none. */
  readonly bitsBesideSign?: (b: BufferRef, index: string) => string | null
  /** `exact`: the value is one that the element type has. */
  readonly store: (b: BufferRef, index: string, value: string, helpers: Helpers, exact: boolean) => string
  /** Vector widths of one access in elements, largest first; empty if vectors do not pay off. */
  readonly widths: (b: Buffer) => readonly number[]
  /** Statements that define `names` as the elements in order. */
  readonly loadVector: (v: VectorRef, names: readonly string[], helpers: Helpers) => readonly string[]
  /** Vector widths of atomic updates in elements, largest first; empty without such instructions. */
  readonly atomicWidths: (b: Buffer, op: string) => readonly number[]
  readonly atomicVector: (
    v: VectorRef,
    op: string,
    values: readonly string[],
    helpers: Helpers,
  ) => readonly string[]
  readonly storeVector: (
    v: VectorRef,
    values: readonly string[],
    helpers: Helpers,
    exact: readonly boolean[],
    /** A vector loaded from memory of the same type, which the values are. */
    copied: string | undefined,
  ) => readonly string[]
  readonly builtin: (axis: ThreadAxis) => string
  readonly let: (name: string, dtype: Dtype, value: string) => string
  /**
   * Butterfly exchange: the value of the thread whose number differs in bit `xor`, within aligned groups of `among` threads.
   */
  readonly exchange: (value: string, dtype: Dtype, xor: number, among: number, helpers: Helpers) => string
  /** A mutable scalar or a private array of constant length. */
  readonly register: (name: string, dtype: Dtype, length: number) => string
  /** A value as its type has it, for registers that hold more digits. */
  readonly rounded?: (value: string, dtype: Dtype) => string
  /** Tiles that are objects of a declared type: one, or an array. */
  readonly objects: (name: string, type: string, length: number) => string
  /** Private arrays are objects: one for each thread, made before its loops, not one for each round. */
  readonly arraysAtHead?: boolean
  /**
   * Operators that evaluate both operands, on targets that define out-of-bounds reads (WGSL, whose `select` does so too).
   * Short-circuit operators are branches there, and compilers take long, and gigabytes, for dozens of them.
   */
  readonly eager?: Readonly<Record<'and' | 'or', string>>
  /** Packing of narrow values in 32-bit registers, and addresses of memory for instructions. */
  readonly instructions?: {
    readonly packed: (name: string, words: number) => string
    /** The registers as an array of narrow values. */
    readonly halves: (name: string) => string
    readonly address: (name: string, index: string) => string
    readonly shared: (name: string, index: string, dtype: Dtype) => string
  }
  /** Aligned to 16 bytes at least. `null`: declared elsewhere (module scope). */
  readonly shared: (
    name: string,
    dtype: Dtype,
    length: number,
    align: number,
    /** Name of the array in the plan. */
    buffer: string,
  ) => string | null
  readonly forHeader: (name: string, extent: string) => string
  readonly whileHeader: (cond: string) => string
  readonly barrier: string
  /** For targets that have clusters of blocks. */
  readonly clusterBarrier?: string
  /** Of as many neighbours, for targets that have it. */
  /**
   * An element of shared memory that is uniform across the threads, with a barrier; without it, the element is read normally.
   */
  readonly uniform?: (element: string) => string
  readonly laneBarrier?: (among: number, helpers: Helpers) => string
  /** Barrier for global memory, on targets whose barrier orders shared memory only. */
  readonly globalBarrier?: string
  /** An atomic update by a native instruction; `null` if there is none. */
  readonly atomic: (b: BufferRef, index: string, op: string, value: string, helpers: Helpers) => string | null
  /** An atomic update by compare-and-swap; `combine` prints old ∘ value. */
  readonly atomicLoop: (
    b: BufferRef,
    index: string,
    combine: (old: string) => string,
    helpers: Helpers,
  ) => readonly string[]
}

/** Atomics of targets whose threads run in turns: ordinary updates of one element. */
export const IN_TURNS = {
  widths: () => [],
  loadVector: () => [],
  atomicWidths: () => [],
  atomicVector: () => [],
  storeVector: () => [],
  builtin: (axis) => axis.replace('.', '_'),
  exchange: () => {
    throw new InternalError('threads take turns here: none has what another one holds')
  },
} satisfies Partial<Spellings>
