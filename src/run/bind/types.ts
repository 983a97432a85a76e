/** What a caller binds, and what binding makes of it. */

import type { Kernel1 } from '../../ir/stage1.ts'
import type { Level, Storage } from '../../storage/storage.ts'
import type { StorageReport } from '../../storage/storage-report.ts'
import type { StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'

/**
 * Values by name: buffers (an output's tensor gives its structure), axes (structure only), lists and sets of
 * formats, sizes and scalars. A tensor that is stored in parts may come ready-made, part by part.
 */
export interface Inputs {
  readonly tensors?: Readonly<Record<string, Tensor>>
  readonly params?: Readonly<Record<string, number>>
  /** Buffers that are not bound are random from this seed; without it they are missing. */
  readonly seed?: number
}

/**
 * Tensors whose arrays are somewhere else: what is bound to their names has their shapes and types. Nothing of them is stored, and
 * nothing is asked of their elements.
 */
export interface Elsewhere {
  readonly tensors: ReadonlySet<string>
  /** Of the axes that store them, by name; without arrays. */
  readonly levels: ReadonlyMap<string, Level>
}

/** A tensor in the caller's coordinates, one column for each axis its buffer was declared over. */
export interface Source {
  /** The buffer, or the axis whose chain the columns are on. */
  readonly name: string
  readonly axes: readonly string[]
  readonly columns: readonly Int32Array[]
  /** `null` for structure without values. */
  readonly tensor: Tensor | null
}

/** The entries of a source that have coordinates on one set of stored axes. */
export interface Piece {
  readonly source: Source
  /** Ascending entries of the source; `null`: all of them. */
  readonly entries: Int32Array | null
  /** By axis. */
  readonly columns: ReadonlyMap<string, Int32Array>
  /** `ascending`: entries are in lexicographic order of the columns. Then, or if `distinct`, no two of them are equal. */
  readonly order: 'ascending' | 'distinct' | 'unknown'
}

/** Where the elements of a tensor lie that a format was applied to. */
export interface Route {
  /** Coordinates of its elements over the axes it was declared over, in lexicographic order of its trees. */
  readonly columns: readonly Int32Array[]
  /** Element `elements[s]` lies at position `positions[s]` of the buffer; `null`: s itself. */
  readonly parts: readonly {
    readonly buffer: string
    readonly elements: Int32Array | null
    readonly positions: Int32Array | null
  }[]
}

export interface PartFormat {
  /** Of the part: `p0_w4`; empty where there is one. */
  readonly label: string
  /** The buffer that stores it. */
  readonly buffer: string
  /** The part's format as written: `bsr(16)`. */
  readonly format: string
  /** Different coordinates of the tensor's first dimension that the part has entries at. */
  readonly rows: number
  /** Elements of the buffer, how many of them hold a coordinate of the tensor, and how many none: padding and fill. */
  readonly slots: number
  readonly stored: number
  readonly padding: number
  /** Index arrays, tables and values. */
  readonly bytes: number
  readonly levels: StorageReport['levels']
}

/** A tensor that formats were applied to. */
export interface TensorFormat {
  readonly tensor: string
  /** As written; several where one was applied to the parts of another. */
  readonly formats: readonly string[]
  readonly parts: readonly PartFormat[]
  /** Sums over the parts. */
  readonly slots: number
  readonly stored: number
  readonly padding: number
  readonly bytes: number
  /** Milliseconds that bringing all tensors of this structure into the format took: splitting, then building. */
  readonly buildTime: number
  /** How it is known that nothing is lost or held twice: one sentence each. */
  readonly provenance: readonly string[]
}

/** Everything a plan needs to run, on the host. */
export interface Bound {
  /** The scheduled kernel: its axes and buffers are those that are stored. */
  readonly kernel: Kernel1
  /** Sizes, scalars, counts and measured widths. */
  readonly params: ReadonlyMap<string, number>
  /** How each buffer is stored. */
  readonly storages: ReadonlyMap<string, Storage>
  /** Values of `in` and `inout` buffers, the index arrays and tables, by buffer name. */
  readonly arrays: ReadonlyMap<string, ValueArray>
  /** What was bound, as coordinates; ready-made arrays are only turned into them when somebody asks. */
  readonly sources: () => readonly Source[]
  /** Which entries of the sources each set of stored axes holds. */
  readonly pieces: readonly Piece[]
  /** Position of each entry of a piece in a buffer over its axes; `null`: entry e has position e. Found once. */
  readonly positions: (piece: Piece, buffer: string) => Int32Array | null
  /** Where the elements of a tensor lie in the buffers that store it. Found once. */
  readonly route: (tensor: string) => Route
  /** Ready-made arrays by the buffer that they are used for. */
  readonly ready: ReadonlyMap<string, StoredTensor>
  /** Tensors as they were bound, by name. */
  readonly given: ReadonlyMap<string, Tensor>
  /** What is random: tensors, axes (their coordinates), lists and sets, by name. */
  readonly random: readonly string[]
  /** Dense inputs by name, as they were bound. */
  readonly dense: ReadonlyMap<string, Tensor>
  /** Milliseconds spent building storage. */
  readonly buildTime: number
  /** Milliseconds of these that making random data took. */
  readonly randomTime: number
  /** Which formats tensors were put into, and what that costs. */
  readonly report: readonly TensorFormat[]
}
