/** What compilers of GPU texts get wrong, and what texts do about it. */
import { describe, expect, test } from 'vitest'
import { load } from '../../src/node.ts'
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

describe('branches of which a loop takes one in its first iteration alone', () => {
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
