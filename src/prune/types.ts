/** Types of pruning: layers, patterns, masks and reports. */

/**
 * A layer: weights [rows, cols], row-major. Rows are outputs, columns inputs: of weights with more dimensions all but
 * the first, together.
 */
export interface LayerShape {
  readonly name: string
  readonly rows: number
  readonly cols: number
  /** Bytes per kept value, for the report; default 4. */
  readonly valueBytes?: number
}

/** Layers, read one at a time and as often as passes want: nothing holds all weights at once. */
export interface Layers {
  readonly shapes: readonly LayerShape[]
  /** rows * cols values; not kept beyond the next reading, and not changed. */
  weights(layer: number): Promise<Float32Array>
  /** Gradients of the loss, in the same order. */
  gradients?(layer: number): Promise<Float32Array>
}

/** A byte for each element of a layer, in its order: 1 is kept. */
export type Mask = Uint8Array

/** Outputs that keep the same inputs, both ascending. */
export interface Tile {
  readonly outputs: Int32Array
  readonly inputs: Int32Array
}

/** Divisor of a vector's norm: √n for n elements (root mean square), or n. */
export type Normalise = 'root' | 'length'

/** Layers as patterns see them: those that are pruned alone. */
export interface Scored {
  readonly shapes: readonly LayerShape[]
  /** The sparsity that a layer must not exceed; 1: none is set. */
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
  /** Those that hold something; `kept` lies within them. */
  readonly tiles?: readonly (readonly Tile[])[]
}

/** Masks and tiles of one pruned layer. */
export interface LayerMasks {
  readonly shape: LayerShape
  readonly kept: Mask
  readonly rest: Mask | null
  readonly tiles: readonly Tile[] | null
}

/** A structure that masks can have, and how the least important elements that it allows are found. */
export interface Pattern {
  /** `tw`. */
  readonly name: string
  /** With its parameters: `tw(128)`. */
  readonly text: string
  /** The only sparsity that it can have. */
  readonly sparsity?: number
  /** No layer gets less. */
  readonly least?: number
  masks(given: Scored, sparsity: number): Promise<PatternMasks>
  /** Bytes of a layer with values stored in the pattern's format and four-byte indices. */
  bytes(layer: LayerMasks): number
}

export interface PruneProgress {
  readonly pass: string
  readonly layer: string
  /** Layers read in this pass, this one included, of how many. */
  readonly done: number
  readonly of: number
}

export interface LayerReport {
  readonly name: string
  readonly rows: number
  readonly cols: number
  /** It was left as it is, and is in no total. */
  readonly excluded: boolean
  readonly kept: number
  readonly sparsity: number
  /** ‖W ⊙ mask‖ / ‖W‖; 1 of nothing but zeros. */
  readonly retainedNorm: number
  /** Rows that hold something. */
  readonly keptOutputs: number
  readonly tiles: number | null
  readonly denseBytes: number
  readonly patternBytes: number
}

/** Figures as data: nothing but texts and numbers. */
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

/** Results by layer, in the order of the shapes. */
export interface Pruned {
  readonly masks: readonly Mask[]
  readonly rest?: readonly Mask[]
  readonly tiles?: readonly (readonly Tile[])[]
  readonly report: PruneReport
}
