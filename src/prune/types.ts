/** Types of pruning: layers, patterns, masks and reports. */

/**
 * A layer: weights [rows, cols], row-major. Rows are outputs, columns inputs. Weights with more dimensions are reshaped: all
 * dimensions except the first are columns.
 */
export interface LayerShape {
  readonly name: string
  readonly rows: number
  readonly cols: number
  /** Bytes per kept value, for the report; default 4. */
  readonly valueBytes?: number
}

/** Layers, read one at a time and once for each pass, so that memory never holds all weights. */
export interface Layers {
  readonly shapes: readonly LayerShape[]
  /** Values [rows, cols]; the caller does not modify these, and does not use them after the next read. */
  weights(layer: number): Promise<Float32Array>
  /** Gradients of the loss, in the same order. */
  gradients?(layer: number): Promise<Float32Array>
}

/** A byte for each element of a layer, row-major: 1 kept, 0 pruned. */
export type Mask = Uint8Array

/** Outputs that keep the same inputs, both ascending. */
export interface Tile {
  readonly outputs: Int32Array
  readonly inputs: Int32Array
}

/** Divisor of a vector's norm: √n for n elements (root mean square), or n. */
export type Normalise = 'root' | 'length'

/** The layers to prune, with scores, as passed to patterns. */
export interface LayerScores {
  readonly shapes: readonly LayerShape[]
  /** Maximum sparsity of each layer; 1 without a limit. */
  readonly limits: readonly number[]
  /** Score of a vector or block, from the sum of the squares of its elements' scores. */
  vectorScore(squares: number, elements: number): number
  /** Scores of a layer's elements, finite and at least 0; valid until the next call. `pass`: name of the pass, for progress. */
  scores(layer: number, pass: string): Promise<Float32Array>
}

/** Masks by layer, in the order of the shapes. */
export interface PatternMasks {
  readonly kept: readonly Mask[]
  /** Single elements kept in addition to the tiles; disjoint from `kept`. */
  readonly rest?: readonly Mask[]
  /** Non-empty tiles; elements in `kept` are inside of tiles. */
  readonly tiles?: readonly (readonly Tile[])[]
}

/** Masks and tiles of one pruned layer. */
export interface LayerMasks {
  readonly shape: LayerShape
  readonly kept: Mask
  readonly rest: Mask | null
  readonly tiles: readonly Tile[] | null
}

/** A sparsity pattern of masks, with a method that selects the least important elements. */
export interface Pattern {
  /** Short name: `tw`. */
  readonly name: string
  /** Name with parameters: `tw(128)`. */
  readonly text: string
  /** The sparsity, if parameters determine it. */
  readonly sparsity?: number
  /** Minimum sparsity of every layer. */
  readonly minSparsity?: number
  /** Minimum number of elements of a layer without a limit, such as those of a tile; 0 if absent. */
  readonly leastKept?: number
  masks(given: LayerScores, sparsity: number): Promise<PatternMasks>
  /** Bytes of a layer with values stored in the pattern's format and four-byte indices. */
  bytes(layer: LayerMasks): number
}

export interface PruneProgress {
  readonly pass: string
  readonly layer: string
  /** Number of layers read in this pass, including this one, and total number (`of`). */
  readonly done: number
  readonly of: number
}

export interface LayerReport {
  readonly name: string
  readonly rows: number
  readonly cols: number
  /** True if the layer was not pruned, and is not counted in totals. */
  readonly excluded: boolean
  readonly kept: number
  readonly sparsity: number
  /** ‖W ⊙ mask‖ / ‖W‖; 1 for zero weights. */
  readonly retainedNorm: number
  /** Number of rows with kept elements. */
  readonly keptOutputs: number
  readonly tiles: number | null
  readonly denseBytes: number
  readonly patternBytes: number
}

/** Report of a pruning, as plain data. */
export interface PruneReport {
  readonly pattern: string
  /** Requested sparsity. */
  readonly target: number
  readonly normalise: Normalise
  readonly elements: number
  readonly kept: number
  readonly sparsity: number
  readonly retainedNorm: number
  readonly denseBytes: number
  readonly patternBytes: number
  readonly layers: readonly LayerReport[]
  /** Names of layers that keep a smaller share of their elements than `warnBelow`. */
  readonly sparseLayers: readonly string[]
  readonly warnBelow: number
}

/** Kept elements of all layers: one mask per layer, or two for patterns with a remainder. */
export interface KeptMasks {
  readonly masks: readonly Mask[]
  readonly rest?: readonly Mask[]
}

/** Results by layer, in the order of the shapes. */
export interface Pruned extends KeptMasks {
  readonly tiles?: readonly (readonly Tile[])[]
  readonly report: PruneReport
}
