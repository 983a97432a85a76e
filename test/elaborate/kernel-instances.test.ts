/** Kernels with type parameters, definitions and bases: each instance equals the kernel written without them. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Elaborated } from '../../src/elaborate/index.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { generate } from '../support/program-gen.ts'
import { errors, read } from './support.ts'

/** A kernel, without the positions and the name of its text. */
const meaning = (kernel: unknown): string =>
  JSON.stringify(kernel, (key, x: unknown) => (key === 'span' || key === 'name' ? undefined : x)) ?? ''

const kernelsOf = ({ kernels }: Elaborated): string[] => [...kernels.values()].map((k) => meaning(k))

test('an instance equals the kernel written with the type', () => {
  let [drawn, compared] = [0, 0]
  fc.assert(
    fc.property(choiceNumbers(200), (numbers) => {
      const { text } = generate(new Choices(numbers))
      const head = /^kernel (\w+)\(/m
      const typed = text.replace(/\bf32\[/g, 'T_[').replace(head, 'kernel $1<T_: f32 or f64>(')
      fc.pre(typed.includes('T_['))
      for (const type of ['f32', 'f64']) {
        drawn++
        const plain = text.replace(/\bf32\[/g, `${type}[`)
        let expected: string[]
        try {
          expected = kernelsOf(read(plain))
        } catch {
          // Monoids over f32 accept no f64: the instance has the same error.
          expect(() => read(typed.replace('f32 or f64', type))).toThrow()
          continue
        }
        compared++
        expect(kernelsOf(read(typed.replace('f32 or f64', type)))).toEqual(expected)
      }
    }),
    { numRuns: 30 },
  )
  expect(drawn).toBeGreaterThanOrEqual(30)
  expect(2 * compared).toBeGreaterThanOrEqual(drawn)
})

test('each instance has a name, schedules and choices of its own', () => {
  const { kernels, schedules, choices } = read(TYPED)
  expect([...kernels.keys()]).toEqual(['scale<f16>', 'scale<bf16>', 'scale'])
  expect([...schedules.get('scale<bf16>')!.keys()]).toEqual(['gpu'])
  expect([...schedules.get('scale')!.keys()]).toEqual(['gpu', 'cpu'])
  expect([...choices.get('scale')!.keys()]).toEqual(['auto'])
  const rows = (kernel: string): unknown => schedules.get(kernel)!.get('gpu')!.params[0]!.default
  expect(rows('scale<f16>')).toMatchObject({ value: 16 })
  expect(rows('scale')).toMatchObject({ value: 32 })
})

test('a kernel is found by its types, and by its name for the first types', async () => {
  const program = parseProgram(TYPED)
  expect(program.kernel().source.name).toBe('scale<f16>')
  expect(program.kernel('scale').source.name).toBe('scale<f16>')
  expect(program.kernel('scale', { T: 'bf16' }).source.name).toBe('scale<bf16>')
  expect(program.kernel('scale<f32>').source.name).toBe('scale')
  expect(() => program.kernel('scale<f64>')).toThrow('scale<f64>')
  expect(() => program.kernel('scale', { U: 'f16' })).toThrow('no type parameter U')
})

test('a kernel that extends another equals the kernel written in full', () => {
  const { kernels, schedules } = read(`${TYPED}
    kernel shifted(b: f32) extends scale<f32> { define f(v) = v + b }
    schedule shifted.more { use gpu(16) }
    kernel written(m: size, a: f32, b: f32) {
      axis i = dense_fixed(m)
      buffer x: f32[i] in
      buffer y: f32[i] out accumulate f64
      iterate body [i] as S { y[i] = f32(a * x[i] + b) }
    }`)
  expect(meaning(kernels.get('shifted'))).toBe(meaning(kernels.get('written')))
  expect([...schedules.get('shifted')!.keys()]).toEqual(['gpu', 'cpu', 'more'])
})

test('errors of derived kernels are reported at their text', () => {
  const [d] = errors(`${TYPED} kernel shifted() extends scale { define f(v) = v + i }`)
  expect(d).toMatchObject({ code: 'check/definition', hint: 'pass i as an argument' })
})

test('a definition that overrides none of the base is called, or is an error that lists those of the base', () => {
  const extending = (text: string): string => `${TYPED} kernel more() extends scale { ${text} }`
  expect(errors(extending('define ff(v) = 2 * v'))).toMatchObject([
    { code: 'check/definition', expected: 'f', lookup: { name: 'ff', candidates: ['f'] } },
  ])
  expect(errors(extending('define ff(v) = ff(v)'))).toMatchObject([{ code: 'check/definition' }])
  const called = 'buffer z: f32[i] out; define ff(v) = 2 * v; iterate also [i] as S { z[i] = ff(f32(x[i])) }'
  expect([...read(extending(called)).kernels.keys()]).toContain('more')
  // A definition that replaces one of the base may call the kernel's own, which stand in any order.
  const helper = 'define f(v) = g(v) + 1; define g(v) = h(v); define h(v) = 2 * v'
  const inline = 'define f(v) = 2 * v + 1'
  const [kernel, same] = [helper, inline].map((text) => read(extending(text)).kernels.get('more'))
  expect(meaning(kernel)).toBe(meaning(same))
})

const TYPED = `
kernel scale<T: f16 or bf16 or f32>(m: size, a: T) {
  axis i = dense_fixed(m)
  buffer x: T[i] in
  buffer y: T[i] out accumulate f64
  define f(v) = v
  iterate body [i] as S { y[i] = T(f(a * x[i])) }
}
schedule scale.gpu(rows = 8 * bytes(T)) { split i by rows -> (io, ii); bind io to block.x, ii to thread.x }
schedule scale<f32>.cpu { unroll i by 4 }
schedule scale.auto choose {
  when (cuda) gpu
  otherwise gpu(4)
}`
