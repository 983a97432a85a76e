/** What \`attach\` asks of the axes it brings together. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../../src/api/programs/program.ts'

const joined = (axes: string, head: string, kinds: string): string => `
kernel k(m: size, n: size, p: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  ${axes}
  axis l = sparse_variable(r, p)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate sum [${head}] as ${kinds} {
    if (r == j) { y[i] += A[i, j] * B[${head.slice(6)}] }
  }
}`
const use = (text: string) => parseProgram(text).kernel().attach('l', 'j')

test('rows of a matrix are entered by a coordinate', () => {
  const text = joined('axis r = dense_fixed(n)', 'i, j, r, l', 'SRRR').replace(
    'buffer y',
    'buffer B: f32[r, l] in\n  buffer y',
  )
  expect(use(text).compilation.kernel.axes.some((a) => a.kind === 'attached')).toBe(true)
})

test('positions under another axis are not coordinates', () => {
  const text = joined(
    'axis q = dense_fixed(m)\n  axis r = dense_fixed(q, n)',
    'i, j, q, r, l',
    'SRRRR',
  ).replace('buffer y', 'buffer B: f32[q, r, l] in\n  buffer y')
  expect(() => use(text)).toThrow(/do not have the same extent/)
})
