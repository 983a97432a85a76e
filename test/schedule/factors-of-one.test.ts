/** A factor of 1 is the loop as it is: what schedules take as parameters may be 1 like any other number. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { checkStages } from '../../src/api/stages/stage-check.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import { load } from '../../src/node.ts'
import type { LoopRef } from '../../src/schedule/names/kernel-names.ts'
import { type LoopStep, printStep } from '../../src/schedule/steps/step-data.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { runs } from '../support/cases.ts'
import { run, samples } from '../support/kernel2.ts'
import { after, choices, drawnState, stepFor } from '../support/steps.ts'

/** Steps with a factor, and whether a factor of 1 leaves the text of the loops. */
const STEPS: readonly (readonly [same: boolean, (loop: LoopRef, by: number) => LoopStep])[] = [
  [false, (loop, by) => ({ kind: 'unroll', loop, by })],
  [false, (loop, by) => ({ kind: 'unroll', loop, by, predicated: true })],
  [true, (loop, by) => ({ kind: 'serpentine', loop, by })],
  [true, (loop, by) => ({ kind: 'pipeline', loop, by })],
]

test('a factor of 1 is accepted for every loop for which 2 is, with equal results', () => {
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

/** What is said of names and of elements; a loop more inside of another may be in the way of a step otherwise, whatever its extent. */
const OF_NAMES_AND_ELEMENTS = [
  'consumed-loop',
  'different-elements',
  'not-every-element',
  'nothing-to-fuse',
  'order-matters',
  'other-elements',
  'unknown-loop',
].map((code) => `schedule/${code}`)

test('a loop that is split by 1 accepts the same steps, with equal results', () => {
  let taken = 0
  fc.assert(
    fc.property(
      samples,
      fc.array(choices, { maxLength: 8 }),
      fc.array(choices, { minLength: 6, maxLength: 6 }),
      fc.nat(),
      (sample, numbers, next, at) => {
        const state = drawnState(sample.kernel, numbers)
        // Guards would be read further inside.
        const plain = loopsOf(state.kernel.body).filter(
          (l) => l.mode.kind === 'serial' && l.guards.length === 0,
        )
        const loop = plain[at % Math.max(1, plain.length)]
        if (!loop) return
        const one = after(state, { kind: 'split', loop: { var: loop.var }, by: 1, into: [loop.name, 'one'] })
        if (typeof one !== 'object') return
        const expected = run(sample.kernel, sample.data)
        for (const step of next.map((n) => stepFor(state, n))) {
          const [without, split] = [state, one].map((s) => after(s, step))
          if (typeof without !== 'object') continue
          if (typeof split === 'string')
            expect(OF_NAMES_AND_ELEMENTS, `${printStep(step)}\n${print2(one.kernel)}`).not.toContain(split)
          if (typeof split !== 'object') continue
          taken++
          verify2(split.kernel)
          expect(run(split.kernel, sample.data)).toEqual(expected)
        }
      },
    ),
    { numRuns: runs(300) },
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
  '%s.spt, %s.%s(%j): every stage agrees with the reference',
  async (file, kernel, schedule, args) => {
    const { compilation } = (await load(`kernels/${file}.spt`)).kernel(kernel).schedule(schedule, ...args)
    expect(checkStages(compilation).ran).toContain('loops')
  },
)

test('fuse of one-iteration loops is rejected if their bounds check depends on a loop around them', () => {
  const kernel = parseProgram(`kernel k(d: size) {
    axis i = dense_fixed(d)
    buffer Y: f32[i] out
    iterate k [i] as S { Y[i] = 1 }
  }`).kernel()
  const tiles = kernel.split('i', 2, ['a', 'b']).split('a', 2, ['aa', 'ab']).split('b', 2, ['ba', 'bb'])
  const nested = tiles.tile(['ab', 'ba'], [1, 2])
  expect(() => nested.fuse(['bao', 'abi'], 'g')).toThrow(/nothing-to-fuse|guard inside would not depend/)
})
