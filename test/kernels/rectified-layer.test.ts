/** Two layers with a rectification between them, which find what is hidden in each run: nothing, all, scattered, groups of tokens off. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { halves, integers, type KernelCase, kernelSuite } from '../support/kernels.ts'

const SIZES = [
  [0, 3, 5, 4],
  [5, 0, 3, 4],
  [3, 4, 0, 5],
  [3, 4, 5, 0],
  [1, 1, 1, 1],
  [31, 65, 17, 33],
  [70, 33, 9, 130],
] as const

const magnitudes = (count: number): Float32Array => integers(count, 2).map(Math.abs)

/** X [tokens, k] and U [neurons, k]. */
const PATTERNS: Readonly<
  Record<string, (m: number, k: number, hidden: number) => readonly [Float32Array, Float32Array]>
> = {
  none: (m, k, hidden) => [magnitudes(m * k), magnitudes(hidden * k).map((u) => -u)],
  all: (m, k, hidden) => [magnitudes(m * k).map((x) => x + 1), magnitudes(hidden * k).map((u) => u + 1)],
  scattered: (m, k, hidden) => [integers(m * k, 2), integers(hidden * k, 2)],
  // Tokens of a group are the same one.
  groups: (m, k, hidden) => [
    Float32Array.from({ length: m * k }, (_, x) => Number(Math.floor(Math.floor(x / k) / 8) % k === x % k)),
    integers(hidden * k, 3),
  ],
}

const operands = ([m, n, k, hidden]: readonly number[], pattern: string) => {
  const [X, U] = PATTERNS[pattern]!(m!, k!, hidden!)
  return {
    X: halves([m!, k!], X),
    U: halves([hidden!, k!], U),
    D: halves([hidden!, n!], integers(hidden! * n!, 2)),
  }
}

kernelSuite({
  file: 'kernels/rectified-layer.spt',
  alsoWith: [
    ['rectified_layer_f16', 'cpu', 3, 5],
    ['rectified_layer_f16', 'gpu', 8, 4, 8, 2, 4],
    ['rectified_layer_f16', 'narrow', 64, 128, 3, 128],
    ['rectified_layer_rows_f16', 'cpu', 3, 5],
    ['rectified_layer_rows_f16', 'gpu', 4, 8, 8, 4, 2],
  ],
  cases: () =>
    SIZES.flatMap((sizes) =>
      Object.keys(PATTERNS).map(
        (pattern): KernelCase => ({
          name: `${sizes.join(' × ')}, ${pattern}`,
          inputs: { tensors: operands(sizes, pattern) },
          exact: true,
        }),
      ),
    ),
})

/** Schedules for instructions that no device here has, another in every run. */
test.each(
  sample(
    [
      ['rectified_layer_f16', 'narrow', [32, 64, 2, 64], 'groups'],
      ['rectified_layer_f16', 'narrow', [16, 64, 3, 64], 'scattered'],
      ['rectified_layer_f16', 'dense_wgmma', [64, 64, 2, 64], 'scattered'],
      ['rectified_layer_rows_f16', 'm_axis', [64, 64], 'groups'],
      ['rectified_layer_rows_f16', 'dense_wgmma', [64, 64, 2, 64], 'scattered'],
    ] as const,
    1,
  ),
)('%s.%s(%j), %s, interpreted after each step', async (kernel, schedule, args, pattern) => {
  const program = await load('kernels/rectified-layer.spt')
  const [m, n, k, hidden] = [kernel.includes('rows') ? 128 : 64, 64, 64, 128]
  const tensors = operands([m, n, k, hidden], pattern)
  const given = { tensors, params: { m, n, k, hidden } }
  const run = (name: string, ...own: readonly number[]) =>
    Array.from(
      interpreted(program.kernel(kernel).schedule(name, ...own), given).get('Y')!,
      (x) => Number(x) + 0,
    )
  const got = run(schedule, ...args)
  expect(got).toEqual(run('dense_cpu'))
  expect(got.some((y) => y !== 0)).toBe(true)
})
