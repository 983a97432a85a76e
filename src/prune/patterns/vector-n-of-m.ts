/**
 * V:N:M sparsity (Castro et al. 2023): v neighbouring outputs keep the same four of every m inputs, the best as vectors; of
 * those four each output keeps its best n.
 */
import { expectOptions } from '../../ast/expect-argument.ts'
import { best } from '../selection.ts'
import { positions } from '../tiles.ts'
import type { Pattern, Scored } from '../types.ts'
import { bitsFor } from './n-of-m.ts'
import { checkParameter, kept } from './parameters.ts'
import { addSquares } from './tile-wise.ts'

/** Inputs that are left for instructions that take n of four. */
const LEFT = 4

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
  checkParameter('m', m, LEFT)
  checkParameter('n', n, 1, LEFT)
  return {
    name: 'vnm',
    text: `vnm(${v}, ${n}, ${m})`,
    sparsity: 1 - n / m,
    least: 1 - n / m,
    async masks(given) {
      const { shapes } = given
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of shapes.entries()) {
        const scores = await given.scores(k, `${v}:${n}:${m}`)
        const mask = new Uint8Array(rows * cols)
        for (let r = 0; r < rows; r += v) keepOfRows(given, scores, cols, r, Math.min(rows, r + v), mask)
        masks.push(mask)
      }
      return { kept: masks }
    },
    // Values, which of four each is, and which of m the four are.
    bytes: ({ shape: { rows, cols, valueBytes = 4 }, kept: mask }) => {
      const groups = Math.ceil(rows / v) * Math.ceil(cols / m)
      return kept(mask) * valueBytes + Math.ceil((2 * kept(mask) + groups * LEFT * bitsFor(m)) / 8)
    },
  }

  function keepOfRows(
    { vectorScore }: Pick<Scored, 'vectorScore'>,
    scores: Float32Array,
    cols: number,
    from: number,
    to: number,
    mask: Uint8Array,
  ): void {
    const sums = new Float64Array(cols)
    for (let r = from; r < to; r++) addSquares(scores, r * cols, sums)
    for (let c = 0; c < cols; c++) sums[c] = vectorScore(sums[c]!, to - from)
    const flags = new Uint8Array(m)
    const values = new Float32Array(LEFT)
    const few = new Uint8Array(LEFT)
    for (let c = 0; c < cols; c += m) {
      const width = Math.min(m, cols - c)
      best(sums.subarray(c, c + width), width, LEFT, flags)
      const inputs = positions(flags, 0, width)
      for (let r = from; r < to; r++) {
        for (let i = 0; i < inputs.length; i++) values[i] = scores[r * cols + c + inputs[i]!]!
        best(values, inputs.length, n, few)
        for (let i = 0; i < inputs.length; i++) mask[r * cols + c + inputs[i]!] = few[i]!
      }
    }
  }
}
