/**
 * Memories and instructions that programs declare, as plain data. No instruction is built in: its body defines its
 * result, its texts define the generated code.
 */

import { invariant, type Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Expr } from '../expressions/expr.ts'
import { sameData } from '../expressions/structural-equality.ts'
import type { Reduce, Store } from '../statements/store-and-reduce.ts'
import type { Dtype } from '../values/dtype.ts'
import { type CallPiece, type InstrCall, instrCall } from './instr-call.ts'

/**
 * The layout of a tile of `shape`. In registers, `threads` neighbouring threads hold it together: each has `size` of
 * its elements, or holds it as one object of the target. In shared memory, elements have declared addresses and the
 * tile occupies `size` elements.
 */
export interface Memory {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly scope: 'shared' | 'register'
  /** 1 in shared memory. */
  readonly threads: number
  readonly size: number
  /** Alignment of the first element, in bytes. */
  readonly align: number
  /** In registers, over `LANE` and `SLOT`: the coordinates of an element. Empty in shared memory and for objects. */
  readonly element: readonly Expr[]
  /** Over `LANE`: true in the thread that provides an element to others, if several threads hold it. */
  readonly owner?: Expr | undefined
  /** The tile is an object with 1 slot, whose elements only instructions access. */
  readonly opaque?: Opaque | undefined
  /** In shared memory, over `COORDINATES[k]`: the address of an element. */
  readonly address?: Expr | undefined
  readonly span?: Span | undefined
}

/** The type of a tile object on each target, and an initialiser with one number in all elements. */
interface Opaque {
  readonly types: readonly TileText[]
  readonly fills: readonly TileText[]
}

export interface TileText {
  readonly target: string
  /** As in `InstrText`. */
  readonly needs?: readonly string[] | undefined
  /** The text, split at each occurrence of the number. */
  readonly parts: readonly string[]
}

/** Variables in the maps of memories and in the texts of instructions. */
export const LANE = '@lane'
export const SLOT = '@slot'
export const coordinateName = (k: number): string => `@${k}`

/** An operand of an instruction, in a memory of the device or in a declared memory. */
export interface Operand {
  readonly name: string
  readonly dtype: Dtype
  readonly shape: readonly number[]
  readonly scope: 'global' | 'shared' | 'register'
  readonly memory?: Memory | undefined
  /** Alternative declared memories in shared memory. */
  readonly alternatives?: readonly Memory[] | undefined
  /** Bytes that are contiguous in the last dimension, from an aligned address on; 0: any. */
  readonly align: number
  /**
   * A box (rows, columns) of a matrix in global memory; columns are the buffer's last dimension, rows all others. The
   * launch passes a descriptor to the device, with the bytes of a row within which 16-byte chunks are permuted (0:
   * none). Elements of a box beyond the matrix read as zeros.
   */
  readonly mapped?: { readonly swizzle: number } | undefined
  /**
   * In shared memory. Read: through the async proxy, which sees writes of other threads only after a fence. Written:
   * through that proxy, or with the fence in the wait.
   */
  readonly fenced?: boolean | undefined
  /** In global memory: bits of each packed field. */
  readonly packed?: number | undefined
  /** Strictly increasing within aligned groups of this many elements in the last dimension. */
  readonly ascending?: number | undefined
  /** Elements are indices into another operand: at least 0 and less than this. */
  readonly below?: number | undefined
  readonly mode: 'read' | 'write' | 'update'
}

/** Size of a memory's tile in each dimension of the operand; 1 in leading dimensions that the tile does not have. */
export const tileSteps = (o: Pick<Operand, 'shape'>, { shape }: Memory): readonly number[] =>
  o.shape.map((_, d) => shape[d - o.shape.length + shape.length] ?? 1)

export function tilesOf(o: Pick<Operand, 'shape'>, m: Memory): readonly number[] {
  const steps = tileSteps(o, m)
  return o.shape.map((n, d) => n / steps[d]!)
}

