/** Which part of a format or composition each entry goes to, and where in it. */

import type { StoredAxis } from '../ir/axis.ts'
import type { Dtype } from '../ir/dtype.ts'
import type { Instance, PartInstance } from '../ir/format.ts'
import type { ValueArray } from './tensor.ts'

/** What comes with the data. */
export interface Given {
  /** Values of size parameters. */
  readonly sizes: ReadonlyMap<string, number>
  /** By the names of the axes that are replaced. */
  readonly extents: ReadonlyMap<string, number>
  /** Ascending, by name. */
  readonly lists: ReadonlyMap<string, Int32Array>
  /** One coordinate array for each of `over`, by name. */
  readonly sets: ReadonlyMap<string, readonly Int32Array[]>
}

/** Values of entries in storage bits (`ValueArray` of `dtype`). */
export interface EntryValues {
  readonly values: ValueArray
  readonly dtype: Dtype
}

/** What a part holds of the entries. */
export interface PartEntries {
  /** In input order; `null`: all of them. */
  readonly entries: Int32Array | null
}

/** Where a part's entries stand in it. */
export interface Placed {
  /** One coordinate array for each axis of the part's `order`. */
  readonly columns: readonly Int32Array[]
  /** The part's tables by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
}

export type SplitEntries = (
  instance: Instance,
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
) => PartEntries[]

export type PlaceEntries = (
  part: PartInstance,
  over: readonly StoredAxis[],
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
) => Placed
