/** Second and third derivatives: the gradient of a gradient agrees with central differences. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { gradient } from '../../src/derive/gradient.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { reference } from '../../src/reference/index.ts'
import { checkGradients, inDoubles } from '../support/gradient-check.ts'

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

test('third derivatives of products are exact at zeros', () => {
  const kernel = kernelOf('iterate all [i, j] as SR { Y[i] *= X[i, j] }')
  const X = [2, 3, 5, 7, 2, 0, 5, 3, 0, 3, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0]
  const direction = X.map((_, k) => Math.sin(k + 1))
  const inputs = { params: { n: 5, m: 4 }, buffers: { X, d_Y: [0.7, -0.4, 1.1, 0.9, 0.6], d_d_X: direction } }
  const twice = kernel.gradient('Y', ['X']).gradient('d_X', ['X', 'd_Y'])
  for (const by of ['d_X_2', 'd_d_Y'])
    for (const c of checkGradients(
      twice.source,
      inputs,
      by,
      ['X', 'd_Y', 'd_d_X'].slice(0, by === 'd_X_2' ? 3 : 1),
      3,
    ))
      expect(Math.abs(c.actual - c.expected), `${by} ${c.tensor}`).toBeLessThan(1e-5)
})

// The monoids of the packaged kernels, in float64.
const [ONLINE, RELATIVE] = ['attention', 'flexible-attention'].map((file) => {
  const text = readFileSync(new URL(`../../kernels/${file}.spt`, import.meta.url), 'utf8')
  return inDoubles(/^monoid [\s\S]*?^\}$/m.exec(text)![0])
}) as [string, string]

test.each([
  ['online', '(X[i, j] * X[i, j], 1.0, V[i, j])', 'select(S[i] != 0, W[i] / S[i], 0)'],
  ['online', '(X[i, j] * V[i, j], V[i, j], V[i, j] * X[i, j])', 'W[i] / S[i]'],
  ['relative', '(X[i, j] * V[i, j], V[i, j])', 'log(S[i]) + M[i] * log(2.0)'],
])('second and third derivatives through the rule of %s of %s', (monoid, operands, result) => {
  const targets = monoid === 'online' ? '(M[i], S[i], W[i])' : '(M[i], S[i])'
  const kernel = parseProgram(`${ONLINE}\n${RELATIVE}\nkernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  buffer X: f64[i, j] in
  buffer V: f64[i, j] in
  buffer M: f64[i] local
  buffer S: f64[i] local
  buffer W: f64[i] local
  buffer Y: f64[i] out
  iterate sums [i, j] as SR { ${targets} ${monoid}= ${operands} }
  iterate last [i] as S { Y[i] = ${result} }
}`).kernel()
  const X = [0.3, 0.8, 1.1, 0.9, 0.4, 0.2]
  const V = [0.5, 0.7, 0.8, 0.3, 0.6, 0.9]
  const inputs = {
    params: { n: 2, m: 3 },
    buffers: { X, V, d_Y: [0.7, -0.4], d_d_X: [1, -0.5, 0.3, 0.2, 0.7, -1] },
  }
  const once = kernel.gradient('Y', ['X', 'V'])
  const twice = once.gradient('d_X', ['X', 'V'])
  for (const c of [
    ...checkGradients(once.source, inputs, 'd_X', ['X', 'V', 'd_Y'], 3),
    ...checkGradients(twice.source, inputs, 'd_X_2', ['X', 'V', 'd_Y', 'd_d_X'], 3),
  ])
    expect(Math.abs(c.actual - c.expected), c.tensor).toBeLessThan(1e-6)
})

test.each([
  'select(X[i, j] > 0, sqrt(X[i, j]), X[i, j])',
  'select(X[i, j] > 0, exp(sqrt(X[i, j])), X[i, j])',
  'select(X[i, j] > 0, sin(log(X[i, j])) * log(X[i, j]), X[i, j])',
  'tanh(select(X[i, j] > 0, sqrt(X[i, j]) * X[i, j], X[i, j]))',
  'select(X[i, j] > 0, sqrt(X[i, j]), 0) + select(X[i, j] > 0.1, 3 * sqrt(X[i, j]), 0)',
])('derivatives of the branch that is not taken do not matter: %s', (value) => {
  const kernel = kernelOf(`iterate sum [i, j] as SR { Y[i] += ${value} }`).gradient('Y', ['X']).source
  const inputs = { params: { n: 1, m: 4 }, buffers: { X: [-0.5, 0.3, 1.1, -0.2], d_Y: [0.7] } }
  for (const c of checkGradients(kernel, inputs, 'd_X', ['X', 'd_Y'], 3))
    expect(Math.abs(c.actual - c.expected), c.tensor).toBeLessThan(1e-5)
})

test.each([
  ['pow(X[i, j], 2.0)', 2],
  ['pow(X[i, j], f64(i + 2))', 2],
  ['pow(X[i, j], f64(i + 1))', 0],
])('second derivatives of powers are finite at 0: %s', (value, expected) => {
  const kernel = kernelOf(`iterate sum [i, j] as SR { Y[i] += ${value} }`).gradient('Y', ['X']).source
  const request = { name: 'twice', by: { name: 'd_X' }, wrt: [{ name: 'X' }] }
  const twice = parseProgram(print1(gradient(kernel, request))).kernel('twice').source
  const inputs = { params: { n: 1, m: 2 }, buffers: { X: [0, 0.5], d_Y: [1], d_d_X: [1, 1] } }
  const values = [...reference(twice, inputs).buffers.d_X_2!.values]
  for (const v of values) expect(v).toBeCloseTo(expected)
})
