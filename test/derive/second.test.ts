/** Second derivatives: the gradient of a gradient agrees with central differences. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { gradient } from '../../src/derive/gradient.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { reference } from '../../src/reference/index.ts'
import { checkGradients } from '../support/gradient-check.ts'

const gradientOf = (kernel: Kernel1): Kernel1 =>
  gradient(kernel, { name: 'back', by: { name: 'Y' }, wrt: [{ name: 'X' }] })

const kernelOf = (statements: string) =>
  parseProgram(`kernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  buffer X: f64[i, j] in
  buffer M: f64[i]    local
  buffer Y: f64[i]    out
  ${statements}
}`).kernel()

test.each([
  ['iterate sum [i, j] as SR { Y[i] += X[i, j] * X[i, j] * tanh(X[i, j]) }'],
  [
    'iterate peak [i, j] as SR { M[i] max= X[i, j] * X[i, j] } iterate out [i] as S { Y[i] = M[i] * exp(M[i]) }',
  ],
])('%s', (statements) => {
  const kernel = kernelOf(statements).gradient('Y', ['X']).source
  const X = [0.3, 0.8, 1.1, 0.9, 0.4, 0.2]
  const inputs = { params: { n: 2, m: 3 }, buffers: { X, d_Y: [0.7, -0.4] } }
  for (const c of checkGradients(kernel, inputs, 'd_X', ['X', 'd_Y'], 3)) {
    expect(c.isKink).toBe(false)
    expect(Math.abs(c.actual - c.expected)).toBeLessThan(1e-6)
  }
})

test('the adjoint of a factor is the product of the others, also at zeros', () => {
  const kernel = kernelOf('iterate all [i, j] as SR { Y[i] *= X[i, j] }').source
  const X = [2, 3, 5, 2, 0, 5, 0, 3, 0]
  const inputs = { params: { n: 3, m: 3 }, buffers: { X, d_Y: [1, 1, 1] } }
  const back = parseProgram(print1(gradientOf(kernel))).kernel('back').source
  expect([...reference(back, inputs).buffers.d_X!.values]).toEqual([15, 10, 6, 0, 10, 0, 0, 0, 0])
  for (const c of checkGradients(kernel, inputs, 'Y', ['X'], 3))
    expect(Math.abs(c.actual - c.expected)).toBeLessThan(1e-6)
})

test('second derivatives of products are exact at zeros', () => {
  const kernel = kernelOf('iterate all [i, j] as SR { Y[i] *= X[i, j] }').source
  // Rows without, with one, two and three zeros.
  const X = [2, 3, 5, 7, 2, 0, 5, 3, 0, 3, 0, 2, 0, 4, 0, 0]
  const inputs = { params: { n: 4, m: 4 }, buffers: { X, d_Y: [0.7, -0.4, 1.1, 0.9] } }
  const back = parseProgram(print1(gradientOf(kernel))).kernel('back').source
  for (const c of checkGradients(back, inputs, 'd_X', ['X', 'd_Y'], 3))
    expect(Math.abs(c.actual - c.expected), c.tensor).toBeLessThan(1e-6)
  // Of one row with two zeros: d²Y / dX[0] dX[2] = 3 * 2.
  const one = { params: { n: 1, m: 4 }, buffers: { X: [0, 3, 0, 2], d_Y: [1], d_d_X: [1, 0, 0, 0] } }
  const request = { name: 'twice', by: { name: 'd_X' }, wrt: [{ name: 'X' }] }
  const twice = parseProgram(print1(gradient(back, request))).kernel('twice').source
  expect([...reference(twice, one).buffers.d_X_2!.values]).toEqual([0, 0, 6, 0])
})
