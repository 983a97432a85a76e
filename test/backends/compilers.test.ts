/** What compilers of GPU texts get wrong, and what texts do about it. */
import { describe, expect, test } from 'vitest'
import { dense, devices, load } from '../../src/node.ts'
import { assembled, noNvcc } from '../support/nvcc.ts'

const kernel = (statement: string): string => `kernel k(m: size, p: size, d: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(d)
  axis q = dense_fixed(p)
  buffer x: i32[i] in
  buffer w: i32[i] in
  buffer y: i32[i, f] out
  iterate s [i, f, q] as SSR { ${statement} }
}
schedule k.register {
  split f by 32 -> (fo, fi)
  bind i to block.x
  bind fo to block.y, fi to thread.x
  cache_write y at fi in register
}`

describe('branches taken only in the first iteration of a loop', () => {
  const FIRST = [
    ['y[i, f] max= select(q > 0, x[i], w[i] - x[(q + 0) - 1])', null],
    ['if (q < 1) { y[i, f] += 3 - x[(q + 0) - 1] }', 'register'],
    ['if (not (q + d > d)) { y[i, f] += 3 - x[(q + 0) - 1] }', 'register'],
  ] as const
  const textOf = async (statement: string, schedule: string | null): Promise<string> => {
    const k = (await load(kernel(statement))).kernel()
    return (schedule ? k.schedule(schedule) : k.parallel()).compilation.texts('cuda')[0]!.text
  }

  test.each(FIRST)('are hidden: %s', async (statement, schedule) => {
    expect(await textOf(statement, schedule)).toContain('hidden(')
  })

  test.each([
    'y[i, f] max= select(q > 1, x[i], w[i] - x[(q + 0) - 1])',
    'y[i, f] max= select(q > 0, x[i], w[i])',
    'y[i, f] max= select(q > 0, x[i], x[i] + q)',
    'y[i, f] max= select(i > 0, x[i], w[i] - x[(q + 0) - 1])',
  ])('are left alone: %s', async (statement) => {
    expect(await textOf(statement, null)).not.toContain('hidden(')
  })

  test.skipIf(noNvcc)('are assembled', async () => {
    for (const [statement, schedule] of FIRST)
      expect(assembled(await textOf(statement, schedule)).length).toBeGreaterThan(0)
  })
})

test.each([
  'y[i, f] max= abs(x[q % m])',
  'y[i, f] += max(max(-x[i], -w[i]), x[i])',
  'y[i, f] min= -x[i] + abs(w[i])',
])('minima and maxima of data are of unsigned numbers in WGSL: %s', async (statement) => {
  const [text] = (await load(kernel(statement))).kernel().parallel().compilation.texts('wgsl')
  expect(text!.text).toMatch(/[^_\w](min|max)_i32\(/)
  expect(text!.text.replace(/fn (min|max|abs)_i32.*\n.*\n}/g, '')).not.toMatch(/[^_\w](min|max|abs)\(/)
})

describe('two-armed conditions, whose paths compilers enumerate', () => {
  const [m, p] = [3, 75]
  const both = async (by: number) =>
    (
      await load(`kernel k(m: size, p: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(p)
  buffer x: i32[q] in
  buffer w: i32[q] in
  buffer y: i32[i] out
  iterate s [i, q] as SR { if (x[q] > w[q]) { y[i] += x[q] } else { y[i] += 3 * w[q] } }
}
schedule k.ahead { unroll q by ${by} }`)
    )
      .kernel()
      .schedule('ahead')
      .parallel()
  const arms = async (by: number, target: 'wgsl' | 'cuda'): Promise<number> =>
    (await both(by)).compilation.texts(target)[0]!.text.split('} else {').length - 1

  test('are limited in WGSL: further ones become one-armed conditions', async () => {
    expect(await arms(8, 'cuda')).toBeGreaterThanOrEqual(8)
    expect(await arms(8, 'wgsl')).toBeGreaterThanOrEqual(8)
    expect(await arms(32, 'cuda')).toBeGreaterThanOrEqual(32)
    expect(await arms(32, 'wgsl')).toBeLessThanOrEqual(12)
  })

  test('which give equal results', async () => {
    const [x, w] = [5, 4].map((n) => Int32Array.from({ length: p }, (_, q) => (q * 7) % n)) as [
      Int32Array,
      Int32Array,
    ]
    const compiled = await (await both(32)).build(await devices.webgpu())
    const { y } = await compiled({ x: dense([p], x), w: dense([p], w), m })
    const sum = x.reduce((s, a, q) => s + (a > w[q]! ? a : 3 * w[q]!), 0)
    expect([...y!.values!]).toEqual(Array.from({ length: m }, () => sum))
  })
})
