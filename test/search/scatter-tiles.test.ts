/** Sketches for one thread: rows that are added to other rows, as in gradients of sparse products. */
import { expect, test } from 'vitest'
import { coords, dense, devices, load } from '../../src/node.ts'

const text = (kinds: string): string => `kernel scatter(n: size, m: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, m)
  axis r = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer X: f32[i, j] in
  buffer D: f32[i, f] in
  buffer O: f32[r, f] out
  iterate sum [i, j, f] as ${kinds} { O[j, f] += X[i, j] * D[i, f] }
}`

test.each([
  [3, 'RRS'],
  [8, 'RRS'],
  [21, 'RRS'],
  [8, 'RSS'],
] as const)(
  'a tile of a row of %i elements stays in registers, and sums keep their order',
  async (d, kinds) => {
    const [n, m] = [5, 4]
    await using device = await devices.cpu()
    const kernel = (await load(text(kinds))).kernel('scatter')
    const entries = Array.from({ length: 12 }, (_, k) => [k % n, (k * 7) % m] as const)
    const X = coords(
      [n, m],
      [entries.map(([i]) => i), entries.map(([, j]) => j)],
      Float32Array.from(entries, (_, k) => 0.1 * k + 0.3),
    )
    const D = dense(
      [n, d],
      Float32Array.from({ length: n * d }, (_, k) => Math.sin(k)),
    )
    const values = async (k: typeof kernel) => {
      const binding = await (await k.build(device)).bind({ X, D })
      await binding.run()
      return [...(await binding.get('O')).values!]
    }
    const [candidate] = kernel.inspect.scheduleCandidates('cpu', { n, m, d })
    expect(candidate!.kernel.trace.some((step) => step.startsWith('cache_read D'))).toBe(d > 3)
    expect(await values(candidate!.kernel)).toEqual(await values(kernel.split('f', 1)))
  },
)
