/** A factor of 1 is the loop as it is: what schedules take as parameters may be 1 like any other number. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { checkStages } from '../../src/api/stage-check.ts'
import { loopsOf } from '../../src/ir/definitions.ts'
import { print2 } from '../../src/ir/print-stage2.ts'
import { load } from '../../src/node.ts'
import type { LoopRef } from '../../src/schedule/loop-ref.ts'
import type { LoopStep } from '../../src/schedule/steps.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { runs } from '../support/cases.ts'
import { run, samples } from '../support/kernel2.ts'
import { after, choices, drawnState } from '../support/steps.ts'

/** Steps with a factor, and whether a factor of 1 leaves the text of the loops. */
const STEPS: readonly (readonly [same: boolean, (loop: LoopRef, by: number) => LoopStep])[] = [
  [false, (loop, by) => ({ kind: 'unroll', loop, by })],
  [false, (loop, by) => ({ kind: 'unroll', loop, by, predicated: true })],
  [true, (loop, by) => ({ kind: 'serpentine', loop, by })],
  [true, (loop, by) => ({ kind: 'pipeline', loop, by })],
]

test('of every loop, it is taken where 2 is, and what is computed stays', () => {
  let taken = 0
  fc.assert(
    fc.property(samples, fc.array(choices, { maxLength: 8 }), (sample, numbers) => {
      const expected = run(sample.kernel, sample.data)
      const state = drawnState(sample.kernel, numbers)
      const text = print2(state.kernel)
      for (const { var: name } of loopsOf(state.kernel.body))
        for (const [same, step] of STEPS) {
          const [one, two] = [1, 2].map((by) => after(state, step({ var: name }, by)))
          if (typeof one !== 'object') {
            expect(two).toBe(one)
            continue
          }
          expect(typeof two).toBe('object')
          taken++
          verify2(one.kernel)
          if (same) expect(print2(one.kernel)).toBe(text)
          else
            for (const order of ['forward', 'threads'] as const)
              expect(run(one.kernel, sample.data, order)).toEqual(expected)
        }
    }),
    { numRuns: runs(60) },
  )
  expect(taken).toBeGreaterThan(0)
})

test.each([
  ['gather-gemm-scatter', 'gather_gemm_scatter', 'rows', [64, 32, 1]],
  ['spmm', 'spmm', 'tensor_cores', [16, 4, 1]],
  ['spmm', 'spmm', 'balanced', [8, 32, 16, 4, 1]],
  ['sddmm-tensor-cores', 'sddmm_tensor_cores', 'mma', [4, 1]],
  ['gemm', 'gemm', 'gpu', [32, 64, 8, 1]],
  ['spmv', 'spmv', 'cpu_unrolled', [1]],
  ['spmv', 'spmv', 'cooperative', [4, 32, 1]],
  ['spmv', 'spmv', 'balanced', [4, 8, 1]],
  ['softmax', 'softmax', 'cooperative', [4, 32, 1]],
] as const)(
  '%s.spt, %s.%s(%j): every stage computes what the reference does',
  async (file, kernel, schedule, args) => {
    const { compilation } = (await load(`kernels/${file}.spt`)).kernel(kernel).schedule(schedule, ...args)
    expect(checkStages(compilation).ran).toContain('loops')
  },
)
