/**
 * Gradients of kernels of all kinds of statements agree with central differences: reducers, monoids with rules, functions,
 * temporaries that are kept or computed again, fused axes, calls, and second derivatives.
 */
import { afterAll, expect } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { gradient } from '../../src/derive/gradient.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { readsIn } from '../../src/ir/coordinates/stage1-tree.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { type RefInputs, reference } from '../../src/reference/index.ts'
import { LONG, runs, SEED } from '../support/cases.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { checkGradients, smooth } from '../support/gradient-check.ts'
import { property } from '../support/property.ts'

/** Rules as in kernels/: a softmax in one pass, and sums relative to a maximum. */
const PROGRAM = `monoid online(m: f64, z: f64, o: f64) {
  identity (-inf, 0, 0)
  combine (a, b) = (
    max(a.m, b.m),
    a.z * exp(a.m - max(a.m, b.m, -3.4e+38)) + b.z * exp(b.m - max(a.m, b.m, -3.4e+38)),
    a.o * exp(a.m - max(a.m, b.m, -3.4e+38)) + b.o * exp(b.m - max(a.m, b.m, -3.4e+38))
  )
  derivative (x, r, d) = (
    (d.z * x.z + d.o * x.o) * exp(x.m - r.m), d.z * exp(x.m - r.m), d.o * exp(x.m - r.m)
  )
}
monoid relative(m: f64, s: f64) {
  identity (-inf, 0)
  combine (a, b) = (
    max(a.m, b.m), a.s * exp(a.m - max(a.m, b.m, -3.4e+38)) + b.s * exp(b.m - max(a.m, b.m, -3.4e+38))
  )
  derivative (x, r, d) = (d.s * x.s * exp(x.m - r.m), d.s * exp(x.m - r.m))
}
monoid best(v: f64, x: f64) {
  identity (-inf, inf)
  combine (a, b) = (max(a.v, b.v), select(a.v > b.v, a.x, select(b.v > a.v, b.x, min(a.x, b.x))))
}
kernel scaled(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(m)
  buffer P: f64[i, j] in
  buffer Q: f64[i, j] out
  iterate scale [i, j] as SS { Q[i, j] = P[i, j] * tanh(P[i, j]) }
}
`
const ELEMENT = '@'
const VALUES = [
  ELEMENT,
  `${ELEMENT} * ${ELEMENT}`,
  `tanh(${ELEMENT}) * W[j]`,
  `exp(${ELEMENT} * W[j])`,
  `log1p(${ELEMENT}) / W[j]`,
  `select(${ELEMENT} > 0.7, sqrt(${ELEMENT}), ${ELEMENT} * 2)`,
  `max(${ELEMENT}, W[j]) + sigmoid(${ELEMENT})`,
  `pow(${ELEMENT}, 1.5) - sin(W[j])`,
]

/** A statement over the rows of X by its kind; the value of a row is in R. */
const STATEMENTS = {
  sum: (v: string) => `R[i] += ${v}`,
  product: (v: string) => `R[i] *= ${v}`,
  maximum: (v: string) => `R[i] max= ${v}`,
  minimum: (v: string) => `R[i] min= ${v}`,
  online: (v: string) => `(M[i], Z[i], R[i]) online= (${v}, 1, W[j])`,
  relative: (v: string) => `(M[i], R[i]) relative= (${v}, X[i, j])`,
  argmax: (v: string) => `(M[i], R[i]) best= (X[i, j], ${v})`,
} as const
type Kind = keyof typeof STATEMENTS

const counts = new Map<string, number>()

