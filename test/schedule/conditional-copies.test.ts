/** Copies of what is read under conditions of its own expression: they ask the same, and read nothing else. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { agreeOnAll } from '../properties/agree.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'

const textOf = (value: string, copy: string): string => `kernel k(m: size, q: size) {
  axis a = dense_fixed(m)
  axis c = dense_fixed(q)
  buffer L: i32[a] in
  buffer X: f32[a, c] in
  buffer Y: f32[a, c] out
  iterate take [a, c] as SS { Y[a, c] = ${value} }
}
schedule k.run { split c by 4 -> (co, ci) ${copy} }`

const inputs = {
  tensors: {
    // Some name no row, also one far beyond.
    L: { kind: 'dense', dtype: 'i32', shape: [6], values: Int32Array.of(2, -1, 0, 1_000_000, 5, 6) },
    X: {
      kind: 'dense',
      dtype: 'f32',
      shape: [6, 7],
      values: Float32Array.from({ length: 42 }, (_, e) => e + 1),
    },
  },
} as const

test.each([
  ['what names the element', 'select(L[a] >= 0 and L[a] < m, X[L[a], c], -1)'],
  ['one of two', 'select(L[a] < 3, select(L[a] >= 0, X[L[a], c], 2), 3)'],
  ['the element itself, later', 'select(L[a] >= 0 and L[a] < m and c > 1, X[L[a], c], -1)'],
  ['the same for both', 'select(L[a] == 5, X[L[a], c] + X[L[a], c], 0)'],
  ['either, for one element', 'select(a > 2, X[a, c], 0) + select(a < 4, X[a, c], 0)'],
])('%s', async (what, value) => {
  const of = (copy: string) => parseProgram(textOf(value, copy)).kernel('k').schedule('run').compilation
  const copied = (): unknown => of('cache_read X at co in register padded 0 -> Xr vectorize Xr.ci').loops
  if (what.startsWith('either')) {
    expect(refusal(copied).code).toBe('schedule/guard-not-decidable')
    return
  }
  copied()
  await agreeOnAll(of('cache_read X at co in register padded 0 -> Xr'), inputs)
  expect(refusal(() => of('cache_read X at co in register -> Xr').loops).code).toBe(
    'schedule/conditional-read',
  )
})

test.each([
  ['L[a] > 3 and L[a] != 5', undefined],
  ['L[a] > 3 and c > 1', 'schedule/conditional-read'],
])('a condition on other data alone selects a value of an element that exists: %s', (condition, code) => {
  const text = textOf(`select(${condition}, X[a, c], 0)`, 'cache_read X at co in register -> Xr')
  const program = parseProgram(text.replace('split c', 'require q % 4 == 0 split c'))
  const refused = diagnosticOf(() => program.kernel('k').schedule('run').compilation.loops)
  expect(refused?.code).toBe(code)
})
