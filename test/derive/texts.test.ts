/** Derived kernels read like kernels that a person wrote. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { gradient } from '../../src/derive/gradient.ts'
import { type Diagnostic, devices, load } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { read } from '../elaborate/support.ts'

/** The declarations of adjoints and the backward iterations, a line each. */
function backward(
  text: string,
  by: string,
  wrt: readonly string[],
  stopping: readonly string[] = [],
): string {
  const shown = parseProgram(text).kernel().gradient(by, wrt, { stopping }).show(1)
  return shown
    .slice(shown.lastIndexOf('kernel '))
    .split(/\n {2}(?=[a-z])/)
    .filter((member) => /d_/.test(member))
    .map((member) => member.replace(/\s+/g, ' '))
    .join('\n')
    .replace(/ } }$/, ' }')
}

const AXES = 'axis i = dense_fixed(n) axis j = dense_fixed(m)'
const mapped = (value: string, more = '') => `kernel k(n: size, m: size) {
  ${AXES}
  buffer X: f32[i, j] in
  buffer B: f32[i, j] in
  buffer Y: f32[i, j] out
  iterate map [i, j] as SS { ${more} Y[i, j] = ${value} }
}`

test('the gradients of a sparse product are a sampled product and a product with the transpose', async () => {
  const kernel = (await load('kernels/spmm.spt')).kernel('spmm')
  expect(kernel.gradient('C', ['A', 'B']).show(1)).toBe(`kernel spmm_gradient(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer d_C: f32[i, f] in
  buffer d_A: f32[i, j] out
  buffer d_B: f32[jd, f] out
  iterate sum_d_A [i, j, f] as SSR {
    d_A[i, j] += d_C[i, f] * B[j, f]
  }
  iterate sum_d_B [i, j, f] as RSS {
    d_B[j, f] += d_C[i, f] * A[i, j]
  }
}`)
})

test.each([
  ['2 * X[i, j]', 'd_X[i, j] += d_Y[i, j] * 2'],
  ['X[i, j] * B[i, j] - X[i, j]', 'd_X[i, j] += d_Y[i, j] * B[i, j] - d_Y[i, j]'],
  ['select(X[i, j] > 0, X[i, j], 0)', 'd_X[i, j] += select(X[i, j] > 0, d_Y[i, j], 0)'],
  ['max(X[i, j], 0)', 'd_X[i, j] += select(X[i, j] >= 0, d_Y[i, j], 0)'],
  ['exp(X[i, j])', 'd_X[i, j] += d_Y[i, j] * exp(X[i, j])'],
  ['B[i, j] / X[i, j]', 'd_X[i, j] += -(d_Y[i, j] * B[i, j] / X[i, j] / X[i, j])'],
  ['tanh(X[i, j])', 'let t = tanh(X[i, j]) d_X[i, j] += d_Y[i, j] * (1 - t * t)'],
])('%s', (value, statement) => {
  const text = backward(mapped(value), 'Y', ['X'])
  expect(text.slice(text.indexOf('{ ') + 2, text.lastIndexOf(' }'))).toBe(statement)
})

test('elements that may be out of range are written where they exist', () => {
  expect(backward(mapped('select(i > 0, X[i - 1, j], 0)'), 'Y', ['X'])).toContain(
    'iterate map_d_X [i, j] as SS where (i > 0) { d_X[i - 1, j] += d_Y[i, j] }',
  )
  expect(backward(mapped('X[i - 1, j]'), 'Y', ['X'])).toContain('where (i - 1 >= 0) {')
})

test('an index that is loaded may be out of range', () => {
  const text = backward(
    `kernel k(n: size, m: size) {
      ${AXES}
      buffer G: i32[i] in
      buffer X: f32[j] in
      buffer Y: f32[i] out
      iterate map [i] as S { Y[i] = sin(X[G[i]]) }
    }`,
    'Y',
    ['X'],
  )
  expect(text).toContain('[i] as R where (G[i] >= 0 and G[i] < m) { d_X[G[i]] += d_Y[i] * cos(X[G[i]]) }')
})

test('a maximum passes its gradient to the first of the greatest', () => {
  const text = backward(
    `kernel k(n: size, m: size) {
      ${AXES}
      buffer X: f32[i, j] in
      buffer Y: f32[i] out
      iterate rows [i, j] as SR { Y[i] max= X[i, j] }
    }`,
    'Y',
    ['X'],
  )
  expect(text).toContain('iterate rows_d_X [i, j] as SS where (j == Y_j[i]) { d_X[i, j] += d_Y[i] }')
})

test('the gradient of a maximum goes to a selected NaN, on every device', async () => {
  const program = parseProgram(`kernel k(n: size, m: size) {
    ${AXES}
    buffer X: f32[i, j] in
    buffer Y: f32[i] out
    iterate rows [i, j] as SR { Y[i] max= X[i, j] }
  }`)
  const back = program.kernel().gradient('Y', ['X'])
  const inputs = { X: [1, Number.NaN, 3, 2, 4, 4, Number.NaN, 1, Number.NaN], d_Y: [5, 6, 7], n: 3, m: 3 }
  const expected = [0, 5, 0, 0, 6, 0, 7, 0, 0]
  const { n, m, ...buffers } = inputs
  expect([...reference(back.source, { params: { n, m }, buffers }).buffers.d_X!.values]).toEqual(expected)
  for (const device of [await devices.cpu(), await devices.webgpu()])
    expect([...(await (await back.build(device))(inputs)).d_X!.values!]).toEqual(expected)
})

