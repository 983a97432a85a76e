/**
 * V:N:M sparsity (Castro et al. 2023): v neighbouring outputs keep the same four of every m inputs, ranked as vectors. Of these four,
 * each output keeps its best n.
 */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { best } from '../selection.ts'
import { nonzeroIndices } from '../tiles.ts'
import type { LayerScores, Pattern } from '../types.ts'
import { bitsFor } from './n-of-m.ts'
import { checkParameter, countKept } from './parameters.ts'
import { addSquares } from './tile-wise.ts'

/** Number of inputs that remain in a group, for instructions with n:4 sparsity. */
const GROUP = 4

export interface VectorNOfMOptions {
  readonly v: number
  readonly n: number
  readonly m: number
}

/** @throws SptError `prune/parameter` */
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
    async masks(layers) {
      const { shapes } = layers
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of shapes.entries()) {
        const scores = await layers.scores(k, `${v}:${n}:${m}`)
        const mask = new Uint8Array(rows * cols)
        for (let r = 0; r < rows; r += v) keepRows(layers, scores, cols, r, Math.min(rows, r + v), mask)
        masks.push(mask)
      }
      return { kept: masks }
    },
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
