/** What CUDA texts call what several types have: the device that runs them is not everywhere. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'

const statement = async (dtype: string, value: string, to = dtype): Promise<string> => {
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer X: ${dtype}[i] in
    buffer Y: ${to}[i] out
    iterate s [i] as S { Y[i] = ${value} }
  }`
  const [module] = (await load(text)).kernel().emit('cuda')
  return /Y\[.*\] = (.*);/.exec(module!.text)![1]!
}

test.each([
  ['f32', 'fabsf(X[i])'],
  ['f64', 'fabs(X[i])'],
  ['i32', 'abs_of(X[i])'],
  ['u32', 'X[i]'],
])('the absolute value of %s', async (dtype, text) => {
  expect(await statement(dtype, 'abs(X[i])')).toBe(text)
})

test.each([
  ['f32', 'f32(f16(X[i]))', 'f16_to_f32(f32_to_f16(X[i]))'],
  ['f32', 'f32(bf16(X[i]))', 'bf16_to_f32(f32_to_bf16(X[i]))'],
  ['f64', 'f32(f16(X[i]))', 'f16_to_f32(f32_to_f16(odd(X[i])))'],
])('of %s, the intermediate %s is rounded', async (dtype, value, text) => {
  expect(await statement(dtype, value, 'f32')).toBe(text)
})

test('a buffer with the name of a generated function is renamed', async () => {
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer log1pf: f32[i] in
    buffer __popc: i32[i] in
    buffer Y: f32[i] out
    iterate s [i] as S { Y[i] = log1p(log1pf[i]) + f32(popcount(__popc[i])) }
  }`
  const [module] = (await load(text)).kernel().emit('cuda')
  expect(module!.text).toContain('= log1pf(log1pf_1[i]) + (float)(__popc(v__popc[i]));')
})
