/** Gradients of rounds with a constant number: those of the statements written out, and of central differences. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { checkGradients, smooth } from '../support/gradient-check.ts'
import { refusal } from '../support/refusal.ts'

const RECURRENT = (steps: string) => `kernel recurrent(inputs: size, units: size) {
  axis t = dense_fixed(${steps})
  axis p = dense_fixed(inputs)
  axis h = dense_fixed(units)
  axis g = dense_fixed(units)
  buffer X: f64[t, p] in
  buffer W: f64[h, p] in
  buffer U: f64[h, g] in
  buffer h0: f64[h] in
  buffer H: f64[t, h] out
  iterate step [t] as T {
    buffer a: f64[h] local
    iterate input [h, p] as SR { a[h] += W[h, p] * X[t, p] }
    iterate state [h, g] as SR { a[h] += U[h, g] * select(t == 0, h0[g], H[t - 1, g]) }
    iterate output [h] as S { H[t, h] = tanh(a[h]) }
  }
}`
const PAGERANK = `kernel pagerank(n: size, damping: f64) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(n)
  axis t = dense_fixed(3)
  buffer A: f64[i, j] in
  buffer v: f64[k] in
  buffer x: f64[k] out
  iterate start [k] as S { x[k] = v[k] }
  iterate step [t] as T {
    buffer y: f64[i] local
    iterate product [i, j] as SR { y[i] += A[i, j] * x[j] }
    iterate damp [k] as S { x[k] = (1.0 - damping) * v[k] + damping * y[k] * y[k] }
  }
}`
const SCAN = `kernel scan(m: size) {
  axis t = dense_fixed(3)
  axis i = dense_fixed(m)
  buffer x: f64[t, i] in
  buffer S: f64[t, i] out
  buffer total: f64[i] out
  iterate step [t] as T {
    iterate add [i] as S { S[t, i] = S[t - 1, i] * x[t, i] + x[t, i] }
    iterate sum [i] as S { total[i] += S[t, i] * f64(t + 1) }
  }
}`

test.each([
  ['a recurrent network', RECURRENT('3'), { inputs: 2, units: 3 }, { X: 6, W: 6, U: 9, h0: 3 }, ['H']],
  ['a scan', SCAN, { m: 2 }, { x: 6 }, ['S', 'total']],
  [
    'a sparse matrix',
    PAGERANK,
    { n: 3, damping: 0.8 },
    {
      A: [
        [0, 0, 1, 2],
        [1, 2, 0, 1],
      ],
      v: 3,
    },
    ['x'],
  ],
] as const)('the gradient of %s', (_, text, params, sizes, results) => {
  const kernel = parseProgram(text).kernel().source
  const buffers = Object.fromEntries(
    Object.entries(sizes).map(([name, n]) => {
      const values = Array.from({ length: typeof n === 'number' ? n : n[0].length }, () => 0)
      return [name, typeof n === 'number' ? values : { coords: n, values }]
    }),
  )
  const inputs = smooth(kernel, { params, buffers }, 7)
  for (const by of results)
    for (const c of checkGradients(kernel, inputs, by, Object.keys(sizes), 3)) {
      expect(c.isKink).toBe(false)
      expect(Math.abs(c.actual - c.expected), `${by} ${c.tensor}`).toBeLessThan(1e-6)
    }
})

test('the gradient of rounds is that of the statements written out', () => {
  const scan = parseProgram(SCAN).kernel().gradient('S', ['x'])
  expect(scan.show(1)).toMatchInlineSnapshot(`
    "kernel scan_gradient(m: size) {
      axis t = dense_fixed(3)
      axis i = dense_fixed(m)
      buffer x: f64[t, i] in
      buffer S: f64[t, i] local
      buffer d_S: f64[t, i] in
      buffer d_S_sum: f64[t, i] local
      buffer d_x: f64[t, i] out
      iterate add [i] as S {
        S[0, i] = 0 * x[0, i] + x[0, i]
      }
      iterate add_1 [i] as S {
        S[1, i] = S[0, i] * x[1, i] + x[1, i]
      }
      iterate add_2 [i] as S {
        S[2, i] = S[1, i] * x[2, i] + x[2, i]
      }
      iterate d_S_d_S_sum [t, i] as SS {
        d_S_sum[t, i] += d_S[t, i]
      }
      iterate add_2_d_S_d_x [i] as S {
        d_S_sum[1, i] += d_S_sum[2, i] * x[2, i]
        d_x[2, i] += d_S_sum[2, i] + d_S_sum[2, i] * S[1, i]
      }
      iterate add_1_d_S_d_x [i] as S {
        d_S_sum[0, i] += d_S_sum[1, i] * x[1, i]
        d_x[1, i] += d_S_sum[1, i] + d_S_sum[1, i] * S[0, i]
      }
      iterate add_d_x [i] as S {
        d_x[0, i] += d_S_sum[0, i]
      }
    }"
  `)
})

test('temporaries of rounds are named once for all rounds', () => {
  const kernel = parseProgram(RECURRENT('3')).kernel()
  const text = kernel.gradient('H', ['W'], { recomputing: ['a'] }).show(1)
  expect(text.match(/buffer a_(1_|2_)?again\w*:/g) ?? text).toHaveLength(3)
  const code = refusal(() => kernel.gradient('H', ['W'], { stopping: ['a'] })).code
  expect(code).toBe('derive/independent')
})

test('rounds without a constant number are rejected', () => {
  const said = (text: string, by: string, of: string) => {
    const { code, message, hint } = refusal(() => parseProgram(text).kernel().gradient(by, [of]))
    return [code, message, hint]
  }
  const hint = 'give the axis of the rounds a constant extent, or derive a kernel of one round'
  expect(said(RECURRENT('inputs'), 'H', 'W')).toEqual([
    'derive/rounds',
    'kernel recurrent has rounds step, whose number is not a constant up to 256',
    hint,
  ])
  const ending = PAGERANK.replace('iterate step [t] as T', 'iterate step [t] as T while (e[] < 1.0)')
    .replace('buffer y:', 'iterate next [] { e[] = e[] + 0.5 } buffer y:')
    .replace('iterate start', 'buffer e: f64[] local iterate zero [] { e[] = 0.0 } iterate start')
  expect(said(ending, 'x', 'A')).toEqual([
    'derive/rounds',
    'kernel pagerank has rounds step, which a condition ends',
    hint,
  ])
})
