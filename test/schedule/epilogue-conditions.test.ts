/** An epilogue of what several parts combine into under conditions: refused, or it sees each row as it is in the end. */
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { standard } from '../support/packaged-formats.ts'

const BODIES = [
  'SR { S[i] += X[i, p] }',
  'SR where (X[i, p] > 0) { S[i] += X[i, p] }',
  'SR where (p > 1) { S[i] += X[i, p] }',
  'SR where (X[i, p] > 0) { S[i] max= X[i, p] }',
  'SR { if (x[p] > 0) { S[i] += X[i, p] } }',
  'SR { let a = X[i, p] if (a > 1) { S[i] += a } }',
  'SR { S[i] += select(X[i, p] > 0, X[i, p], 0) }',
  'SR { if (X[i, p] > 0) { S[i] += 1 } else { S[i] += X[i, p] } }',
]
const FORMATS = [
  'rows_by_length(2)',
  'csr where (count(j by i) <= 2) + dcsr',
  'csr where (count(j by i) > 2) + dcsr',
  'dcsr where (count(j by i) > 2) + csr',
]
const ROLES = ['local', 'out']
const CASES = BODIES.flatMap((body) =>
  FORMATS.flatMap((format) => ROLES.map((r) => [body, format, r] as const)),
)

const rows = [0, 1, 1, 1, 1, 2, 4, 4, 4]
const columns = [0, 0, 1, 2, 3, 4, 0, 3, 4]
const X = coords([6, 5], [rows, columns], Int32Array.of(7, 1, -2, 3, 4, -5, 2, 2, -1), 'i32')
const x = dense([5], Int32Array.of(1, -1, 0, 2, 3), 'i32')

test.each(CASES)('%s, %s, %s', async (body, format, role) => {
  const program = parseProgram(`${standard('csr', 'dcsr', 'by_length', 'rows_by_length')}
  kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis p = sparse_variable(i, n)
    axis c = dense_fixed(n)
    buffer X: i32[i, p] in
    buffer x: i32[c] in
    buffer S: i32[i] ${role}
    buffer Y: i32[i] out
    iterate sum [i, p] as ${body}
    iterate act [i] as S { Y[i] = S[i] + 100 }
  }
  schedule k.run { X as ${format} }`)
  const stored = program.kernel().schedule('run')
  const loops = stored.compilation.loops.body.flatMap((s) => (s.kind === 'for' ? [s.name] : []))
  const accepted = loops.flatMap((at) => {
    try {
      return [stored.computeAt('act', at)]
    } catch (e) {
      expect(e).toBeInstanceOf(SptError)
      return []
    }
  })
  for (const k of accepted) await agreeOnAll(k.compilation, { tensors: { X, x } })
})
