/** What a caller binds, and what binding makes of it. */
import type { Storage } from '../formats/storage.ts'
import type { Tensor, ValueArray } from '../formats/tensor.ts'
import type { Kernel1 } from '../ir/stage1.ts'

/** Values by name: buffers (an output's tensor gives its structure), axes (structure only), sizes and scalars. */
export interface Inputs {
  readonly tensors?: Readonly<Record<string, Tensor>>
  readonly params?: Readonly<Record<string, number>>
  /** Buffers that are not bound are random from this seed; without it they are missing. */
  readonly seed?: number
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

/** Everything a plan needs to run, on the host. */
export interface Bound {
  /** The scheduled kernel: its axes and buffers are those that are stored. */
  readonly kernel: Kernel1
  /** Sizes, scalars, counts and measured widths. */
  readonly params: ReadonlyMap<string, number>
  /** How each buffer is stored. */
  readonly storages: ReadonlyMap<string, Storage>
  /** Values of `in` and `inout` buffers, and the index arrays, by buffer name. */
  readonly arrays: ReadonlyMap<string, ValueArray>
  /** What was bound, as coordinates; ready-made arrays are only turned into them when somebody asks. */
  readonly sources: () => readonly Source[]
  /** Dense inputs by name, as they were bound. */
  readonly dense: ReadonlyMap<string, Tensor>
  /** Milliseconds spent building storage. */
  readonly buildTime: number
}
