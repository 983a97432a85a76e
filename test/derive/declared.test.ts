/** Gradients in the text of a program: `gradient NAME of KERNEL by OUTPUT wrt (X)`. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { print } from '../../src/ast/print/print.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { Folder, spt } from '../cli/support.ts'

const FIT = `kernel fit<T: f32 or f64>(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  buffer X: T[i, j] in
  buffer t: T[i]    in
  buffer w: T[j]    in
  buffer Y: T[i]    local
  buffer loss: T[]  out
  iterate product [i, j] as SR { Y[i] += X[i, j] * w[j] }
  iterate squares [i] as R { loss[] += (Y[i] - t[i]) * (Y[i] - t[i]) }
}
`
const codeOf = (text: string): string | undefined => {
  try {
    parseProgram(text)
    return undefined
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
}

test('a declared gradient is the kernel that the call returns, with schedules of its own', () => {
  const program = parseProgram(
    `${FIT}gradient step of fit by loss wrt (w, X) stopping (t)\nschedule step.split { split product_d_w.i by 4 }`,
  )
  const called = program.kernel('fit').gradient('loss', ['w', 'X'], { stopping: ['t'], name: 'step' })
  expect(program.kernel('step').show(1)).toBe(called.show(1))
  expect(program.kernel('step').schedules).toEqual(['split'])
  expect(program.kernel('step').schedule('split').trace).toHaveLength(1)
})

test('a gradient of an instance of a typed kernel, and of a gradient', () => {
  const program = parseProgram(
    `${FIT}gradient step of fit<f64> by loss wrt (w)\ngradient second of step by d_w wrt (w)`,
  )
  expect(program.kernel('step').show(1)).toContain('buffer d_w: f64[j] out')
  expect(program.kernel('second').show(1)).toContain('buffer d_d_w: f64[j] in')
})

test('gradients and rules of monoids print as they are written', () => {
  const text = `gradient step of fit<f64> by loss wrt (w, dense X) stopping (t) recomputing (Y) rounding (Y)

monoid sum(s: f32) {
  identity 0
  combine (a, b) = a.s + b.s
  derivative (x, r, d) = d.s
}
`
  expect(print(parse({ name: 'a.spt', text }))).toBe(text)
})

test.each([
  ['gradient a of a by loss wrt (w)', 'check/kernel-cycle'],
  ['gradient a of b by loss wrt (w)\ngradient b of a by loss wrt (w)', 'check/kernel-cycle'],
  ['gradient a of fat by loss wrt (w)', 'check/unknown-kernel'],
  ['gradient a of fit by loss wrt (v)', 'derive/unknown-tensor'],
  ['gradient a of fit by loss wrt (w)', undefined],
])('%s', (text, code) => {
  expect(codeOf(FIT + text)).toBe(code)
})

test('the rule of a monoid gives the adjoints of its operands', () => {
  const program = parseProgram(`
monoid lse(m: f32, s: f32) {
  identity (-inf, 0)
  combine (a, b) = (max(a.m, b.m), a.s * exp(a.m - max(a.m, b.m)) + b.s * exp(b.m - max(a.m, b.m)))
  derivative (x, r, d) = (d.s * x.s * exp(x.m - r.m), d.s * exp(x.m - r.m))
}
kernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  buffer X: f32[i, j] in
  buffer M: f32[i]    local
  buffer S: f32[i]    local
  buffer Y: f32[i]    out
  iterate sum [i, j] as SR { (M[i], S[i]) lse= (X[i, j], 1) }
  iterate out [i] as S { Y[i] = log(S[i]) }
}`)
  const text = program.kernel('k').gradient('Y', ['X']).show(1)
  expect(text).toContain('d_X[i, j] += d_S[i] * exp(X[i, j] - M[i])')
  expect(parseProgram(text).kernel().show(1)).toBe(text)
})

test('spt check warns where no gradient passes', async () => {
  const folder = new Folder()
  const path = folder.file(
    'steps.spt',
    `kernel f(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] in
  buffer Y: f32[i] out
  iterate s [i] as S { Y[i] = X[i] * floor(X[i]) }
}
gradient back of f by Y wrt (X)
`,
  )
  const { code, out, err } = await spt(['check', path])
  folder.remove()
  expect([code, out.includes('steps.spt: ok')]).toEqual([0, true])
  expect(err).toContain('warning[derive/step-function]: the derivative of floor(X[i]) is 0')
  expect(err).toContain('steps.spt:5:')
})
