/** Integers wrap at 32 bits wherever a kernel computes values, and keep their signs. */
import { expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { sample } from '../support/cases.ts'
import { assembled, noNvcc } from '../support/nvcc.ts'

const kernel = (body: string): string => `kernel k(n: size, c: i32) {
  axis i = dense_fixed(n) axis j = dense_fixed(3)
  buffer V: i32[i] in buffer W: i32[i] in
  buffer Y: i32[i] out
  ${body}
}`

// 1073741824 is 2^30; nothing here leads to an element.
const VALUES = [
  'Y[i] = (i * 1073741824 + 1073741824 + i * 1073741824) / 3',
  'Y[i] = i * 1073741824 / 3',
  'Y[i] = (i + 2147483647) / 3',
  // What divides the terms of a sum does not divide what is left of it.
  'Y[i] = (i * 1500000000 + 4) / 3',
  'let t = i * 1500000000 Y[i] = (t + 1) % 3',
  'Y[i] = (c * i + c - 2147483647) / 7',
  'let t = i + c + c Y[i] = t % 10',
  'let t = i * 65536 let u = t * 16384 Y[i] = abs(u - t - c) / 2',
  'Y[i] = select(i + c + c > 0, 1, 2)',
  'if (i * 1073741824 + i * 1073741824 + c > 0) { Y[i] = 1 }',
  'Y[i] = i32(f32(i + c) + f32(c + c))',
  'Y[i] = min(i + c + c, 5) + max(c + c - i, -5)',
  'Y[i] = -(c + c + i) / 5',
  'Y[i] = bit_xor(c + c, 3) / 2',
  // Constants that are summed up beyond the type.
  'Y[i] = max(i + 2147483647 + 1, c)',
  'Y[i] = min(2147483647 + (i + 2147483647), V[i])',
  'Y[i] = select(V[i] - 2147483647 - 2 > 0, 1, 2)',
]

test('no literal is outside of its type', async () => {
  for (const body of VALUES.slice(-3))
    for (const target of ['js', 'wgsl', 'cuda'] as const) {
      const k = (await load(kernel(`iterate s [i] as S { ${body} }`))).kernel()
      for (const { text } of k.emit(target)) expect(text).not.toMatch(/214748364[89]|42949672/)
    }
})

test('CUDA computes addresses as int, and values with wrapping', async () => {
  const text = async (body: string) =>
    (await load(kernel(`iterate s [i] as S { ${body} }`))).kernel().emit('cuda')[0]!.text
  expect(await text('Y[i] = V[min(i * 2 + 1, n - 1)]')).not.toMatch(/unsigned|apart/)
  expect(await text('Y[i] = min(i * 2 + 1, n - 1)')).toMatch(/apart\(min\(\(int\)\(\(unsigned\)/)
})

test.each(VALUES)('%s', async (body) => {
  const program = await load(kernel(`iterate s [i] as S { ${body} }`))
  const compiled = await program.kernel().build(createCpuDevice())
  for (const c of [2147483647, -2147483648, 1431655765]) {
    const V = new Int32Array(6)
    const prepared = await compiled.bind({ V, W: V, c })
    expect((await prepared.verify()).problems).toEqual([])
  }
})

test.each([
  ['a multiple of 3 before it wraps', 'i32(i) * 3 * 1431655766 + 1 < n', 'require n % 3 == 0'],
  ['the last of a vector', 'i32(i) + 2147483645 < c', 'split i by 4 -> (io, iv)\nvectorize iv'],
  ['the last of those unrolled', 'i32(i) + 2147483645 < c', 'split i by 4 -> (io, iv)\nunroll iv'],
])('a condition on %s', async (_, cond, steps) => {
  const text = `${kernel(`iterate s [i] as S { if (${cond}) { Y[i] = V[i] + 1 } }`)}\nschedule k.a { ${steps} }`
  const compiled = await (await load(text)).kernel().schedule('a').build(createCpuDevice())
  for (const n of [3, 6, 18]) {
    const V = new Int32Array(n)
    const prepared = await compiled.bind({ V, W: V, c: 5 })
    expect((await prepared.verify()).problems).toEqual([])
  }
})

test.each([
  ['Y[i] += i + c + c', 'Y[i] += (i + c + c) / 3'],
  ['Y[i] max= j + c + c', 'Y[i] min= -(j + c + c)'],
])('combined: %s, %s', async (...bodies) => {
  for (const body of bodies) {
    const program = await load(kernel(`iterate s [i, j] as SR { ${body} }`))
    const compiled = await program.kernel().build(createCpuDevice())
    const V = new Int32Array(6)
    const prepared = await compiled.bind({ V, W: V, c: 1431655765 })
    expect((await prepared.verify()).problems).toEqual([])
  }
})

/** What an assembler that loses a sign makes of one is the other. */
const SIGNS = [
  ['max(c, max(V[i], -W[i]))', 'max(c, max(V[i], W[i]))'],
  ['min(c, min(V[i], -W[i]))', 'min(c, min(V[i], W[i]))'],
  ['max(c, max(V[i], 0 - W[i]))', 'max(c, max(V[i], W[i]))'],
  ['max(max(-W[i], V[i]), c)', 'max(max(W[i], V[i]), c)'],
] as const
/** The same for one that takes it that nothing wraps. */
const WRAPS = [
  ['select(V[i] + 1 > V[i], 5, 6)', '5'],
  ['select(V[i] * 2 / 2 == V[i], 5, 6)', '5'],
] as const

test.skipIf(noNvcc !== null)('assembly keeps signs and wraps', async () => {
  for (const pair of [...sample(SIGNS, 1), ...sample(WRAPS, 1)]) {
    const [a, b] = await Promise.all(
      pair.map(async (value) => {
        const program = await load(kernel(`iterate s [i] as S { Y[i] = ${value} }`))
        const [text] = program.kernel().emit('cuda')
        return assembled(text!.text)
      }),
    )
    expect(a!.equals(b!), pair.join(' and ')).toBe(false)
  }
})
