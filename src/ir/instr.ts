/**
 * Memories and instructions that programs declare, as plain data. Nothing here knows a particular one: what an
 * instruction computes is its body, what it looks like is its text.
 */

import { invariant, type Span } from '../ast/diagnostic.ts'
import type { Dtype } from './dtype.ts'
import type { Expr } from './expr.ts'
import type { CallPiece, InstrCall } from './instr-call.ts'
import { instrCall } from './instr-call.ts'
import type { Reduce, Store } from './store-and-reduce.ts'
import { sameData } from './structural-equality.ts'

/**
 * How a tile of `shape` is held. In registers: by `threads` neighbouring threads together, each of which has `size`
 * of its elements, or has it as one object of the target. In shared memory: at addresses of its own, the tile taking
 * `size` elements.
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
  /** In registers, over `LANE` and `SLOT`: the coordinates of an element. In shared memory, and of objects, empty. */
  readonly element: readonly Expr[]
  /** Where several threads hold an element, over `LANE`: whether it is this one that gives it to others. */
  readonly owner?: Expr | undefined
  /** The tile is an object of 1 slot, whose elements only instructions see. */
  readonly opaque?: Opaque | undefined
  /** In shared memory, over `COORDINATES[k]`: the address of an element. */
  readonly address?: Expr | undefined
  readonly span?: Span | undefined
}

/** What a tile is on targets: its type, and a value of it with one number everywhere. */
export interface Opaque {
  readonly types: readonly TileText[]
  readonly fills: readonly TileText[]
}

export interface TileText {
  readonly target: string
  /** As in `InstrText`. */
  readonly needs?: readonly string[] | undefined
  /** The text, cut where the number stands. */
  readonly parts: readonly string[]
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
  /** Memories in shared memory that will do as well. */
  readonly others?: readonly Memory[] | undefined
  /** Bytes, of its last dimension, that stand together from an address which is a multiple of them; 0: any. */
  readonly align: number
  /**
   * A box (rows, columns) of a matrix in global memory: a buffer's last dimension, and all others as its rows. The
   * launch describes it to the device, with the bytes of a row within which chunks of 16 change places (0: none do).
   * What a box has beyond the matrix's last row and column is zeros when it is read.
   */
  readonly mapped?: { readonly swizzle: number } | undefined
  /**
   * In shared memory. Read: through the async proxy, which sees what others wrote after a fence alone. Written: through that
   * proxy, or with the fence in what waits for it.
   */
  readonly fenced?: boolean | undefined
  /** In global memory: elements are fields of so many bits. */
  readonly packed?: number | undefined
  /** Of each so many neighbours in the last dimension, from a multiple of it on, each is greater than the one before. */
  readonly ascending?: number | undefined
  /** Its elements say which of another operand's are meant: they are from 0 to one less. */
  readonly below?: number | undefined
  readonly mode: 'read' | 'write' | 'update'
}

/** How far an operand's tiles of a memory go in each dimension: 1 in those before the tile's own. */
export const tileSteps = (o: Pick<Operand, 'shape'>, { shape }: Memory): readonly number[] =>
  o.shape.map((_, d) => shape[d - o.shape.length + shape.length] ?? 1)

/** How many tiles there are in each dimension. */
export function tilesOf(o: Pick<Operand, 'shape'>, m: Memory): readonly number[] {
  const steps = tileSteps(o, m)
  return o.shape.map((n, d) => n / steps[d]!)
}

/** The registers that a thread has of an operand: those of the first tile, then of the next one, in the order in which tiles lie. */
export const slotsOf = (o: Operand): number =>
  (o.memory ? tilesOf(o, o.memory) : o.shape).reduce((a, b) => a * b, o.memory?.size ?? 1)

export interface InstrIter {
  readonly name: string
  readonly extent: number
  readonly reduce: boolean
}

/** What a text says of an operand, or of the threads. */
export type Placeholder =
  /**
   * `$lane`: the number of the thread among those that execute the instruction; `$pending`: of groups; `$barrier`: the
   * shared address of what counts the bytes of copies, `$bytes` that it expects, `$phase` (0 or 1) to wait for;
   * `$arrivals` that it counts as well; of a cluster, `$blocks`: a bit for each that a multicast reaches, `$block`: the
   * number of one; `$there`: 1 where a copy is made, 0 where it fills with zeros.
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
      /**
       * A register by slot or by word of 32 bits; an element's address, 32-bit shared address or index; the array; of a
       * mapped operand the description's address, and where its box begins.
       */
      readonly what: 'slot' | 'word' | 'address' | 'shared' | 'index' | 'name' | 'map' | 'row' | 'column'
      /** A slot; or coordinates over `LANE`. */
      readonly args: readonly Expr[]
    }
export type InstrPiece = string | Placeholder

export interface InstrText {
  readonly target: string
  /** The least version of the target's device: 9.0. */
  readonly from: number
  /** Extensions of the target's language (`f16`), and properties of the device by name (`lanes(32)`). */
  readonly needs?: readonly string[] | undefined
  readonly pieces: readonly InstrPiece[]
}