function drawn(c: Choices) {
  const kind = c.pick(Object.keys(STATEMENTS) as Kind[])
  const value = c.pick(VALUES)
  const source = c.pick(['X', 'X', 'T', 'call'] as const)
  const isSparse = source !== 'call' && c.chance(50)
  const isFused = isSparse && c.chance(50)
  const element = source === 'X' ? 'X[i, j]' : 'T[i, j]'
  // Kept finite: z and s do not depend on the maximum that the rules leave out.
  const end = kind === 'online' ? 'R[i] / Z[i]' : kind === 'relative' ? 'M[i] + log(R[i])' : 'R[i] * R[i]'
  const local = {
    X: '',
    T: 'iterate tmp [i, j] as SS { T[i, j] = X[i, j] * 0.5 + W[j] }',
    call: 'call T = scaled(X)',
  }
  const text = `${PROGRAM}kernel k(n: size, m: size) {
  axis i = dense_fixed(n)
  axis j = ${isSparse ? 'sparse_variable(i, m)' : 'dense_fixed(m)'}
  axis w = dense_fixed(m)
  ${isFused ? 'axis e = fused(i, j)' : ''}
  buffer X: f64[i, j] in
  buffer W: f64[w] in
  ${source === 'T' ? 'buffer T: f64[i, j] local' : ''}
  ${kind === 'online' || kind === 'relative' || kind === 'argmax' ? 'buffer M: f64[i] local' : ''}
  ${kind === 'online' ? 'buffer Z: f64[i] local' : ''}
  buffer R: f64[i] local
  buffer Y: f64[i] out
  ${local[source]}
  iterate rows ${isFused ? '[e] as R' : '[i, j] as SR'} { ${STATEMENTS[kind](value.replaceAll(ELEMENT, element))} }
  iterate end [i] as S { Y[i] = ${end} }
}`
  return { text, kind, value, source, isFused, isSparse }
}

property([choiceNumbers(40)], { numRuns: runs(60), seed: SEED })('statement kinds', (choices) => {
  const c = new Choices(choices)
  const { text, kind, value, source, isFused, isSparse } = drawn(c)
  const kernel = parseProgram(text).kernel('k').source
  const [n, m] = [c.between(1, 3), c.between(1, 4)]
  const all = Array.from({ length: n * m }, (_, k) => k).filter((k) => !isSparse || (k * 7) % 5 !== 1)
  const given = isSparse
    ? { coords: [all.map((k) => Math.floor(k / m)), all.map((k) => k % m)], values: all }
    : all
  const given0 = smooth(
    kernel,
    { params: { n, m }, buffers: { X: given, W: Array.from({ length: m }, () => 0) } },
    choices[0]!,
  )
  // Products of factors that are 0.
  const isZeroed = kind === 'product' && value === ELEMENT && source === 'X'
  const zeroed = (x: ArrayLike<number>): number[] => Array.from(x, (v) => (c.chance(40) ? 0 : v))
  const X = given0.buffers.X!
  const atZeros = 'coords' in X ? { ...X, values: zeroed(X.values!) } : zeroed(X)
  const inputs = isZeroed ? { ...given0, buffers: { ...given0.buffers, X: atZeros } } : given0
  const check = (k: Kernel1, at: RefInputs, by: string, wrt: readonly string[], what: string): void => {
    for (const r of checkGradients(k, at, by, wrt, choices[1]!)) {
      counts.set(what, (counts.get(what) ?? 0) + (r.isKink ? 0 : 1))
      if (!r.isKink && Number.isFinite(r.expected))
        expect(
          Math.abs(r.actual - r.expected) / Math.max(1, Math.abs(r.expected)),
          `${by} by ${r.tensor}\n${text}`,
        ).toBeLessThan(1e-4)
    }
  }
  const isRead = (name: string): boolean => readsIn(kernel.body).some((l) => l.buffer === name)
  const wrt = ['X', 'W'].filter(isRead)
  check(kernel, inputs, 'Y', wrt, [kind, ...(isFused ? ['fused'] : [])].join())
  counts.set(source, (counts.get(source) ?? 0) + 1)
  const request = { name: 'back', by: { name: 'Y' }, wrt: [{ name: 'X' }] }
  const d_Y = Array.from({ length: n }, (_, k) => 0.3 + k)
  if (source === 'T') {
    const at = { ...inputs, buffers: { ...inputs.buffers, d_Y } }
    const run = (r: Parameters<typeof gradient>[1]) => reference(gradient(kernel, r), at).buffers.d_X!.values
    expect([...run({ ...request, recomputing: [{ name: 'T' }] })]).toEqual([...run(request)])
  }
  // The rules of online and relative hold only for results that do not depend on m alone: not for their own derivatives.
  if (kind === 'online' || kind === 'relative') return
  const back = parseProgram(print1(gradient(kernel, request))).kernel('back').source
  const at = { ...inputs, buffers: { ...inputs.buffers, d_Y } }
  check(back, at, 'd_X', ['d_Y'], 'second')
  check(back, at, 'd_X', ['X'], 'second')
})

afterAll(() => {
  if (!LONG) return
  for (const kind of [...Object.keys(STATEMENTS), 'second', 'T', 'call'])
    expect(
      [...counts].filter(([name]) => name.includes(kind)).length,
      `${kind} ${JSON.stringify([...counts])}`,
    ).toBeGreaterThan(0)
})
