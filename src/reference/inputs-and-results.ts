/** What the reference takes and gives: plain coordinates and numbers, no storage. */

/** Dense values, row-major; only for a buffer all of whose axes are `dense_fixed`. */
export type RefDense = ArrayLike<number>

/** Element e is at `(coords[0][e], coords[1][e], …)` in any order; values `null` are all 1. */
export interface RefCoords {
  readonly coords: readonly ArrayLike<number>[]
  readonly values: ArrayLike<number> | null
  /**
   * Elements with equal coordinates add up (`sum`, the default) or stay entries of their own (`keep`), which
   * takes a `nonunique` axis and a buffer over one tree.
   */
  readonly duplicates?: 'sum' | 'keep'
}

export type RefTensor = RefDense | RefCoords

export interface RefInputs {
  /** Sizes and scalar parameters by name. */
  readonly params: Readonly<Record<string, number>>
  /**
   * `in` and `inout` buffers by name; an `inout` that is missing starts at its fill value. Values may be wider than the
   * buffer's type: they are rounded to it, duplicates as one sum. After a format with
   * several parts, queries or tables: each part and each table, over its own axes.
   */
  readonly buffers: Readonly<Record<string, RefTensor>>
  /**
   * Structure that no input brings: coordinates on the chain from the root to the axis named, one column an
   * axis. What several tensors and structures, of one axis too, say about a tree is united.
   */
  readonly structure?: Readonly<Record<string, RefStructure | readonly RefStructure[]>>
}

/** Coordinates alone, as those of tensors. */
export type RefStructure = Pick<RefCoords, 'coords' | 'duplicates'>

/** One by one, with their axes. */
export const structuresOf = ({
  structure,
}: Pick<RefInputs, 'structure'>): readonly (readonly [axis: string, RefStructure])[] =>
  Object.entries(structure ?? {}).flatMap(([axis, s]) =>
    ('coords' in s ? [s] : s).map((x) => [axis, x] as const),
  )

export interface RefOptions {
  /**
   * Computes only some coordinates of a spatial root axis that all outputs are indexed by, where that is
   * provably sound; everything otherwise (`RefOutputs.sampled` says which). Either a fraction of them (above 0, at most 1)
   * or a count; `seed`: which ones, 0.
   */
  readonly sample?: { readonly fraction?: number; readonly count?: number; readonly seed?: number }
  /**
   * Bits that the program under test keeps of the fraction of a factor in f32 (10: tf32). Bounds grow by what the products may
   * lose; values do not change.
   */
  readonly precision?: number | undefined
  /** Ends with the error `reference/too-long` where loops would visit more coordinates than that, all counted. */
  readonly visits?: number
}

/** All dense; row-major. */
export interface RefDenseResult {
  readonly kind: 'dense'
  readonly shape: readonly number[]
  readonly values: Float64Array
  /** How far a correct result may lie from each value; 0 where there is one result, infinite where it is undecided. */
  readonly errors: Float64Array
}

/** The stored coordinates, tree by tree in lexicographic order, and their values. */
export interface RefSparseResult {
  readonly kind: 'sparse'
  readonly shape: readonly number[]
  readonly coords: readonly Int32Array[]
  readonly values: Float64Array
  readonly errors: Float64Array
}

export type RefResult = RefDenseResult | RefSparseResult

/** Outputs are exact where their coordinate on dimension `dims[buffer]` is one of `coordinates` (ascending). */
export interface RefSample {
  readonly axis: string
  readonly coordinates: Int32Array
  readonly dims: Readonly<Record<string, number>>
}

export interface RefOutputs {
  /** `out` and `inout` buffers by name. */
  readonly buffers: Readonly<Record<string, RefResult>>
  /** `null`: every coordinate was computed. */
  readonly sampled: RefSample | null
}

export const isCoords = (t: RefTensor): t is RefCoords => 'coords' in t