test('an argmax that breaks ties by the smaller index has a gradient', () => {
  const kernel = parseProgram(`monoid best(v: f32, x: f32) {
    identity (-inf, inf)
    combine (a, b) = (max(a.v, b.v), select(a.v > b.v, a.x, select(b.v > a.v, b.x, min(a.x, b.x))))
  }
  kernel k(n: size, m: size) {
    ${AXES}
    buffer X: f32[i, j] in
    buffer W: f32[i, j] in
    buffer V: f32[i] out
    buffer Y: f32[i] out
    iterate rows [i, j] as SR { (V[i], Y[i]) best= (X[i, j], W[i, j]) }
  }`).kernel()
  const buffers = { X: [1, 5, 5, 2, 7, 3], W: [9, 8, 6, 1, 2, 3], d_Y: [10, 20] }
  const { d_W } = reference(kernel.gradient('Y', ['W']).source, { params: { n: 2, m: 3 }, buffers }).buffers
  expect([...d_W!.values]).toEqual([0, 0, 10, 0, 20, 0])
  const mixed = parseProgram(kernel.show(1).replace('min(a.x, b.x)', 'a.x + b.x')).kernel()
  expect(() => mixed.gradient('Y', ['W'])).toThrow('derive/no-rule')
})

test('no gradient passes through step functions, which is reported', () => {
  const warnings: string[] = []
  const text = mapped('X[i, j] * floor(X[i, j]) + f32(i32(B[i, j])) * B[i, j]')
  const request = { onWarning: (w: Diagnostic) => warnings.push(`${w.severity} ${w.code}: ${w.message}`) }
  const back = parseProgram(text).kernel().gradient('Y', ['X', 'B'], request)
  expect(back.show(1)).toContain('d_X[i, j] += d_Y[i, j] * floor(X[i, j])')
  const reported = (value: string): string =>
    `warning derive/step-function: the derivative of ${value} is 0: no gradient passes through it`
  expect(warnings.toSorted()).toEqual(['floor(X[i, j])', 'i32(B[i, j])'].map(reported))
})

test('half-precision temporaries have gradients in f32, and gradients of half-precision inputs accumulate in f32', () => {
  const text = backward(
    `kernel k(n: size, m: size) {
      ${AXES}
      buffer W: f16[i, j] in
      buffer H: f16[i] local
      buffer loss: f32[] out
      iterate sum [i, j] as SR { H[i] += W[i, j] }
      iterate total [i] as R { loss[] += H[i] * H[i] }
    }`,
    'loss',
    ['W'],
  )
  expect(text).toContain('buffer d_H: f32[i] local\nbuffer d_W: f16[i, j] out accumulate f32')
})

test('an updated temporary has a tensor for each version', () => {
  const text = `kernel k(n: size, m: size) {
    ${AXES}
    buffer X: f32[i, j] in
    buffer T: f32[i, j] local
    buffer Y: f32[i, j] out
    iterate a [i, j] as SS { T[i, j] = X[i, j] * X[i, j] }
    iterate b [i, j] as SS { T[i, j] = sin(T[i, j]) }
    iterate c [i, j] as SS { Y[i, j] = T[i, j] * T[i, j] }
  }`
  expect(parseProgram(text).kernel().gradient('Y', ['X']).show(1)).toContain(
    'd_T[i, j] * cos(T_before[i, j])',
  )
})

test('the last index of most elements is the innermost iterator', () => {
  const text = backward(
    `kernel k(n: size, m: size, l: size) {
      axis x = dense_fixed(n)
      axis f = dense_fixed(m)
      axis o = dense_fixed(l)
      buffer X: f32[x, f] in
      buffer W: f32[f, o] in
      buffer Y: f32[x, o] out
      iterate product [x, o, f] as SSR { Y[x, o] += X[x, f] * W[f, o] }
    }`,
    'Y',
    ['X', 'W'],
  )
  expect(text).toContain('iterate product_d_X [x, f, o] as SSR { d_X[x, f] += d_Y[x, o] * W[f, o] }')
  expect(text).toContain('iterate product_d_W [x, f, o] as RSS { d_W[f, o] += d_Y[x, o] * X[x, f] }')
})

test('a temporary that a callee updates in place has a tensor for each version', () => {
  const text = `kernel update(n: size, m: size) {
    ${AXES}
    buffer U: f32[i, j] in
    buffer H: f32[i, j] inout
    iterate add [i, j] as SS { H[i, j] = H[i, j] * sin(U[i, j]) }
  }
  kernel k(n: size, m: size) {
    axis r = dense_fixed(n)
    axis p = dense_fixed(m)
    axis q = dense_fixed(m)
    buffer U: f32[r, q] in
    buffer X: f32[r, p] in
    buffer H: f32[r, p] local
    buffer loss: f32[] out
    iterate start [r, p] as SS { H[r, p] = X[r, p] }
    repeat 2 as l { call update(U, H) }
    iterate total [r, p] as RR { loss[] += H[r, p] }
  }`
  const k = read(text).kernels.get('k')!
  const derived = gradient(k, { name: 'g', by: { name: 'loss' }, wrt: [{ name: 'U' }] })
  const inputs = { params: { n: 1, m: 2 }, buffers: { U: [0.5, 1], X: [3, -1] } }
  const { d_U } = reference(derived, inputs).buffers
  const expected = [3 * Math.sin(1), -1 * Math.sin(2)]
  for (const [e, v] of [...d_U!.values].entries()) expect(v).toBeCloseTo(expected[e]!, 5)
})
