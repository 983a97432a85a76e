/** `spt explain`: with a device and without one; mistakes. */
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { costModelText } from '../../src/cli/forms.ts'
import { chipOf } from '../../src/io/package/calibrations.ts'
import type { Explanation } from '../../src/node.ts'
import { Folder, MATRIX, PROGRAM, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const program = folder.file('mul.spt', PROGRAM)
const matrix = folder.file('a.mtx', MATRIX)
const bound = ['--bind', `A=${matrix}`, '--size', 'd=3', '--size', 'alpha=2']

test('measures on a device, and writes JSON', async () => {
  const path = folder.at('e.json')
  const { code, out, err } = await spt(['explain', program, ...bound, '--device', 'cpu', '--json', path])
  expect([code, err]).toEqual([0, ''])
  expect(out).toContain('step 1: launch mul_0')
  expect(out).toMatch(/ {4}B +12 loaded; has 12 of 4 bytes/)
  expect(out).toMatch(/operations +28 plain/)
  expect(out).toMatch(/time +[\d.]+ ms \(median of \d+/)
  expect(out).toContain(
    'ceilings  not measured for JavaScript: so there are no percentages and no bounds (spt calibrate --device cpu measures them)\n',
  )
  expect(out).not.toMatch(/^ *bound/m)
  // All threads are counted.
  expect(out).not.toContain('estimated')
  const e = JSON.parse(readFileSync(path, 'utf8')) as Explanation
  expect([e.kernel, e.device, e.sizes]).toEqual(['mul', 'cpu', { m: 3, n: 4, d: 3, alpha: 2 }])
  expect(e.total.operations.scalar).toBe(28)
})

// Where there is a GPU, the same and more.
test('without a device it prints predictions', async () => {
  const { code, out } = await spt(['explain', program, ...bound, '--schedule', 'gpu(2)', '--device', 'cuda'])
  expect(code).toBe(0)
  expect(out).toContain('schedule  gpu(2)')
  // Nothing was measured that ceilings could be missed for.
  if (out.includes('not measured')) expect(out).not.toContain('ceilings')
  expect(out).toContain('blocks × threads  6 × 2 (2 × 3 × 1 of 1 × 2 × 1)')
})

test('a schedule without loop steps is shown with the form of its loops', async () => {
  const text = `import "sparsetile/kernels/formats.spt"\n${PROGRAM}\nschedule mul.stored { A as dcsr }\n`
  const { out } = await spt(['explain', folder.file('stored.spt', text), ...bound, '--schedule', 'stored'])
  expect(out).toMatch(/^schedule +stored\n +default: .*\nsums/m)
  expect(out).toMatch(/^ceilings .*\ntime /m)
})

test.each([
  ['other', 'webgpu', 'mine', /^cost model: other, measured on another chip, .*spt calibrate/],
  ['other', 'webgpu', null, /^cost model: other$/],
  ['mine', 'webgpu', 'mine', /^cost model: mine$/],
  ['other', 'cpu', 'JavaScript', /^cost model: other, measured on another chip, .*spt calibrate/],
  ['this', 'cpu', 'JavaScript', /^cost model: this$/],
  ['this (4 × 1a2b)', 'cpu', 'JavaScript', /^cost model: this \(4 × 1a2b\)$/],
  [null, 'webgpu', 'mine', /^$/],
] as const)('a prediction of a model of %s on %s %s', (of, kind, device, said) => {
  expect(costModelText(of, kind, device, ['this', 'this (4 × 1a2b)'])).toMatch(said)
})

test('a model that was calibrated on this processor is not of another chip', () => {
  const { name } = chipOf({ kind: 'cpu', name: 'JavaScript' })
  expect(costModelText(name, 'cpu', 'JavaScript')).toBe(`cost model: ${name}`)
})

test("a selection by another chip's cost model is reported", async () => {
  const files = ['--bind', `A=${matrix}`, '--size', 'd=128', '--device', 'webgpu']
  const { code, out } = await spt(['explain', 'sparsetile/kernels/spmm.spt', ...files])
  expect(code).toBe(0)
  const [, device] = /^device +(.*)$/m.exec(out)!
  if (device!.includes('SwiftShader'))
    expect(out).toMatch(
      /^selected +by a rule: on a software adapter, compiling tuned loops takes longer .* \(--schedule auto /m,
    )
  else if (!device!.includes('h100'))
    expect(out).toMatch(
      /^selected +by auto: .*\npredicted +[\d.]+ ms \(runner-up .*; cost model: nvidia-h100/m,
    )
})

test.each([
  [['--device', 'tpu'], 2, '--device tpu is not possible'],
  [['--schedule', 'fast'], 1, 'fast'],
  [['--size', 'q=3'], 1, 'has no size or scalar q'],
  [['--bind', 'Q=a.mtx'], 1, 'Q'],
  [['--json', 'nowhere/at/all.json'], 1, "no folder 'nowhere/at'"],
] as const)('%j is a mistake', async (args, code, said) => {
  const given = args.includes('--device' as never) ? args : [...args, '--device', 'cpu']
  const result = await spt(['explain', program, ...bound, ...given])
  expect([result.code, result.out]).toEqual([code, ''])
  expect(result.err).toContain(said)
})
