/** Several tensors over one nonunique axis: what each holds is there once, however many say so. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, load } from '../../src/node.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'

const text = (root: string, child: string): string => `
kernel k(m: size, n: size) {
  axis i = ${root}
  axis j = ${child}
  buffer A: f32[i, j] in
  buffer B: f32[i, j] in
  buffer C: f32[i, j] inout
  buffer N: f32[] out
  buffer S: f32[] out
  iterate it [i, j] as RR {
    N[] += 1.0
    S[] += A[i, j] + 100.0 * B[i, j]
  }
  iterate of [i, j] as SS { C[i, j] += A[i, j] }
}`

const M = 4
const N = 5
/** Entries in any order, some of equal coordinates. */
const entries = fc.array(fc.tuple(fc.nat(M - 1), fc.nat(N - 1), fc.integer({ min: 1, max: 9 })), {
  maxLength: 12,
})
type Entries = readonly (readonly [number, number, number])[]

const tensor = (of: Entries) =>
  coords(
    [M, N],
    [of.map((e) => e[0]), of.map((e) => e[1])],
    of.map((e) => e[2]),
    'f32',
  )
/** How often each coordinate is there, and the sum of its values. */
const counted = (of: Entries): Map<string, number> => {
  const out = new Map<string, number>()
  for (const [i, j] of of) out.set(`${i},${j}`, (out.get(`${i},${j}`) ?? 0) + 1)
  return out
}
const total = (of: Entries): number => of.reduce((n, e) => n + e[2], 0)

test.each([
  ['sparse_variable(m) nonunique', 'sparse_variable(i, n)'],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 1)'],
  ['sparse_variable(m) nonunique', 'sparse_fixed(i, n, 3)'],
  ['dense_fixed(m)', 'sparse_variable(i, n) nonunique'],
])('%s, %s: the most often that one of them has a coordinate', async (root, child) => {
  const compiled = await (await load(text(root, child))).kernel().compile(createCpuDevice())
  await fc.assert(
    fc.asyncProperty(entries, entries, fc.boolean(), async (a, b, alike) => {
      const other: Entries = alike ? a.toReversed() : b
      const all = [counted(a), counted(other)]
      const keys = new Set(all.flatMap((c) => [...c.keys()]))
      const places = [...keys].reduce((n, k) => n + Math.max(...all.map((c) => c.get(k) ?? 0)), 0)
      const { S, N, C } = await compiled.run({
        tensors: { A: tensor(a), B: tensor(other), C: tensor(other) },
        params: { m: M, n: 5 },
      })
      expect(S!.values![0]).toBe(total(a) + 100 * total(other))
      expect(N!.values![0]).toBe(places)
      expect(C!.values!.length).toBe(places)
      expect(Array.from(C!.values!).reduce((x, y) => x + y, 0)).toBe(total(a) + total(other))
    }),
    { numRuns: 40 },
  )
  compiled.release()
})

const FORMATTED = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
`

test.each(['csr', 'csc', 'dcsr', 'bsr(2)', 'hyb(1, 1)'])(
  'a tensor with a dense dimension more does not decide alone what is stored: %s',
  async (format) => {
    const text = `${FORMATTED} buffer Y: f32[i, j, f] inout
      iterate s [i, j, f] as SSS { Y[i, j, f] += A[i, j] } }`
    const compiled = await (await load(text)).kernel().as('A', format).compile(createCpuDevice())
    const A = coords(
      [2, 2],
      [
        [0, 1],
        [1, 0],
      ],
      Float32Array.of(1, 2),
    ) // prettier-ignore
    const none = coords([2, 2, 0], [[], [], []], new Float32Array(0))
    const few = coords([2, 2, 2], [[0], [0], [1]], Float32Array.of(5))
    for (const Y of [none, few]) {
      const prepared = await compiled.prepare({ tensors: { A, Y } })
      expect((await prepared.verify()).problems).toEqual([])
      prepared.free()
    }
  },
)

test('equal coordinates go to the part they went to when they are read again', async () => {
  const text = `${FORMATTED} buffer Y: f32[i, j, f] out
    iterate s [i, j, f] as SSS { Y[i, j, f] = A[i, j] } }`
  const compiled = await (await load(text)).kernel().as('Y', 'top_rest(1)').compile(createCpuDevice())
  const A = coords(
    [2, 3],
    [
      [0, 0, 0, 0],
      [0, 1, 1, 2],
    ],
    Float32Array.of(-4, 4, -1, 4),
  ) // prettier-ignore
  const prepared = await compiled.prepare({ tensors: { A }, params: { d: 2 } })
  expect((await prepared.verify()).problems).toEqual([])
})
