/** n:m sparsity along the inputs of each output, and V:N:M sparsity (Castro et al. 2023). */

import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { countKept } from '../layers.ts'
import { best } from '../selection.ts'
import { nonzeroIndices } from '../tiles.ts'
import type { LayerScores, LayerShape, Pattern } from '../types.ts'
import { checkParameter } from './parameters.ts'
import { addSquares } from './tile-wise.ts'

export interface NOfMOptions {
  readonly n: number
  readonly m: number
}

/** Bits of an index within a group of m. */
const bitsFor = (m: number): number => Math.ceil(Math.log2(m))

/**
 * Each output keeps the best n of every m neighbouring inputs. If m does not divide the number of inputs, the last group is smaller.
 * @throws SptError `prune/parameter`
 */
export function nOfM(options: NOfMOptions): Pattern {
  expectOptions('nOfM', options, ['n', 'm'])
  const { n, m } = options
  checkParameter('m', m)
  checkParameter('n', n, 1, m)
  return {
    name: 'nm',
    text: `nm(${n}, ${m})`,
    sparsity: 1 - n / m,
    minSparsity: 1 - n / m,
    masks: (layers) =>
      masksByLayer(layers, `${n} of ${m}`, (scores, { rows, cols }, mask) => {
        for (let r = 0; r < rows; r++)
          for (let c = 0; c < cols; c += m) {
            const start = r * cols + c
            const end = start + Math.min(m, cols - c)
            best(scores.subarray(start, end), end - start, n, mask.subarray(start, end))
          }
      }),
    bytes: ({ shape: { valueBytes = 4 }, kept: mask }) =>
      countKept(mask) * valueBytes + Math.ceil((countKept(mask) * bitsFor(m)) / 8),
  }
}

/** A mask for each layer, which `select` fills for the scores of the elements. */
async function masksByLayer(
  layers: LayerScores,
  pass: string,
  select: (scores: Float32Array, shape: LayerShape, mask: Uint8Array) => void,
): Promise<{ kept: Uint8Array[] }> {
  const kept: Uint8Array[] = []
  for (const [k, shape] of layers.shapes.entries()) {
    const mask = new Uint8Array(shape.rows * shape.cols)
    select(await layers.scores(k, pass), shape, mask)
    kept.push(mask)
  }
  return { kept }
}

/** Number of inputs that remain in a group, for instructions with n:4 sparsity. */
const GROUP = 4

export interface VectorNOfMOptions {
  readonly v: number
  readonly n: number
  readonly m: number
}

/**
 * v neighbouring outputs keep the same four of every m inputs, ranked as vectors. Of these four, each output keeps the best n.
 * @throws SptError `prune/parameter`
 */
export function vectorNOfM(options: VectorNOfMOptions): Pattern {
  expectOptions('vectorNOfM', options, ['v', 'n', 'm'])
  const { v, n, m } = options
  checkParameter('v', v)
  checkParameter('m', m, GROUP)
  checkParameter('n', n, 1, GROUP)
  return {
    name: 'vnm',
    text: `vnm(${v}, ${n}, ${m})`,
    sparsity: 1 - n / m,
    minSparsity: 1 - n / m,
    masks: (layers) =>
      masksByLayer(layers, `${v}:${n}:${m}`, (scores, { rows, cols }, mask) => {
        for (let r = 0; r < rows; r += v) keepRows(layers, scores, cols, r, Math.min(rows, r + v), mask)
      }),
    // Values, the index of each in its group of four, and the indices of the four among m inputs.
    bytes: ({ shape: { rows, cols, valueBytes = 4 }, kept: mask }) => {
      const groups = Math.ceil(rows / v) * Math.ceil(cols / m)
      return countKept(mask) * valueBytes + Math.ceil((2 * countKept(mask) + groups * GROUP * bitsFor(m)) / 8)
    },
  }

  function keepRows(
    { vectorScore }: Pick<LayerScores, 'vectorScore'>,
    scores: Float32Array,
    cols: number,
    firstRow: number,
    endRow: number,
    mask: Uint8Array,
  ): void {
    const sums = new Float64Array(cols)
    for (let r = firstRow; r < endRow; r++) addSquares(scores, r * cols, sums)
    for (let c = 0; c < cols; c++) sums[c] = vectorScore(sums[c]!, endRow - firstRow)
    const flags = new Uint8Array(m)
    const values = new Float32Array(GROUP)
    const rowFlags = new Uint8Array(GROUP)
    for (let c = 0; c < cols; c += m) {
      const width = Math.min(m, cols - c)
      best(sums.subarray(c, c + width), width, GROUP, flags)
      const inputs = nonzeroIndices(flags, 0, width)
      for (let r = firstRow; r < endRow; r++) {
        for (let i = 0; i < inputs.length; i++) values[i] = scores[r * cols + c + inputs[i]!]!
        best(values, inputs.length, n, rowFlags)
        for (let i = 0; i < inputs.length; i++) mask[r * cols + c + inputs[i]!] = rowFlags[i]!
      }
    }
  }
}
