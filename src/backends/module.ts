/** Printed modules, which backends pass to devices. */
import type { Span } from '../ast/diagnostics/diagnostic.ts'
import type { Matrix } from '../ir/instructions/instr-call.ts'
import type { Dtype } from '../ir/values/dtype.ts'

/** Kinds of launch arguments, in the order of the entry's signature. */
export type ArgSpec =
  | {
      readonly kind: 'buffer'
      readonly name: string
      readonly dtype: Dtype
      readonly access: 'read' | 'read_write'
    }
  /** Scalars are passed by value (CUDA, JS) or through one uniform block (WGSL), in this order. */
  | { readonly kind: 'scalar'; readonly name: string; readonly dtype: Dtype }
  /** A description of a buffer as a matrix (CUDA). */
  | {
      readonly kind: 'matrix'
      readonly name: string
      readonly buffer: string
      readonly dtype: Dtype
      readonly matrix: Matrix
    }

/** One entry point of a printed module. */
export interface Entry {
  readonly name: string
  readonly args: readonly ArgSpec[]
  readonly block: readonly [number, number, number]
  /** Dynamic shared memory, bytes (CUDA). Static shared memory is in the text. */
  readonly sharedBytes: number
  /** Cluster size in blocks (CUDA, compute capability 9.0 or higher); divides the grid. */
  readonly cluster?: readonly [number, number, number] | undefined
  /**
   * True if the code waits for the previous launch before it accesses memory used by earlier steps of its plan (CUDA
   * programmatic dependent launch). Such a launch may begin while the previous one runs.
   */
  readonly waits?: boolean | undefined
  /** Source location for messages: `program.spt:15`. */
  readonly place?: string | undefined
}

/** Source for a target, with one or more entry points. */
export interface PrintedModule {
  readonly name: string
  readonly text: string
  readonly entries: readonly Entry[]
  /** Declared instruction with the highest device requirement, and the version it requires. */
  readonly needs?: { readonly instr: string; readonly version: number; readonly span?: Span | undefined }
  /** Device features, by name, that the source of declared instructions requires. */
  readonly capabilities?: readonly Capability[]
}

/** A device feature that a declared instruction or memory (`by`) requires. */
export interface Capability {
  readonly name: string
  readonly by: string
  readonly span?: Span | undefined
}
