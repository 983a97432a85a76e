/** Training steps under masks of blocks, with our kernels on the CPU. */
import { expect, test } from 'vitest'
import type { Case } from '../../bench/gpu/case.ts'
import { maskedTrainingOf } from '../../bench/gpu/suites/masked-training.ts'
import { ExpectedStep, type StepResults, TrainingStep } from '../../bench/gpu/training-draw.ts'
import { toF16 } from '../../src/ir/values/half.ts'
import { untimed } from './simulated-suites.ts'

const SHAPE = { tokens: 20, inputs: 130, outputs: 70 }

const draw = (): TrainingStep => {
  const step = new TrainingStep(SHAPE, Date.now() & 0xffff)
  step.hold([64, 64], 0.5, Date.now() & 0xffff)
  return step
}

test('a mask has the requested number of full blocks, whatever it had before', () => {
  const { inputs, outputs } = SHAPE
  const step = draw()
  step.hold([64, 64], 0.5, 1)
  const held = (o: number, p: number): boolean => step.M[o * inputs + p] === toF16(1)
  const blocks = new Map<string, Set<boolean>>()
  for (let o = 0; o < outputs; o++)
    for (let p = 0; p < inputs; p++) {
      const at = `${o >> 6} ${p >> 6}`
      blocks.set(at, (blocks.get(at) ?? new Set()).add(held(o, p)))
    }
  expect([...blocks.values()].every((b) => b.size === 1)).toBe(true)
  expect([...blocks.values()].filter((b) => b.has(true)).length).toBe(3)
  expect(step.count).toBe(step.M.filter((m) => m !== 0).length)
})

test('small errors are detected, and masked weights may not change', () => {
  const step = draw()
  const { tokens, inputs, outputs } = SHAPE
  const all = { Y: tokens * outputs, D: tokens * inputs, W: outputs * inputs }
  const expected = new ExpectedStep(step, 200, 1)
  const right = expected.wanted
  for (const name of ['Y', 'D', 'W'] as const) expect(right[name].length).toBe(all[name])
  expect(expected.check(right).ok).toBe(true)
  const off = (name: keyof StepResults, at: number, by: number): boolean => {
    const other = right[name].slice()
    other[at]! += by
    return expected.check({ ...right, [name]: other }).ok
  }
  const [kept, left] = [step.M.findIndex((m) => m !== 0), step.M.indexOf(0)]
  expect(off('Y', 5, 0.1)).toBe(false)
  expect(off('D', 5, 0.1)).toBe(false)
  expect(off('W', kept, 1e-3)).toBe(false)
  expect(off('W', left, 1e-7)).toBe(false)
  expect(off('Y', 5, Number.NaN)).toBe(false)
})

test('a dispatch follows the fill ratio of the mask, and its step is correct', async () => {
  const own = 'masked-training-f16.spt:masked_training_f16.auto'
  const cases = await untimed([own], (s) => maskedTrainingOf(s, [1 / 6, 1], SHAPE))
  const outcome = (c: Case): string[] => {
    const ours = c.entries.filter((e) => e.side === 'ours')
    return [c.suite, c.at, ...ours.map((e) => `${e.name} ${e.result}${e.note}, ${e.facts?.chosen}`)]
  }
  expect(cases.map(outcome)).toEqual([
    ['masked-training', '83.3 %', `${own} ok, cpu`],
    ['masked-training', '0 %', `${own} ok, dense_cpu`],
  ])
})
