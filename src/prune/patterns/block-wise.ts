/** Block-wise sparsity: blocks are kept or pruned as a whole; blocks at the edges may be smaller. */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { elementsOf, layerCapacities, lowestVectors, targetOf, vectorsFor } from '../selection.ts'
import type { LayerShape, Pattern } from '../types.ts'
import { checkParameter, INDEX_BYTES } from './parameters.ts'

export interface BlockWiseOptions {
  readonly rows: number
  readonly cols: number
}

/** @throws SptError `prune/parameter` */
export function blockWise(options: BlockWiseOptions): Pattern {
  expectOptions('blockWise', options, ['rows', 'cols'])
  checkParameter('rows of blocks', options.rows)
  checkParameter('cols of blocks', options.cols)
  const blockCounts = ({ rows, cols }: LayerShape) => ({
    down: Math.ceil(rows / options.rows),
    across: Math.ceil(cols / options.cols),
  })
  return {
    name: 'bw',
    text: `bw(${options.rows}, ${options.cols})`,
    async masks(layers, sparsity) {
      const { shapes } = layers
      const counts = shapes.map(blockCounts)
      const vectors = vectorsFor(counts.reduce((sum, { down, across }) => sum + down * across, 0))
      let v = 0
      for (const [k, { rows, cols }] of shapes.entries()) {
        const scores = await layers.scores(k, 'blocks')
        const { down, across } = counts[k]!
        for (let r = 0; r < rows; r++) {
          const line = v + Math.floor(r / options.rows) * across
          for (let c = 0; c < cols; c++) {
            const e = scores[r * cols + c]!
            const block = line + Math.floor(c / options.cols)
            vectors.scores[block] = vectors.scores[block]! + e * e
          }
        }
        for (let b = 0; b < down * across; b++, v++) {
          const height = Math.min(options.rows, rows - Math.floor(b / across) * options.rows)
          const width = Math.min(options.cols, cols - (b % across) * options.cols)
          vectors.layers[v] = k
          vectors.sizes[v] = height * width
          vectors.scores[v] = layers.vectorScore(vectors.scores[v]!, height * width)
        }
      }
      const marks = lowestVectors(vectors, targetOf(sparsity, elementsOf(shapes)), layerCapacities(layers))
      let first = 0
      return {
        kept: shapes.map(({ rows, cols }, k) => {
          const { down, across } = counts[k]!
          const mask = new Uint8Array(rows * cols)
          for (let r = 0; r < rows; r++) {
            const line = first + Math.floor(r / options.rows) * across
            for (let c = 0; c < cols; c++)
              mask[r * cols + c] = 1 - marks[line + Math.floor(c / options.cols)]!
          }
          first += down * across
          return mask
        }),
      }
    },
    // BSR: values of whole blocks, a column index for each, and row pointers.
    bytes: ({ shape, kept: mask }) => {
      const { rows, cols, valueBytes = 4 } = shape
      const { down } = blockCounts(shape)
      let blocks = 0
      for (let r = 0; r < rows; r += options.rows)
        for (let c = 0; c < cols; c += options.cols) blocks += mask[r * cols + c]!
      return blocks * options.rows * options.cols * valueBytes + (blocks + down + 1) * INDEX_BYTES
    },
  }
}
