/** `spt rules`: the selected rules of inputs and temporaries, across calls, as text that compiles and computes the same. */
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { dynamicTemporaries } from '../../src/analysis/sparsity/run-time-zeros.ts'
import { load } from '../../src/node.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const MODEL = readFileSync('test/models/rectified.spt', 'utf8').replace('../../kernels', 'sparsetile/kernels')
const SIZES = ['m=24', 'k=9', 'hidden=50', 'n=8'].flatMap((s) => ['--size', s])
const OPTIONS = ['--kernel', 'perceptron', ...SIZES]

test('a temporary between two calls gets the cheapest rule, whose text compiles', async () => {
  const path = folder.file('model.spt', MODEL)
  const { code, out, err } = await spt(['rules', path, ...OPTIONS, '--tile', 'i=4', '--tile', 'q=1'])
  expect([code, err]).toEqual([0, ''])
  expect(out).toMatch(/\/\/ {3}H {2}i {2}1 × 1 +covered 0\.\d+ {2}cost 0\.\d+ {2}selected\n/)
  expect(out).not.toMatch(/\/\/ {3}[SY] /)
  expect(out).toContain('schedule perceptron.rules { H as H_along_i live in place }\n')
  const whole = folder.file('whole.spt', MODEL + out)
  for (const schedule of ['rules', 'dense', 'by_rules']) {
    const run = await spt(['run', whole, ...OPTIONS, '--schedule', schedule, '--verify'])
    expect([run.code, run.err]).toEqual([0, ''])
    expect(run.out).toMatch(/^ok: agrees/)
  }
  const text = folder.file('rules.spt', out)
  expect((await spt(['fmt', '--check', text])).out).toBe('')
})

test('formats and schedules of the program keep their names', async () => {
  const path = folder.file('taken.spt', `${MODEL}\nschedule perceptron.rules {}\n`)
  const { out } = await spt(['rules', path, ...OPTIONS, '--tile', 'i=4', '--tile', 'q=1'])
  expect(out).toContain('schedule perceptron.rules_ { H as H_along_')
})

test('kernels without such tensors, and wrong options', async () => {
  const path = folder.file(
    'plain.spt',
    'kernel k(n: size) {\n  axis i = dense_fixed(n)\n  buffer Y: f32[i] out\n  iterate set [i] as S { Y[i] = 1 }\n}\n',
  )
  expect((await spt(['rules', path, '--size', 'n=4'])).out).toBe('// k has no tensors with rules\n')
  const model = folder.file('model.spt', MODEL)
  const { code, err } = await spt(['rules', model, ...OPTIONS, '--tile', 'zz=4'])
  expect([code, err.split('\n')[0]]).toEqual([
    1,
    'error[api/argument]: an axis of a dense tile cannot be "zz"',
  ])
})

test('gates and rectified activations are dynamic; sums, softmax weights and GELU are not', async () => {
  const names = async (file: string, kernel: string) =>
    [...dynamicTemporaries((await load(file)).kernel(kernel).source)].sort()
  expect(await names('kernels/expert-layer.spt', 'expert_layer_f16')).toEqual(['H', 'P', 'S', 'Z'])
  expect(await names('test/models/rectified.spt', 'perceptron')).toEqual(['H'])
  expect(await names('test/models/encoder.spt', 'encoder')).toEqual([])
})
