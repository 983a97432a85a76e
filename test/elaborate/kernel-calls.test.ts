/** Calls of kernels: a kernel that calls another one has its results, and repeated members equal the members written out. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Kernel1 } from '../../src/ir/coordinates/stage1.ts'
import { type RefOutputs, reference } from '../../src/reference/index.ts'
import { calling } from '../support/calling-kernel.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { generate, type Sample } from '../support/program-gen.ts'
import { kernelOf, read } from './support.ts'

const run = (kernel: Kernel1, { reference: inputs }: Sample): RefOutputs['buffers'] | string => {
  try {
    return reference(kernel, inputs).buffers
  } catch (e) {
    return String(e).slice(0, 40)
  }
}

test('a kernel that only calls another one equals it', () => {
  let [drawn, compared] = [0, 0]
  fc.assert(
    fc.property(choiceNumbers(200), (numbers) => {
      const sample = generate(new Choices(numbers))
      let kernels: Kernel1[]
      try {
        kernels = [...read(sample.text).kernels.values()]
      } catch {
        return
      }
      const text = calling(sample.text)
      if (text === null) return
      drawn++
      const expected = kernels.at(-1)!
      const made = read(text).kernels.get(expected.name)!
      const result = run(expected, sample)
      if (typeof result !== 'string') compared++
      expect(run(made, sample), text).toEqual(result)
    }),
    { numRuns: 60 },
  )
  expect(drawn).toBeGreaterThan(0)
  expect(2 * compared).toBeGreaterThanOrEqual(drawn)
})

const STEP = `kernel step(n: size, a: f32) {
  axis i = dense_fixed(n)
  axis j = dense_fixed(n)
  buffer X: f32[i] in
  buffer W: f32[i, j] in
  buffer Y: f32[i] out
  iterate sum [i, j] as SR { Y[i] += a * W[i, j] * X[j] }
}
`

/** The printed kernel of the last declaration. */
const shown = (text: string): string => parseProgram(text).kernel('k').show(1)

test('repeated members equal the members written out', () => {
  const repeated = `${STEP}kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: f32[i] out
    call Y = step(X, W_0, a = 1.0)
    buffer W_0: f32[i, j] in
    repeat 2 as l {
      buffer W: f32[i, j] in
      call Y = step(Y, W, a = f32(l))
    }
  }`
  const body = (to: string, from: string, w: string, a: string): string =>
    `[i, j in i] as SR { ${to}[i] += ${a} * ${w}[i, j] * ${from}[j] }`
  const written = `kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y_2: f32[i] local
    buffer W_0: f32[i, j] in
    buffer W_1: f32[i, j] in
    buffer Y_3: f32[i] local
    buffer W_2: f32[i, j] in
    buffer Y: f32[i] out
    iterate step_sum ${body('Y_3', 'X', 'W_0', '1.0')}
    iterate step_1_sum ${body('Y_2', 'Y_3', 'W_1', 'f32(1)')}
    iterate step_2_sum ${body('Y', 'Y_2', 'W_2', 'f32(2)')}
  }`.replaceAll('j in i', 'j')
  const statements = (text: string): string[] =>
    shown(text)
      .split('\n')
      .filter((l) => !/^ +buffer/.test(l))
  expect(statements(repeated)).toEqual(statements(written))
})

test('a buffer that a call assigns again keeps its earlier values for earlier statements', () => {
  const k = kernelOf(`kernel k(n: size) {
    axis i = dense_fixed(n)
    buffer X: f32[i] inout
    buffer Z: f32[i] out
    call X = twice(X)
    iterate add [i] as S { Z[i] = X[i] }
    call X = twice(X)
  }
  kernel twice(n: size) {
    axis i = dense_fixed(n)
    buffer A: f32[i] in
    buffer B: f32[i] out
    iterate sum [i] as S { B[i] += 2 * A[i] }
  }`)
  const { buffers } = reference(k, { params: { n: 2 }, buffers: { X: [1, 3] } })
  expect(
    [...Object.entries(buffers)].map(([name, b]) => [name, [...(b as { values: Iterable<number> }).values]]),
  ).toEqual([
    ['X', [4, 12]],
    ['Z', [2, 6]],
  ])
})

