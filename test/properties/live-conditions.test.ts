/** Conditions on a live tensor: `where` of an iteration means the same as `if` around its body. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from './agree.ts'
import { LIVE } from './live-gen.ts'

const CSR = `format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}`

const kernel = (loop: string): string => `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer S: f32[i, j] in
  buffer B: f32[j, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS ${loop}
}`
const SUM = 'C[i, f] += S[i, j] * B[j, f]'
const scheduled = (format: string, loop: string, step: string) =>
  parseProgram(`${format}\n${kernel(loop)}\nschedule k.s { A as ${step} live in place }`)
    .kernel()
    .schedule('s')

test.each([
  ['A[i, j] != 0', null],
  ['A[i, j] != 0 and i <= j', 'io <= jo_of_A[io, jo]'],
])('a listed element holds a value, so no condition remains of where (%s)', (condition, rest) => {
  const last = (loop: string): string => scheduled(CSR, loop, 'csr').show(1).split('iterate sum')[1]!
  const text = last(`where (${condition}) { ${SUM} }`)
  expect(text).toContain(`where (jo < counts_A[0, io]${rest ? ` and ${rest}` : ''}) {`)
  expect(last(`{ if (${condition}) { ${SUM} } }`).replace(/\s+/g, ' ')).toContain(
    rest ? `where (jo < counts_A[0, io]) { if (${rest}) {` : 'where (jo < counts_A[0, io]) { C',
  )
})

const dense = (shape: readonly number[], of: (k: number) => number) =>
  ({
    kind: 'dense',
    dtype: 'f32',
    shape,
    values: Float32Array.from({ length: shape.reduce((a, b) => a * b) }, (_, k) => of(k)),
  }) as const

test.each(['panels(2, 4)', 'blocks(2, 4)', 'rows_of(2, 3)'] as const)(
  'blocks contain elements that do not satisfy where: %s',
  async (step) => {
    const { text } = LIVE[step.split('(')[0] as keyof typeof LIVE]
    const { compilation } = scheduled(text, `where (A[i, j] != 0 and i <= j) { ${SUM} }`, step)
    const A = dense([5, 7], (k) => (k % 3 === 0 ? 0 : k))
    const [S, B] = [dense([5, 7], (k) => (k % 5) - 2), dense([7, 2], (k) => k - 6)]
    await agreeOnAll(compilation, { tensors: { A, S, B } })
  },
)
