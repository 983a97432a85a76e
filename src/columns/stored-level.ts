/** The arrays of one stored axis. */
import { LEVEL_ARRAYS, type LevelArray } from '../ast/nodes/axis-kinds.ts'
import type { StoredAxis } from '../ir/coordinates/axis.ts'
import { unpackFields } from '../ir/values/packed-fields.ts'

/** One stored axis with its arrays (`null`: its kind has none of this name), on the host or in other memory. */
export interface Level<C = Int32Array> extends Readonly<Record<LevelArray, C | null>> {
  readonly axis: StoredAxis
  readonly extent: number
  /** Positions under one parent position; levels of fixed width only. */
  readonly width: number | null
  readonly positions: number
  /** Bits of each index, packed as fields of words; 32 if absent. */
  readonly bits?: number | undefined
}

export const arraysOfLevel = <C>(level: Level<C>): readonly (readonly [array: LevelArray, column: C])[] =>
  LEVEL_ARRAYS.flatMap((array) => {
    const column = level[array]
    return column === null ? [] : [[array, column] as const]
  })

/** A level with its arrays in other memory, or without arrays. */
export const withArrays = <C, D>(level: Level<C>, arrays: ReadonlyMap<LevelArray, D> = new Map()): Level<D> =>
  Object.assign(
    {} as Level<D>,
    level,
    Object.fromEntries(LEVEL_ARRAYS.map((a) => [a, arrays.get(a) ?? null])),
  )

export const firstPosition = ({ indptr, width, extent }: Level, p: number): number =>
  indptr ? indptr[p]! : p * (width ?? extent)

export const segment = (level: Level, p: number): readonly [number, number] => [
  firstPosition(level, p),
  firstPosition(level, p + 1),
]

/** The stored coordinate at each position; `null` if the level stores none. */
export const coordinatesOf = ({ indices, bits, positions }: Level): Int32Array | null =>
  indices && bits !== undefined ? unpackFields(indices, bits, positions) : indices

/** The value position of each entry that a structure was built from, so that values are scattered without a search. */
export interface PlacedEntries<C = Int32Array> {
  readonly count: number
  /** `null`: entry e has position e. */
  readonly positions: C | null
  /** No two entries are known to have the same position. */
  readonly distinct: boolean
}