/** Number of registers per thread for an operand: those of the first tile, then of the next, in the order of tiles. */
export const slotsOf = (o: Operand): number =>
  (o.memory ? tilesOf(o, o.memory) : o.shape).reduce((a, b) => a * b, o.memory?.size ?? 1)

export interface InstrIter {
  readonly name: string
  readonly extent: number
  readonly reduce: boolean
}

/** A placeholder in an instruction's text, for an operand or a property of the executing threads. */
export type Placeholder =
  /**
   * `$lane`: number of the thread among those that execute the instruction. `$pending`: number of groups. `$barrier`:
   * shared address of the barrier that counts the bytes of copies; `$bytes`: bytes it expects; `$phase`: parity (0 or
   * 1) to wait for; `$arrivals`: arrivals that it also counts. In a cluster, `$blocks`: bit mask of the blocks that a
   * multicast reaches; `$block`: number of one block. `$there`: 1 to copy, 0 to fill with zeros.
   */
  | {
      readonly kind:
        | 'lane'
        | 'pending'
        | 'barrier'
        | 'arrivals'
        | 'bytes'
        | 'phase'
        | 'blocks'
        | 'block'
        | 'there'
    }
  | {
      readonly kind: 'operand'
      readonly operand: string
      /** A register (slot or 32-bit word), an element's address, an array, or of a mapped operand descriptor and origin. */
      readonly what: 'slot' | 'word' | 'address' | 'shared' | 'index' | 'name' | 'map' | 'row' | 'column'
      /** A slot, or coordinates over `LANE`. */
      readonly args: readonly Expr[]
    }
export type InstrPiece = string | Placeholder

export interface InstrText {
  readonly target: string
  /** The least version of the target's device, for example 9.0. */
  readonly from: number
  /** Required extensions of the target's language (`f16`) and properties of the device (`lanes(32)`). */
  readonly needs?: readonly string[] | undefined
  readonly pieces: readonly InstrPiece[]
}

export interface Instr {
  readonly name: string
  readonly operands: readonly Operand[]
  /** The number of threads that execute it together. */
  readonly threads: number
  readonly atomic: boolean
  readonly iters: readonly InstrIter[]
  /** The only statement, over operands indexed by iterators, sums of digits, or elements of operands. */
  readonly body: Store | Reduce
  readonly texts: readonly InstrText[]
  /** Fraction bits kept of each factor: 10 for tf32. All if absent. */
  readonly precision?: number | undefined
  /**
   * For a copy from global to shared memory: the predicated variant, which copies if a condition holds and otherwise
   * writes zeros. Its source then begins at the array's first element.
   */
  readonly filled?: readonly InstrText[]
  /**
   * For a counted copy: the multicast variant, which copies for all blocks of a cluster; each counts the bytes on its
   * own barrier. `release`: executed by one thread of each block, signals the block that copies next that the previous
   * data is no longer needed.
   */
  readonly multicast?: { readonly texts: readonly InstrText[]; readonly release: readonly InstrText[] }
  /** The result is valid after a wait for the group in which the instruction was committed. */
  readonly asynchronous?: {
    readonly commit: readonly InstrText[]
    readonly wait: readonly InstrText[]
    /** Waits until the groups have read their operands, which may then be overwritten; results may be pending. */
    readonly waitRead?: readonly InstrText[] | undefined
    /** Consecutive instructions on the same operands see each other's results without a wait. */
    readonly ordered: boolean
    /**
     * A copy into shared memory that counts its bytes on a transaction barrier (mbarrier); there are no groups.
     * `prepare`: initialises the barrier, by one thread before the first use. `publish`: makes all initialised barriers
     * visible, by the same thread, if the target needs it. `expect`: sets the bytes of a phase, by one thread. `wait`:
     * by all threads.
     */
    readonly mbarrier?: {
      readonly prepare: readonly InstrText[]
      readonly publish: readonly InstrText[]
      readonly expect: readonly InstrText[]
    }
  }
  readonly span?: Span | undefined
}

export interface BufferElement {
  readonly buffer: string
  readonly index: readonly Expr[]
}

