/**
 * A factor that is not finite where a tensor holds nothing changes no result: formats that visit such coordinates refuse it
 * while data are bound, if padding lies there, or verifying says what the format takes.
 */
import { beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/program.ts'
import { SptError } from '../../src/ast/diagnostic.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { withValues } from '../../src/run/bind/update-values.ts'
import { compileOn, Executable } from '../../src/run/execute.ts'
import { verify } from '../../src/run/verify.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
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

test.each([
  ['A[i, j] * B[j, f]', Number.NaN],
  ['A[i, j] * B[j, f]', Number.POSITIVE_INFINITY],
  ['2.0 * (B[j, f] * A[i, j])', Number.NEGATIVE_INFINITY],
  ['A[i, j] / B[j, f]', 0],
  ['A[i, j] * exp(B[j, f])', 1000],
])('%s with %f', async (value, strange) => {
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
      executable = await Executable.create(await compileOn(device, c.plan), bound)
    } catch (e) {
      if (!(e instanceof SptError)) throw e
      if (/padding/.test(e.diagnostics[0]!.code)) seen.refused++
      continue
    }
    const { problems } = await verify(source.source, executable)
    if (problems.length === 0) seen.same++
    else {
      seen.told++
      expect(problems.join(), format.name).toMatch(
        /differs from the coordinates that A holds by products of 0 and/,
      )
    }
    executable.free()
  }
  expect(seen.same).toBeGreaterThan(10)
  if (strange !== 0) expect(seen.told).toBeGreaterThan(3)
  expect(seen.refused).toBeGreaterThan(value.includes('exp') ? -1 : 0)
})

test('new values are looked at, too', () => {
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
