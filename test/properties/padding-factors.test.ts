/**
 * A factor that is not finite where a tensor holds nothing changes no result: formats that visit such coordinates refuse it
 * while data are bound, if padding lies there, or verifying says what the format takes.
 */
import { beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { withValues } from '../../src/run/bind/results/update-values.ts'
import { compileOn } from '../../src/run/compile/compiled-program.ts'
import { Executable } from '../../src/run/execution/execute.ts'
import { verify } from '../../src/run/verify/verify.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { sample, scaled } from '../support/cases.ts'
import { Choices } from '../support/choices.ts'
import { argumentsFor } from '../support/format-gen.ts'
import { type Pool, poolOf } from './formats.ts'

const [m, n, d] = [7, 6, 2]
const kernel = (value: string): string => `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer Y: f32[i, f] out
  iterate sum [i, j, f] as SRS { Y[i, f] += ${value} }
}`
// Nothing lies in columns 0 and 3.
const A: Tensor = {
  kind: 'coords',
  shape: [m, n],
  coords: [Int32Array.of(0, 0, 2, 2, 2, 5), Int32Array.of(1, 4, 1, 2, 5, 4)],
  values: Float32Array.of(1, 2, 3, 4, 5, 6),
  dtype: 'f32',
}
const dense = (strange: number): Tensor => {
  const values = Float32Array.from({ length: n * d }, (_, k) => 1 + (k % 4))
  for (const row of [0, 3]) values[row * d + 1] = strange
  return { kind: 'dense', shape: [n, d], values, dtype: 'f32' }
}

let pool: Pool
beforeAll(async () => {
  pool = await poolOf(20)
})

/** Others in every run: each goes over all formats. */
const FACTORS = [
  ['A[i, j] * B[j, f]', Number.NaN],
  ['A[i, j] * B[j, f]', Number.POSITIVE_INFINITY],
  ['2.0 * (B[j, f] * A[i, j])', Number.NEGATIVE_INFINITY],
  ['A[i, j] / B[j, f]', 0],
  ['A[i, j] * exp(B[j, f])', 1000],
] as const
test.each(sample(FACTORS, 6))('%s with %f', async (value, strange) => {
  const device = createCpuDevice()
  const source = parseProgram(kernel(value)).kernel().compilation
  const seen = { same: 0, refused: 0, told: 0 }
  const formats = [...pool.standard, ...pool.composed.slice(0, 8)].filter(
    (f) => f.kind !== 'family' && f.over.length === 2 && !f.params.some((p) => p.kind !== 'integer'),
  )
  for (const format of formats) {
    let executable: Executable
    try {
      const args = argumentsFor(new Choices([]), format).map((a, k) =>
        format.name === 'ell_at' && k === 0 ? 0 : a,
      )
      const c = source.onCoords({ kind: 'as', buffer: 'A', format, args })
      const bound = bindInputs(c.kernel, { tensors: { A, B: dense(strange) }, params: { m, n, d } })
      executable = await Executable.create(await compileOn(device, c), bound)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      if (/padding/.test(e.diagnostics[0]!.code)) seen.refused++
      continue
    }
    const { problems } = await verify(source.source, executable)
    if (problems.length === 0) seen.same++
    else {
      seen.told++
      expect(problems.join(), format.name).toMatch(/takes 0 times .*, where A holds nothing, for 0/)
    }
    executable.free()
  }
  expect(seen.same).toBeGreaterThan(scaled(10))
  if (strange !== 0) expect(seen.told).toBeGreaterThan(scaled(3))
  expect(seen.refused).toBeGreaterThan(value.includes('exp') ? -1 : 0)
})

test('written values are checked too', () => {
  const format = pool.standard.find((f) => f.name === 'ell_at')!
  const c = parseProgram(kernel('A[i, j] * B[j, f]'))
    .kernel()
    .compilation.onCoords({
      kind: 'as',
      buffer: 'A',
      format,
      args: [3],
    })
  const bindWith = (x: number) => bindInputs(c.kernel, { tensors: { A, B: dense(x) }, params: { m, n, d } })
  expect(() => bindWith(Number.NaN)).toThrow('B[3, 1] is NaN')
  expect(() => withValues(bindWith(1), 'B', dense(Number.NaN))).toThrow('B[3, 1] is NaN')
})

const product = (statement: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(n)
  buffer M: f32[i, j] in
  buffer B: f32[i, j] in
  buffer S: f32[i, j] local
  buffer y: f32[i] out
  iterate score [i, j] as SS { S[i, j] = B[i, j] + 1.0 }
  iterate sum [i, j] as SR { ${statement} }
}`

const FOUND = [
  ['y[i] += M[i, j] * S[i, j]', true],
  ['y[i] += M[i, j] * B[i, j]', true],
  ['if (M[i, j] != 0.0) { y[i] += M[i, j] * B[i, j] }', false],
  ['y[i] += select(M[i, j] != 0.0, M[i, j] * S[i, j], 0.0)', false],
] as const
test.each(sample(FOUND, 6))('live formats, or masks, of %s', async (statement, multiplies) => {
  const device = createCpuDevice()
  const source = parseProgram(product(statement)).kernel().compilation
  const wide = (values: readonly number[]): Tensor => ({
    kind: 'dense',
    shape: [m, n],
    values: Float32Array.from({ length: m * n }, (_, e) => values[e] ?? (e % 5 === 0 ? 2 : 0)),
    dtype: 'f32',
  })
  const steps = [...pool.standard, null]
    .filter((f) => !f || (f.kind !== 'family' && f.over.length === 2))
    .map((format) => (c: typeof source) => {
      if (!format) return c.onCoords({ kind: 'mask', nest: 'sum', buffer: 'M' })
      const args = argumentsFor(new Choices([]), format)
      return c.onCoords({ kind: 'as', buffer: 'M', format, args, live: 'live in place' })
    })
  const seen = { live: 0, mask: 0 }
  for (const step of steps) {
    let c: typeof source
    try {
      c = step(source)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      continue
    }
    for (const strange of [1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const tensors = { M: wide([]), B: wide([1, strange]) }
      const executable = await Executable.create(
        await compileOn(device, c),
        bindInputs(c.kernel, { tensors, params: { m, n } }),
      )
      const { problems } = await verify(source.source, executable)
      executable.free()
      if (!multiplies || strange === 1) expect(problems).toEqual([])
      if (problems.length === 0) continue
      expect(problems.join()).toMatch(/^y\[0\] is .* the reference has NaN/)
      expect(problems[1]).toMatch(
        /^(\w+(\(.*\))? live|mask sum by M) takes 0 times [BS]\[i.*, j.*\], where M holds nothing, for 0: .*NaN or infinity is NaN; exclude these terms with an if or a select on M$/,
      )
      seen[problems[1]!.startsWith('mask') ? 'mask' : 'live']++
    }
  }
  if (multiplies) expect(seen.live).toBeGreaterThan(scaled(5))
  expect(seen.mask).toBe(multiplies ? 2 : 0)
})
