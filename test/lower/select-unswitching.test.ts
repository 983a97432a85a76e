/** Selections whose condition no iteration changes become branches around the elements, where one arm asks more than the other. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'

const text = (condition: string, allowed: string, steps: string): string => `
kernel k(m: size, n: size, c: i32) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer X: f32[i, j] in
  buffer W: i32[i] in
  buffer Z: i32[j] in
  buffer T: f32[i, j] local
  buffer Y: f32[i] out
  iterate hide [i, j] as SS {
    T[i, j] = select(${condition}, X[i, j], select(${allowed}, X[i, j], -inf))
  }
  iterate top [i, j] as SR { Y[i] max= T[i, j] }
}
schedule k.s { ${steps} }`

const INSIDE = 'join (hide, top) at hide.i  cache_write T at joined.i in register'
const STEPS = [
  '',
  `require n == 8  ${INSIDE}`,
  'split hide.j by 4 -> (jo, ji)',
  'split hide.j by 4 -> (jo, ji)  unroll ji',
  'split hide.j by 4 -> (jo, ji)  vectorize ji',
]

test.each(
  ['W[i] == 0 or c == 1', 'W[i] == Z[0]', 'c == 0', 'Z[j] == 1'].flatMap((w) =>
    ['j <= i', 'W[i] == Z[j]'].flatMap((a) => STEPS.map((s) => [w, a, s] as const)),
  ),
)('%s, otherwise %s: %s', async (condition, allowed, steps) => {
  const kernel = parseProgram(text(condition, allowed, steps))
    .kernel()
    .schedule('s')
  const compiled = await kernel.build(createCpuDevice())
  for (const c of [0, 1]) {
    const prepared = await compiled.bind({ m: 7, n: 8, c }, { seed: 1 + c })
    expect((await prepared.verify()).problems).toEqual([])
  }
})

const emitted = (condition: string, allowed: string): string => {
  const steps = 'split hide.j by 4 -> (jo, ji)  unroll ji'
  return parseProgram(text(condition, allowed, steps))
    .kernel()
    .schedule('s')
    .emit('cuda')[0]!.text
}

test('invariant conditions become a branch around all elements; others stay in each', () => {
  for (const allowed of ['W[i] == Z[j]', 'c == 1']) {
    expect(emitted('W[i] == 0', allowed)).toMatch(/T\[\w+\] = X\[\w+\];/)
    expect(emitted('Z[j] == 0', allowed)).not.toMatch(/T\[\w+\] = X\[\w+\];/)
  }
})
