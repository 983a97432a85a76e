/** Types of bound inputs, and of the result of binding. */

import type { Level } from '../../columns/stored-level.ts'
import type { Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import type { Storage } from '../../storage/storage.ts'
import type { StorageReport } from '../../storage/storage-report.ts'
import type { StoredTensor, Tensor, ValueArray } from '../../storage/tensor.ts'
import type { EntryList } from './sources/entry-list.ts'

/**
 * Values by name: buffers (the tensor of an output gives its structure), axes (structure only), lists and sets of formats, sizes and
 * scalars. A tensor with a format may be bound as ready-made parts.
 */
export interface Inputs {
  readonly tensors?: Readonly<Record<string, Tensor>>
  readonly params?: Readonly<Record<string, number>>
  /** Seed of random values for unbound buffers; without a seed, missing buffers are errors. */
  readonly seed?: number
  /** Limit on rounds with a condition; undefined: the default. */
  readonly maxRounds?: number
}

/**
 * Tensors whose arrays reside elsewhere. The values bound to their names have the right shapes and types only, and are neither stored nor
 * checked.
 */
export interface Elsewhere {
  readonly tensors: ReadonlySet<string>
  /** Levels of the axes that store these tensors, by name, without arrays. */
  readonly levels: ReadonlyMap<string, Level>
}

/** Storage locations of the elements of a tensor with a format. */
export interface Route {
  /** Coordinates of the elements over the declared axes, in lexicographic order of its trees. */
  readonly columns: readonly Int32Array[]
  /** Element `elements[s]` is stored at position `positions[s]` of the buffer; `null`: s itself. */
  readonly parts: readonly {
    readonly buffer: string
    readonly elements: Int32Array | null
    readonly positions: Int32Array | null
  }[]
}

export interface PartFormat {
  /** Label of the part, such as `p0_w4`; empty if there is only one part. */
  readonly label: string
  /** Name of the buffer that stores the part. */
  readonly buffer: string
  /** The format of the part as written, such as `bsr(16)`. */
  readonly format: string
  /** Number of distinct coordinates on the tensor's first dimension. */
  readonly rows: number
  /** Elements of the buffer (`slots`): those that hold a coordinate of the tensor (`stored`), and padding and fill (`padding`). */
  readonly slots: number
  readonly stored: number
  readonly padding: number
  /** Bytes of index arrays, tables and values. */
  readonly bytes: number
  readonly levels: StorageReport['levels']
}

/** The format of a tensor, and its storage cost. */
export interface TensorFormat {
  readonly tensor: string
  /** Formats as written; several if one was applied to the parts of another. */
  readonly formats: readonly string[]
  readonly parts: readonly PartFormat[]
  /** Sums of slots, stored elements, padding and bytes over the parts. */
  readonly slots: number
  readonly stored: number
  readonly padding: number
  readonly bytes: number
  /** Milliseconds for converting all tensors of this structure: splitting, then building. */
  readonly buildTime: number
  /** How losslessness is established (proved or checked), one sentence per node and part. */
  readonly provenance: readonly string[]
}

/** All host data that a plan needs to run. */
export interface Bound {
  /** The scheduled kernel, with the stored axes and buffers. */
  readonly kernel: Kernel1
  /** Sizes, scalars, counts and measured widths, by name. */
  readonly params: ReadonlyMap<string, number>
  /** Limit on rounds with a condition; undefined: the default. */
  readonly maxRounds?: number | undefined
  /** Storage layout of each buffer, by name. */
  readonly storages: ReadonlyMap<string, Storage>
  /** Values of `in` and `inout` buffers, index arrays and tables, by buffer name. */
  readonly arrays: ReadonlyMap<string, ValueArray>
  /** Bound tensors as coordinates, which are computed on first access for ready-made arrays. */
  readonly sources: readonly EntryList[]
  /** Entries of the sources, per set of stored axes. */
  readonly lists: readonly EntryList[]
  /** Positions of a list's entries in a buffer over its axes; `null`: entry e has position e. Computed once. `separateDuplicates`: as in `locate`. */
  readonly positions: (list: EntryList, buffer: string, separateDuplicates?: boolean) => Int32Array | null
  /** Storage locations of the elements of a tensor. Computed once. */
  readonly route: (tensor: string) => Route
  /** Ready-made arrays that are used directly, by buffer name. */
  readonly ready: ReadonlyMap<string, StoredTensor>
  /** Tensors as they were bound, by name. */
  readonly given: ReadonlyMap<string, Tensor>
  /** Names of random values: tensors, axes (their coordinates), lists and sets. */
  readonly random: readonly string[]
  /** Dense inputs as they were bound, by name. */
  readonly dense: ReadonlyMap<string, Tensor>
  /** Milliseconds spent building storage, including `randomTime`. */
  readonly buildTime: number
  /** Milliseconds spent generating random data. */
  readonly randomTime: number
  /** For `reportOf`; null if tensors reside elsewhere. */
  readonly reported: {
    readonly tables: ReadonlyMap<string, Int32Array>
    /** Milliseconds per format, and per chain of levels by its last axis. */
    readonly splitTimes: ReadonlyMap<Reformat, number>
    readonly levelTimes: ReadonlyMap<string, number>
  } | null
}
