/** Inputs and results of the reference: coordinates and numbers, without storage formats. */

/** Dense row-major values, for buffers with `dense_fixed` axes only. */
export type RefDense = ArrayLike<number>

/** Element e is at `(coords[0][e], coords[1][e], …)`, in any order; `null` values are all 1. */
export interface RefCoords {
  readonly coords: readonly ArrayLike<number>[]
  readonly values: ArrayLike<number> | null
  /**
   * Elements with equal coordinates are added (`sum`, the default) or stay separate entries (`keep`), which requires a
   * `nonunique` axis and a buffer over one tree.
   */
  readonly duplicates?: 'sum' | 'keep'
}

export type RefTensor = RefDense | RefCoords

export interface RefInputs {
  /** Sizes and scalar parameters by name. */
  readonly params: Readonly<Record<string, number>>
  /**
   * `in` and `inout` buffers by name; a missing `inout` starts at its fill value. Values may have a wider type than the
   * buffer: they are rounded to it, after duplicates are summed. For formats with several parts, queries or tables:
   * each part and each table, over its own axes.
   */
  readonly buffers: Readonly<Record<string, RefTensor>>
  /**
   * Structure without an input: coordinates on the chain from the root to the named axis, one column per axis. The
   * structures of several tensors and entries for one tree are united.
   */
  readonly structure?: Readonly<Record<string, RefStructure | readonly RefStructure[]>>
}

export type RefStructure = Pick<RefCoords, 'coords' | 'duplicates'>

/** The structures as a list, with their axes. */
export const structuresOf = ({
  structure,
}: Pick<RefInputs, 'structure'>): readonly (readonly [axis: string, RefStructure])[] =>
  Object.entries(structure ?? {}).flatMap(([axis, s]) =>
    ('coords' in s ? [s] : s).map((x) => [axis, x] as const),
  )

export interface RefOptions {
  /**
   * Computes only some coordinates of a spatial root axis that indexes all outputs, if this is provably sound;
   * otherwise everything (`RefOutputs.sampled` reports it). `fraction` (above 0, at most 1) or `count` of the
   * coordinates; `seed` (default 0) selects them.
   */
  readonly sample?: { readonly fraction?: number; readonly count?: number; readonly seed?: number }
  /**
   * Fraction bits that the tested program keeps of an f32 factor (10: tf32). Bounds grow by the possible loss of
   * products; values do not change.
   */
  readonly precision?: number | undefined
  /** Limit on the total number of visited coordinates; beyond it, `reference/too-long` is thrown. */
  readonly visits?: number
  /** Limit on rounds with a condition. */
  readonly maxRounds?: number | undefined
}

/** All elements, row-major. */
export interface RefDenseResult {
  readonly kind: 'dense'
  readonly shape: readonly number[]
  readonly values: Float64Array
  /** Error bound of each value: 0 if only one result is correct, infinite if it is undecided. */
  readonly errors: Float64Array
}

/** The stored coordinates, tree by tree in lexicographic order, and their values. */
interface RefSparseResult {
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
