/** Block-wise sparsity: blocks are kept or pruned as a whole; blocks at the edges may be smaller. */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { elementsOf, layerCapacities, lowestVectors, targetOf } from '../selection.ts'
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
    leastKept: options.rows * options.cols,
    async masks(layers, sparsity) {
      const { shapes } = layers
      const blocks = await lowestVectors(
        layers,
        {
          pass: 'blocks',
          count(shape) {
            const { down, across } = blockCounts(shape)
            return down * across
          },
          measure(scores, squares, sizes, k) {
            const { rows, cols } = shapes[k]!
            const { across } = blockCounts(shapes[k]!)
            for (let r = 0; r < rows; r++) {
              const line = Math.floor(r / options.rows) * across
              for (let c = 0; c < cols; c++) {
                const e = scores[r * cols + c]!
                const block = line + Math.floor(c / options.cols)
                squares[block] = squares[block]! + e * e
                sizes[block] = sizes[block]! + 1
              }
            }
          },
        },
        targetOf(sparsity, elementsOf(shapes)),
        layerCapacities(layers),
      )
      return {
        kept: shapes.map((shape, k) => {
          const { rows, cols } = shape
          const { across } = blockCounts(shape)
          const mask = new Uint8Array(rows * cols)
          for (let r = 0; r < rows; r++) {
            const line = Math.floor(r / options.rows) * across
            for (let c = 0; c < cols; c++)
              mask[r * cols + c] = 1 - blocks[k]!.marks[line + Math.floor(c / options.cols)]!
          }
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
