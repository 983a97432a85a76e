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
