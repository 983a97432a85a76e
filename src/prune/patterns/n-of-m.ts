/**
 * n:m sparsity: each output keeps the best n of every m neighbouring inputs. If m does not divide the number of inputs, the last
 * group is smaller.
 */
import { expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import { best } from '../selection.ts'
import type { Pattern } from '../types.ts'
import { checkParameter, countKept } from './parameters.ts'

export interface NOfMOptions {
  readonly n: number
  readonly m: number
}

/** Bits of an index within a group of m. */
export const bitsFor = (m: number): number => Math.ceil(Math.log2(m))

/** @throws SptError `prune/parameter` */
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
    async masks({ shapes, scores: readScores }) {
      const masks: Uint8Array[] = []
      for (const [k, { rows, cols }] of shapes.entries()) {
        const scores = await readScores(k, `${n} of ${m}`)
        const mask = new Uint8Array(rows * cols)
        for (let r = 0; r < rows; r++)
          for (let c = 0; c < cols; c += m) {
            const start = r * cols + c
            const end = start + Math.min(m, cols - c)
            best(scores.subarray(start, end), end - start, n, mask.subarray(start, end))
          }
        masks.push(mask)
      }
      return { kept: masks }
    },
    bytes: ({ shape: { valueBytes = 4 }, kept: mask }) =>
      countKept(mask) * valueBytes + Math.ceil((countKept(mask) * bitsFor(m)) / 8),
  }
}
