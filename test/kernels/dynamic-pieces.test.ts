/** Products of single rows in few pieces of their inputs, summed in one order: no piece, some, all, and rows without any. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const PATTERNS: Readonly<Record<string, (i: number, b: number) => boolean>> = {
  none: () => false,
  all: () => true,
  'in some rows': (i, b) => (i * 5 + b * 3) % 7 === 0,
  'one piece alone': (_, b) => b === 1,
}

/** Of a piece that holds anything every third element does. */
function inputs([m, n, pieces]: readonly number[], held: (i: number, b: number) => boolean) {
  const A = integers(m! * pieces! * 64, 3).map((x, e) => {
    const [i, b] = [Math.floor(e / 64 / pieces!), Math.floor(e / 64) % pieces!]
    return held(i, b) && (e + i) % 3 === 0 ? x || 1 : -0
  })
  return {
    tensors: {
      A: halves([m!, pieces!, 64], A),
      B: halves([pieces!, 64, n!], integers(pieces! * 64 * n!, 2)),
    },
  }
}

kernelSuite({
  file: 'kernels/dynamic-pieces.spt',
  alsoWith: [
    ['masked_pieces_matmul_f16', 'cpu', 5],
    ['masked_pieces_matmul_f16', 'gpu', 8, 16, 2, 4, 3],
    ['masked_pieces_matmul_f16', 'wgmma', 64, 3],
  ],
  cases: () =>
    [
      [0, 3, 2],
      [5, 0, 1],
      [3, 4, 0],
      [33, 17, 2],
      [70, 65, 3],
    ].flatMap((sizes) =>
      Object.entries(PATTERNS).map(
        ([name, held]): KernelCase => ({
          name: `${sizes.join(' × ')} pieces, ${name}`,
          inputs: inputs(sizes, held),
          exact: true,
        }),
      ),
    ),
})

test('masked_pieces_matmul_f16.wgmma, interpreted after each step', async () => {
  const program = await load('kernels/dynamic-pieces.spt')
  const [m, n, pieces] = [72, 64, 2]
  const { tensors } = inputs([m, n, pieces], PATTERNS['in some rows']!)
  const run = (schedule: string, ...args: number[]) =>
    Array.from(
      interpreted(program.kernel('masked_pieces_matmul_f16').schedule(schedule, ...args), {
        tensors,
        params: { m, n, pieces },
      }).get('C')!,
      Number,
    )
  const got = run('wgmma', 64, 2)
  expect(got).toEqual(run('cpu'))
  expect(got.some((x) => x !== 0)).toBe(true)
})