export interface Instr {
  readonly name: string
  readonly operands: readonly Operand[]
  /** The threads that execute it together. */
  readonly threads: number
  readonly atomic: boolean
  readonly iters: readonly InstrIter[]
  /** Over operands, whose index is iterators, or sums whose digits are iterators and elements of operands; the only statement. */
  readonly body: Store | Reduce
  readonly texts: readonly InstrText[]
  /** Bits that it keeps of the fraction of a factor: 10 of tf32. All, where nothing is said. */
  readonly precision?: number | undefined
  /**
   * Of a copy from global to shared memory: makes it where a condition holds, and writes zeros in its place elsewhere. What it reads
   * begins at the array's first element then.
   */
  readonly filled?: readonly InstrText[]
  /**
   * Of a counted copy: does it for all blocks of a cluster, each of which counts the bytes on its own barrier. `release`:
   * by one thread of each block, says on a barrier of the block that copies next that what was there is not needed.
   */
  readonly multicast?: { readonly texts: readonly InstrText[]; readonly release: readonly InstrText[] }
  /** What it writes is there after the group that it was committed in was waited for. */
  readonly asynchronous?: {
    readonly commit: readonly InstrText[]
    readonly wait: readonly InstrText[]
    /** Waits, as `wait` does, until what its groups read has been read: it may be written then, and they may still write. */
    readonly waitRead?: readonly InstrText[] | undefined
    /** Those that follow each other on the same operands find what those before did, without waiting. */
    readonly ordered: boolean
    /**
     * A copy into shared memory that counts its bytes on a transaction barrier (mbarrier) there; there are no groups. `prepare`: by one thread
     * before the first use; `publish`: by the same one after all of them are made, if there is more to do; `expect`: by one
     * thread in each phase, how many bytes end it; `wait`: by all threads.
     */
    readonly mbarrier?: {
      readonly prepare: readonly InstrText[]
      readonly publish: readonly InstrText[]
      readonly expect: readonly InstrText[]
    }
  }
  readonly span?: Span | undefined
}

/** An element of a buffer. */
export interface BufferElement {
  readonly buffer: string
  readonly index: readonly Expr[]
}

/** The barrier on which a copy counts its bytes. */
export interface Signals extends BufferElement {
  /** All blocks of a cluster make this copy alike: the one whose turn it is makes it for all. */
  readonly multicast?: Multicast | undefined
}

export interface Multicast {
  /** Neighbours on block.x. */
  readonly cluster: number
  /** From 0 to `cluster - 1`. */
  readonly turn: Expr
}

/** Whether asynchronous instructions end, and are waited for, together. */
export const endTogether = (a: Instr, b: Instr): boolean => sameData(a.asynchronous, b.asynchronous)

/** Ends a group of asynchronous instructions; every thread that may have executed some does it. */
export const commitGroup = (instr: Instr): InstrCall => callOf(instr, instr.asynchronous?.commit, {})

/** Waits until all but the latest `pending` groups of this thread are done. A barrier makes it true of all threads. */
export const waitGroup = (instr: Instr, pending: number): InstrCall =>
  callOf(instr, instr.asynchronous?.wait, { pending: String(pending) })

/** Waits until all groups of this thread have read what they read, where a text says how, or are done. */
export const waitRead = (instr: Instr): InstrCall =>
  callOf(instr, instr.asynchronous?.waitRead ?? instr.asynchronous?.wait, { pending: '0' })

/** Makes a barrier whose phases end with so many arrivals and their bytes, before threads meet and begin to use it. */
export const barrierInit = (instr: Instr, barrier: BufferElement, arrivals: number): InstrCall => ({
  ...callOf(instr, instr.asynchronous?.mbarrier?.prepare, { barrier, arrivals: String(arrivals) }),
  once: true,
})

/** Lets others know of the barriers that were made: other blocks, and what copies. Nothing where no text says how. */
export const barrierInitFence = (instr: Instr): readonly InstrCall[] =>
  instr.asynchronous?.mbarrier?.publish.length
    ? [{ ...callOf(instr, instr.asynchronous.mbarrier.publish, {}), once: true }]
    : []

/** Says how many bytes of copies end the barrier's current phase. */
export const expectBytes = (instr: Instr, barrier: BufferElement, bytes: number): InstrCall => ({
  ...callOf(instr, instr.asynchronous?.mbarrier?.expect, { barrier, bytes: String(bytes) }),
  once: true,
})

/** Waits until the barrier's phase of this parity has ended: what was copied in it is there, for every thread. */
export const barrierWait = (instr: Instr, barrier: BufferElement, phase: Expr): InstrCall =>
  callOf(instr, instr.asynchronous?.wait, { barrier, phase: { kind: 'value', value: phase } })

/** Arrives at the barrier of a block of the cluster. */
export const barrierArrive = (instr: Instr, barrier: BufferElement, block: Expr): InstrCall => ({
  ...callOf(instr, instr.multicast?.release, { barrier, block: { kind: 'value', value: block } }),
  once: true,
})

/** The place of a barrier, as it stands in a text. */
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
