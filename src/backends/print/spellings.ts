/**
 * Spelling table of a C-like target language; `printer.ts` is shared by all targets. Registers hold values of `computeType`;
 * only buffers have narrow elements.
 */
import { InternalError } from '../../ast/diagnostics/diagnostic.ts'
import type { Const, ThreadAxis } from '../../ir/expressions/expr.ts'
import type { Buffer } from '../../ir/statements/loops.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import type { BinaryOp, MathFn } from '../../ir/values/math.ts'

/** Definitions of the helper functions that a module uses, by name. */
export type Helpers = Map<string, string>

/** Adds a helper function to a module, and prints its call. */
export type HelperCall = (helpers: Helpers, name: string, ...args: readonly string[]) => string

/** Functions for the helpers of a target: `addHelper` adds a helper after the helpers that it calls. `printCall`: a call's text. */
export function helpersOf(
  table: Readonly<Record<string, string>>,
  printCall = (name: string, ...args: readonly string[]): string => `${name}(${args.join(', ')})`,
): {
  readonly addHelper: (helpers: Helpers, name: string) => void
  readonly helperCall: HelperCall
  /** A mathematical function that a helper computes. */
  readonly helperFunction: (name: string) => (call: MathCall) => string
} {
  const addHelper = (helpers: Helpers, name: string): void => {
    if (helpers.has(name)) return
    // Absent for conversions of types that the target lacks.
    const text = table[name] ?? ''
    for (const [, callee] of text.matchAll(/\b(\w+)[([]/g))
      if (callee !== name && callee! in table) addHelper(helpers, callee!)
    helpers.set(name, text)
  }
  const helperCall: HelperCall = (helpers, name, ...args) => {
    addHelper(helpers, name)
    return printCall(name, ...args)
  }
  const helperFunction =
    (name: string) =>
    ({ args, helpers }: MathCall): string =>
      helperCall(helpers, name, ...args)
  return { addHelper, helperCall, helperFunction }
}

/** A buffer in generated code. */
export interface BufferRef {
  readonly name: string
  readonly buffer: Buffer
  /** True if this launch updates it atomically, so that every access uses atomics. */
  readonly atomic: boolean
  /** True if it is declared as an array of vectors, because the launch has vector accesses to it. */
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
 * Arithmetic that may overflow 32 bits: of a computed value (`value`), of an address computed from data (`place`), or of an
 * address that is not used in case of overflow (`unused`).
 */
export type Wraps = 'value' | 'place' | 'unused'

/** A call of a mathematical function. */
export interface MathCall {
  /** Operands without parentheses. */
  readonly args: readonly string[]
  readonly x: string
  readonly y: string
  /** Type of the result in registers. */
  readonly dtype: Dtype
  readonly helpers: Helpers
}

/**
 * Spellings of `index` expressions in 64 bits: `long long`, or doubles, which are exact below 2^53. Sizes, hardware indices and
 * elements of arrays are i32; each use converts the value.
 */
export interface WideIndices {
  readonly literal: (value: number) => string
  /** Conversions from and to i32. */
  readonly fromWord: (x: string) => string
  readonly toWord: (x: string) => string
  /** As `Spellings.binary`, of operands of type `index`. */
  readonly binary: (
    op: BinaryOp,
    a: string,
    b: string,
    wraps: Wraps | null,
    helpers: Helpers,
  ) => string | null
  readonly let: (name: string, value: string) => string
  readonly register: (name: string, length: number) => string
  readonly forHeader: (name: string, extent: string) => string
}

export interface Spellings {
  /** Name of the target in declarations of instructions. */
  readonly name: string
  /** Absent on targets without 64-bit indices. */
  readonly wideIndices?: WideIndices
  /** Type of a value in registers. */
  readonly type: (t: Dtype) => string
  readonly literal: (c: Const, helpers: Helpers) => string
  /** Negation; `null` for a minus sign. The operand is parenthesised. */
  readonly neg: (x: string, dtype: Dtype, helpers: Helpers) => string | null
  /** A binary operator; `null` for the C spelling. Operands are parenthesised. */
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
  readonly hideCondition?: (cond: string, helpers: Helpers) => string
  readonly cast: (x: string, from: Dtype, to: Dtype, helpers: Helpers) => string
  readonly load: (b: BufferRef, index: string, helpers: Helpers) => string
  /** An expression that is 0 if and only if the element is 0, and cheaper than the element; null if there is none. */
  readonly magnitudeBits?: (b: BufferRef, index: string) => string | null
  /** A store. `exact`: the element type represents the value exactly. */
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
    /** Name of a loaded vector of the same type whose elements are these values. */
    source: string | undefined,
  ) => readonly string[]
  readonly builtin: (axis: ThreadAxis) => string
  readonly let: (name: string, dtype: Dtype, value: string) => string
  /**
   * Butterfly exchange: the value of the thread whose number differs in bit `xor`, within aligned groups of `among` threads.
   */
  readonly exchange: (value: string, dtype: Dtype, xor: number, among: number, helpers: Helpers) => string
  /** A mutable scalar or a private array of constant length. */
  readonly register: (name: string, dtype: Dtype, length: number) => string
  /** Rounds a value to its type, for registers of higher precision. */
  readonly roundRegister?: (value: string, dtype: Dtype) => string
  /** Declares tiles of an opaque type: one, or an array. */
  readonly objects: (name: string, type: string, length: number) => string
  /** True if private arrays are allocated objects, so each is created once per thread, outside of loops. */
  readonly arraysAtHead?: boolean
  /**
   * Operators that evaluate both operands, on targets where out-of-bounds reads are defined (WGSL, whose `select` also evaluates
   * both). Short-circuit operators are branches, and compilers need minutes and gigabytes for dozens of branches.
   */
  readonly eagerOps?: Readonly<Record<'and' | 'or', string>>
  /** Packing of narrow values in 32-bit registers, and addresses of memory for instructions. */
  readonly instructions?: {
    readonly packed: (name: string, words: number) => string
    /** The registers as an array of narrow values. */
    readonly halves: (name: string) => string
    readonly address: (name: string, index: string) => string
    readonly shared: (name: string, index: string, dtype: Dtype) => string
  }
  /** Declares a shared array, aligned to at least 16 bytes; `null` if it is declared at module scope. */
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
  /** Barrier of a cluster, on targets with thread-block clusters. */
  readonly clusterBarrier?: string
  /** Loads a uniform element of shared memory, with a barrier; if absent, the element is loaded normally. */
  readonly uniform?: (element: string) => string
  /** Barrier of `among` neighbouring threads. */
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

/** Spellings of targets without parallel threads in a block: no vectors and no exchange. */
export const SERIAL_THREADS = {
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
