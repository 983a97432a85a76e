/** Data for a kernel that is checked without the caller's. */
import { expect, test } from 'vitest'
import { smallData } from '../../src/api/inputs/small-data.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { load } from '../../src/node.ts'

test('sizes are uneven or satisfy what a schedule requires, and scalars are small', async () => {
  const kernel = (
    await load(`kernel scaled(m: size, n: size, alpha: f32, shift: i32) {
      axis i = dense_fixed(m)
      axis j = dense_fixed(n)
      buffer A: f32[i, j] in
      buffer C: f32[i, j] out
      iterate s [i, j] as SS { C[i, j] = A[i, j] * alpha + shift }
    }`)
  ).kernel()
  const params = (k: typeof kernel) => {
    const data = smallData(k.compilation)
    if (data instanceof SptError) throw data
    return Object.fromEntries(data.bound.params)
  }
  expect(params(kernel)).toEqual({ m: 13, n: 11, alpha: 0.5, shift: 2 })
  expect(params(kernel.require('m', { multiple: 8 }))).toEqual({ m: 16, n: 11, alpha: 0.5, shift: 2 })
})