test('type parameters follow from the buffers, and calls are inputs of calls', () => {
  const text = `kernel scale<T: f32 or f16>(n: size, a: f32) {
    axis i = dense_fixed(n)
    buffer x: T[i] in
    buffer y: T[i] out
    iterate it [i] as S { y[i] = T(a * f32(x[i])) }
  }
  kernel k(n: size) {
    axis r = dense_fixed(n)
    buffer u: f16[r] in
    buffer v: f16[r] out
    call first = scale(u, a = 2)
    call v = scale(first, a = 3) as second
  }`
  const printed = shown(text)
  expect(printed).toContain('buffer first: f16[r] local')
  expect(printed).toContain('iterate second_it [i in r]')
  expect(shown(printed)).toBe(printed)
})

test('names that a copy declares end in its numbers, and other names keep their meaning', () => {
  const plain = STEP.replace('step(n: size, a: f32)', 'plain(n: size)').replace('a * ', '')
  const text = `${STEP}${plain}kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: f32[i] out
    call Y = step(X, U, a = 1)
    buffer U: f32[i, j] in
    repeat 2 as l {
      buffer W: f32[i, j] in
      call Q = step(plain(plain(Y, W), W), W = W, a = 1)
      repeat 2 as m {
        buffer V: f32[i, j] in
        call R = step(Q, V, a = f32(l * m))
        iterate max [i] as S { Y[i] = max(R[i], Q[i]) }
      }
    }
  }`
  const names = (pattern: RegExp): string[] => [...shown(text).matchAll(pattern)].map((m) => m[1]!)
  expect(names(/buffer (\w+): \S+, j\] in/g)).toEqual(['U', 'W_1', 'V_1_1', 'V_1_2', 'W_2', 'V_2_1', 'V_2_2'])
  expect(names(/buffer ([QR]\w+)/g).sort()).toEqual(['Q_1', 'Q_2', 'R_1_1', 'R_1_2', 'R_2_1', 'R_2_2'])
  const copy = (k: number): string[] => [
    `plain_${k}_sum`,
    `plain_2_${k}_sum`,
    `step_${k}_sum`,
    ...[1, 2].flatMap((m) => [`step_${k}_${m}_sum`, `max_${k}_${m}`]),
  ]
  expect(names(/iterate (\w+)/g)).toEqual(['step_sum', ...copy(1), ...copy(2)])
})

test('nested copies have a limit', () => {
  const text = (outer: number): string => `${STEP}kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer W: f32[i, j] in
    buffer Y: f32[i] inout
    repeat ${outer} as l { repeat 40 as m { call Y = step(Y, W, a = 1) } }
  }`
  const steps = (outer: number): number => [...shown(text(outer)).matchAll(/iterate step/g)].length
  expect(steps(50)).toBe(2000)
  expect(() => steps(400)).toThrow('check/too-many-members')
})

test('scalar arguments have the types of the parameters', () => {
  const k = kernelOf(`kernel k(n: size) {
    axis i = dense_fixed(n)
    buffer X: f32[i] in
    buffer Y: f32[i] out
    call Y = add(X, a = n, c = 7)
    repeat 2 as l { call Y = add(Y, a = l, c = -1) }
  }
  kernel add(n: size, a: f32, c: i32) {
    axis i = dense_fixed(n)
    buffer A: f32[i] in
    buffer B: f32[i] out
    iterate sum [i] as S { B[i] = A[i] + a / 2 + f32(c / 2) }
  }`)
  const { Y } = reference(k, { params: { n: 3 }, buffers: { X: [1, 2, 3] } }).buffers
  expect([...Y!.values]).toEqual([1, 2, 3].map((x) => x + 3 / 2 + 3 + 1 / 2 - 1 + 2 / 2 - 1))
})

test('inputs of copies are passed by name if the caller has them, and wrt names all copies', () => {
  const outer = (args: string): string => `${STEP}kernel layers(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i] in
    buffer V: f32[i, j] in
    buffer Y: f32[i] out
    call Y = step(X, V, a = 1)
    repeat 2 as l {
      buffer W: f32[i, j] in
      call Y = step(Y, W, a = 1)
    }
  }
  kernel k(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(n)
    buffer X: f32[i] in
    buffer V: f32[i, j] in
    buffer loss: f32[] out
    repeat 2 as l { buffer W: f32[i, j] in }
    call Y = layers(${args})
    iterate sum [i] as R { loss[] += Y[i] * Y[i] }
  }`
  expect(shown(outer('X, V'))).toBe(shown(outer('X, V, W_1, W_2')))
  const kernel = parseProgram(outer('X, V')).kernel('k')
  const outputs = (wrt: string[]) => kernel.gradient('loss', wrt).show(1)
  expect(outputs(['W'])).toBe(outputs(['W_1', 'W_2']))
  expect(() => kernel.gradient('loss', ['W'], { name: '1x' })).toThrow('the name of a gradient')
})