/** The barrier on which a copy counts its bytes. */
export interface Signals extends BufferElement {
  /** All blocks of a cluster need this copy: one block, in turn, makes it for all. */
  readonly multicast?: Multicast | undefined
}

interface Multicast {
  /** Neighbours on block.x. */
  readonly cluster: number
  /** From 0 to `cluster - 1`. */
  readonly turn: Expr
}

/** True if asynchronous instructions are committed and waited for together. */
export const sharesCompletion = (a: Instr, b: Instr): boolean => sameData(a.asynchronous, b.asynchronous)

/** Commits a group of asynchronous instructions; every thread that may have executed some must call it. */
export const commitGroup = (instr: Instr): InstrCall => callOf(instr, instr.asynchronous?.commit, {})

/** Waits until all but this thread's latest `pending` groups are complete; a barrier extends it to all threads. */
export const waitGroup = (instr: Instr, pending: number): InstrCall =>
  callOf(instr, instr.asynchronous?.wait, { pending: String(pending) })

/** Waits until all groups of this thread have read their operands; without `waitRead`, until they are complete. */
export const waitRead = (instr: Instr): InstrCall =>
  callOf(instr, instr.asynchronous?.waitRead ?? instr.asynchronous?.wait, { pending: '0' })

/** Initialises a barrier whose phases end after `arrivals` arrivals and their bytes; threads synchronise after it. */
export const barrierInit = (instr: Instr, barrier: BufferElement, arrivals: number): InstrCall => ({
  ...callOf(instr, instr.asynchronous?.mbarrier?.prepare, { barrier, arrivals: String(arrivals) }),
  once: true,
})

/** Makes initialised barriers visible to other blocks and the copy engine; empty without a text for it. */
export const barrierInitFence = (instr: Instr): readonly InstrCall[] =>
  instr.asynchronous?.mbarrier?.publish.length
    ? [{ ...callOf(instr, instr.asynchronous.mbarrier.publish, {}), once: true }]
    : []

/** Sets the number of copied bytes that complete the barrier's current phase. */
export const expectBytes = (instr: Instr, barrier: BufferElement, bytes: number): InstrCall => ({
  ...callOf(instr, instr.asynchronous?.mbarrier?.expect, { barrier, bytes: String(bytes) }),
  once: true,
})

/** Waits until the barrier's phase of this parity is complete: the copied data is visible to every thread. */
export const barrierWait = (instr: Instr, barrier: BufferElement, phase: Expr): InstrCall =>
  callOf(instr, instr.asynchronous?.wait, { barrier, phase: { kind: 'value', value: phase } })

/** Arrives at the barrier of another block of the cluster. */
export const barrierArrive = (instr: Instr, barrier: BufferElement, block: Expr): InstrCall => ({
  ...callOf(instr, instr.multicast?.release, { barrier, block: { kind: 'value', value: block } }),
  once: true,
})

/** The shared address of a barrier, as a piece of code. */
export const barrierAddress = ({ buffer, index }: BufferElement): CallPiece => ({
  kind: 'shared',
  buffer,
  index,
  mode: 'meet',
})

interface CallValues {
  readonly barrier?: BufferElement
  readonly pending?: string
  readonly arrivals?: string
  readonly bytes?: string
  readonly phase?: CallPiece
  readonly block?: CallPiece
}

function callOf(instr: Instr, texts: readonly InstrText[] | undefined, values: CallValues): InstrCall {
  const piece = (p: InstrPiece): CallPiece => {
    if (typeof p === 'string') return p
    if (p.kind === 'barrier' && values.barrier) return barrierAddress(values.barrier)
    const value =
      p.kind === 'operand' ||
      p.kind === 'lane' ||
      p.kind === 'barrier' ||
      p.kind === 'blocks' ||
      p.kind === 'there'
        ? undefined
        : values[p.kind]
    invariant(value !== undefined, `${instr.name} speaks of ${p.kind} where there is none`)
    return value
  }
  return instrCall({
    instr: instr.name,
    threads: 1,
    texts: (texts ?? []).map((t) => ({ ...t, pieces: t.pieces.map(piece) })),
    span: instr.span,
  })
}
