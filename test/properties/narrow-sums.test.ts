/** Sums into types narrower than 32 bits are rounded once: they depend on no schedule, width or device. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { fromBf16, fromF16, toBf16, toF16 } from '../../src/ir/values/half.ts'
import { type Device, devices } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { decoder, encoder, newValues, type Tensor } from '../../src/storage/tensor.ts'
import { costly } from '../support/cases.ts'
import { agreeOnAll } from './agree.ts'

const NARROW = ['f16', 'bf16', 'i8', 'u8'] as const
type Narrow = (typeof NARROW)[number]

const present: Device[] = []
beforeAll(async () => {
  present.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of present) await d.dispose()
})

const isInteger = (t: Narrow): boolean => t === 'i8' || t === 'u8'

/** Two sums into the same elements, of which another statement reads the second: `+` or a monoid of the program's own. */
const program = (t: Narrow, reducer: string, options: string, steps = '', rest = true): string => `
monoid plus(v: ${t}) {
  identity 0
  combine (a, b) = ${isInteger(t) ? `${t}(a.v + b.v)` : 'a.v + b.v'}
}
kernel s(m: size, n: size, d: size) {
  axis i = dense_fixed(m)  axis j = sparse_variable(i, n)  axis x = dense_fixed(n)  axis f = dense_fixed(d)
  buffer A: ${t}[i, j] in  buffer B: ${t}[x, f] in  buffer C: ${t}[i, f] out ${options}  buffer Y: f32[i, f] out
  iterate t [i, j, f] as SRS { C[i, f] ${reducer}= ${t}(A[i, j] * B[j, f]) }
  ${rest ? `iterate u [i, f, x] as SSR { C[i, f] ${reducer}= B[x, f] }` : ''}
  iterate w [i, f] as SS { Y[i, f] = f32(C[i, f]) }
}
schedule s.drawn { ${steps} }`

const SCHEDULES = [
  '',
  'reorder (t.i, t.f, j)',
  'reorder (t.i, t.f, j)  cache_write C at t.f in register',
  'reorder (t.i, t.f, j)  cache_write C at t.f in register  cache_write C at u.f in register',
  'cache_write C at u.f in register  split w.f by 2 -> (wo, wi)  unroll wi',
  'split u.x by 8 -> (xo, xi)  rfactor xi -> P',
  'reorder (t.i, t.f, j)  split j by 4 -> (jo, ji)  rfactor ji -> P',
  'reorder (t.i, t.f, j)  split j by 4 -> (jo, ji)  bind t.i to block.x, ji to thread.x',
  'atomic C  bind t.i to block.x, j to thread.x  bind u.i to block.x, u.x to thread.x',
  'reorder (t.i, t.f, j)  split j by 4 -> (jo, ji)  unroll ji',
  'reorder (t.i, j, t.f)  split t.f by 2 -> (fo, fi)  vectorize fi',
]

const tensor = (dtype: Narrow, shape: readonly number[], numbers: readonly number[]): Tensor => {
  const values = newValues(dtype, numbers.length)
  const write = encoder(dtype)
  numbers.forEach((x, k) => {
    values[k] = write ? write(x, k) : x
  })
  return { kind: 'dense', shape, dtype, values }
}

const rounded = (t: Narrow, x: number): number => {
  if (t === 'i8') return (x << 24) >> 24
  if (t === 'u8') return x & 255
  return t === 'f16' ? fromF16(toF16(x)) : fromBf16(toBf16(x))
}

const scheduled = (text: string): Compilation | undefined => {
  try {
    const { compilation } = parseProgram(text).kernel('s').schedule('drawn')
    void compilation.loops
    return compilation
  } catch (e) {
    if (e instanceof SptError && e.diagnostics.every((d) => d.code.startsWith('schedule/'))) return undefined
    throw e
  }
}

test('every stage, schedule and width gives the exact sum, rounded once', async () => {
  let compared = 0
  let drawn = 0
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...NARROW),
      fc.constantFrom('+', '+', 'plus'),
      fc.constantFrom(...SCHEDULES),
      fc.record({
        m: fc.integer({ min: 1, max: 3 }),
        n: fc.integer({ min: 1, max: 40 }),
        d: fc.integer({ min: 1, max: 5 }),
      }),
      fc.array(fc.integer({ min: 0, max: 11 }), { minLength: 97, maxLength: 97 }),
      async (t, reducer, steps, { m, n, d }, numbers) => {
        drawn++
        const c = scheduled(program(t, reducer, '', steps))
        if (!c) return
        compared++
        const of = (k: number): number => numbers[k % numbers.length]! * (t === 'u8' || k % 3 > 0 ? 1 : -1)
        const A = Array.from({ length: m * n }, (_, k) => of(k * 5))
        const B = Array.from({ length: n * d }, (_, k) => of(k * 7 + 1))
        const inputs = {
          tensors: { A: tensor(t, [m, n], A), B: tensor(t, [n, d], B) },
          params: { m, n, d },
        }
        const want = Array.from({ length: m * d }, (_, e) => {
          let sum = 0
          for (let x = 0; x < n; x++) {
            const b = B[x * d + (e % d)]!
            sum += rounded(t, A[Math.floor(e / d) * n + x]! * b) + b
          }
          return rounded(t, sum)
        })
        const { C, Y } = reference(c.source, referenceInputs(c.source, bindInputs(c.kernel, inputs))).buffers
        expect(Array.from(C!.values)).toEqual(want)
        expect(Array.from(Y!.values)).toEqual(want)
        await agreeOnAll(c, inputs)
      },
    ),
    { numRuns: costly(60) },
  )
  expect(compared * 2).toBeGreaterThan(drawn)
}, 3_600_000)

test.each(['f16', 'bf16'] as const)('the sum of 4,096 ones is 4,096 in %s, on every device', async (t) => {
  const n = 4096
  const ones = (shape: readonly number[]): Tensor =>
    tensor(t, shape, new Array(shape.reduce((a, b) => a * b, 1)).fill(1))
  for (const [k, device] of present.entries())
    for (const d of k === 0 ? [3, 4] : [3])
      for (const reducer of ['+', 'plus']) {
        const kernel = parseProgram(program(t, reducer, '', '', false)).kernel('s')
        const r = await (await kernel.build(device)).bind({ A: ones([1, n]), B: ones([n, d]) })
        await r.run()
        expect(Array.from((await r.get('C')).values!, decoder(t)!)).toEqual(new Array(d).fill(n))
        expect((await r.verify()).problems).toEqual([])
      }
})

test('fewer ones do not pass', () => {
  const { source, kernel } = parseProgram(program('bf16', '+', '', '', false)).kernel('s').compilation
  const tensors = {
    A: tensor('bf16', [1, 4096], new Array(4096).fill(1)),
    B: tensor('bf16', [4096, 1], new Array(4096).fill(1)),
  }
  const bound = bindInputs(kernel, { tensors, params: { m: 1, n: 4096, d: 1 } })
  const { C } = reference(source, referenceInputs(source, bound)).buffers
  expect(C!.values[0]).toBe(4096)
  expect(C!.errors[0]).toBeLessThan(64)
})

test('`accumulate` may require less precision', async () => {
  const text = program('bf16', '+', 'accumulate bf16', '', false)
  const r = await (await parseProgram(text).kernel('s').build(present[0]!)).bind({
    A: tensor('bf16', [1, 4096], new Array(4096).fill(1)),
    B: tensor('bf16', [4096, 1], new Array(4096).fill(1)),
  })
  await r.run()
  expect(decoder('bf16')!(Number((await r.get('C')).values![0]))).toBe(256)
})
