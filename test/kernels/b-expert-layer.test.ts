/** A mixture of experts from the router to the result: whichever expert tokens go to, and however many they have. */
import { expect, test } from 'vitest'
import { toF16 } from '../../src/ir/half.ts'
import { dense, load } from '../../src/node.ts'
import { interpreted } from '../support/interpreted.ts'
import { integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const half = (shape: readonly number[], most: number) =>
  dense(
    shape,
    Uint16Array.from(
      integers(
        shape.reduce((a, b) => a * b, 1),
        most,
      ),
      toF16,
    ),
    'f16',
  )

/** Logits, of which the greatest two are equal, so that gates are 1 or a half. */
const ROUTES: Readonly<Record<string, (t: number, e: number, experts: number) => number>> = {
  spread: (t, e, experts) => ((t * 7 + e) % experts < 2 ? 5 : e % 3),
  'all to the first two': (_, e) => (e < 2 ? 9 : 0),
  'all to the last two': (_, e, experts) => (e >= experts - 2 ? 9 : 0),
  equal: () => 1,
}

const inputs = (
  experts: number,
  tokens: number,
  [k, h, n]: readonly number[],
  top: number,
  route: string,
) => {
  const G = Float32Array.from({ length: tokens * experts }, (_, x) =>
    ROUTES[route]!(Math.floor(x / experts), x % experts, experts),
  )
  return {
    tensors: {
      G: dense([tokens, experts], G),
      X: half([tokens, k!], 2),
      U: half([experts, k!, h!], 2),
      D: half([experts, h!, n!], 2),
    },
    params: { top },
  }
}

const SIZES = [
  [3, 0, [4, 4, 4]],
  [1, 5, [3, 2, 5]],
  [2, 33, [17, 9, 33]],
  [5, 70, [8, 16, 8]],
] as const

kernelSuite({
  file: 'kernels/expert-layer.spt',
  onlyCuda: ['wgmma'],
  alsoWith: [
    ['expert_layer_f16', 'cpu', 5],
    ['expert_layer_f16', 'gpu', 8, 8, 4, 3],
    ['expert_layer_f16', 'wgmma', 64, 64, 2, 5],
  ],
  cases: () =>
    SIZES.flatMap(([experts, tokens, sizes]) =>
      Object.keys(ROUTES).flatMap((route) =>
        [1, 2].map(
          (top): KernelCase => ({
            name: `${experts} experts, ${tokens} tokens, ${sizes.join(' × ')}, ${route}, top ${top}`,
            inputs: inputs(experts, tokens, sizes, top, route),
            exact: true,
          }),
        ),
      ),
    ),
})

test.each([1, 2])(
  'expert_layer_f16.wgmma, top %d, every step of it interpreted',
  async (top) => {
    const [experts, tokens, k, h, n] = [3, 70, 64, 64, 64]
    const program = await load('kernels/expert-layer.spt')
    const { tensors } = inputs(experts, tokens, [k, h, n], top, 'spread')
    const given = { tensors, params: { experts, tokens, k, h, n, top } }
    const run = (schedule: string, ...args: number[]) =>
      Array.from(
        interpreted(program.kernel('expert_layer_f16').schedule(schedule, ...args), given).get('Y')!,
        Number,
      )
    const got = run('wgmma', 64, 64, 2, 2)
    expect(got).toEqual(run('cpu'))
    expect(got.some((x) => x !== 0)).toBe(true)
  },
  300_000,
)
