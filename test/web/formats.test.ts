/** `sparsetile/runtime/formats`: tensors become the formats of a plan that was read from JSON. */
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { planIn, planRequest } from '../../src/bundler/plan-request.ts'
import { load } from '../../src/node.ts'
import type { Plan } from '../../src/plan/schema.ts'
import { coords, csr, dense, instantiate } from '../../src/web/formats/formats.ts'
import { runs, sample } from '../support/cases.ts'
import { ownDevice } from './own-device.ts'

const gpu = await ownDevice()
afterAll(() => gpu.destroy())
const program = await load('kernels/spmm.spt')
/** Schedules of the formats that hold every matrix, for d = 4. */
const schedules = program
  .kernel('spmm')
  .schedules.filter((s) => !/tensor_cores|^nm$|fixed_length|^vector$|persistent|lanes/.test(s))

const matrix = fc
  .record({
    m: fc.integer({ min: 1, max: 12 }),
    n: fc.integer({ min: 1, max: 12 }),
    at: fc.uniqueArray(fc.nat(143), { maxLength: 40 }),
  })
  .map(({ m, n, at }) => {
    const places = at.filter((k) => k < m * n).sort((a, b) => a - b)
    const rows = Int32Array.from(places, (k) => Math.floor(k / n))
    const cols = Int32Array.from(places, (k) => k % n)
    return { m, n, rows, cols, values: Float32Array.from(places, (k) => (k % 7) - 3) }
  })

const D = 4
const productOf = (
  { m, rows, cols, values }: { m: number; rows: Int32Array; cols: Int32Array; values: Float32Array },
  B: Float32Array,
): number[] => {
  const C = new Array<number>(m * D).fill(0)
  rows.forEach((i, e) => {
    for (let f = 0; f < D; f++) C[i * D + f]! += values[e]! * B[cols[e]! * D + f]!
  })
  return C
}

test.each(['cpu', 'webgpu'] as const)('any matrix in the formats of SpMM on %s', async (target) => {
  let compared = 0
  for (const schedule of sample(schedules, target === 'cpu' ? 18 : 4)) {
    const plan = await planIn(program, {
      ...planRequest(`spmm.spt?plan&formats&target=${target}`),
      file: 'spmm.spt',
      schedule,
    })
    const fn = await instantiate(JSON.parse(JSON.stringify(plan)), target === 'webgpu' ? { device: gpu } : {})
    await fc.assert(
      fc.asyncProperty(matrix, async (A) => {
        const { m, n, rows, cols, values } = A
        const B = Float32Array.from({ length: n * D }, (_, k) => (k % 5) - 2)
        const inputs = { B: dense([n, D], B) }
        const { C } = await fn({ ...inputs, A: coords([m, n], [rows, cols], values) })
        expect(
          [...C!.values!].map((x) => x + 0),
          schedule,
        ).toEqual(productOf(A, B).map((x) => x + 0))
        const indptr = Int32Array.from({ length: m + 1 }, (_, i) => rows.filter((r) => r < i).length)
        const again = await fn({ ...inputs, A: csr([m, n], indptr, cols, values) })
        expect([...again.C!.values!]).toEqual([...C!.values!])
        compared++
      }),
      { numRuns: runs(target === 'cpu' ? 12 : 4) },
    )
  }
  expect(compared).toBeGreaterThanOrEqual(4)
})

test('mistakes in tensors are the diagnostics of the compiler', async () => {
  const plan = await planIn(
    program,
    planRequest('kernels/spmm.spt?plan&formats&target=cpu&schedule=hyb(1,2)'),
  )
  const fn = await instantiate(plan as Plan)
  const B = dense([3, D], new Float32Array(12))
  const codeOf = (inputs: Parameters<typeof fn>[0]): Promise<string | undefined> =>
    fn(inputs).then(
      () => 'none',
      (e: unknown) => (e instanceof SptError ? e.diagnostics[0]!.code : String(e)),
    )
  const A = coords([2, 3], [Int32Array.of(0), Int32Array.of(1)], Float32Array.of(2))
  expect(await codeOf({ A, B })).toBe('none')
  expect(await codeOf({ B })).toMatch(/^bind\//)
  expect(await codeOf({ A })).toMatch(/^bind\//)
  expect(await codeOf({ A: { ...A, coords: [Int32Array.of(2), Int32Array.of(1)] }, B })).toBe(
    'bind/coordinate-range',
  )
  expect(await codeOf({ A, B, x: 3 })).toMatch(/^bind\//)
})

test('offsets, shapes and values of tensors are checked', () => {
  const codeOf = (work: () => unknown): string => {
    try {
      work()
      return 'none'
    } catch (e) {
      return e instanceof SptError ? e.diagnostics[0]!.code : String(e)
    }
  }
  const [indices, values] = [Int32Array.of(0, 2, 1), Float32Array.of(1, 2, 3)]
  const offsets = (...indptr: number[]): string => codeOf(() => csr([2, 3], indptr, indices, values))
  expect(offsets(0, 2, 3)).toBe('none')
  expect(offsets(0, 3)).toBe('bind/indptr-length')
  expect(offsets(0, 5, 3)).toBe('bind/indptr-order')
  expect(offsets(1, 2, 3)).toBe('bind/indptr-start')
  expect(offsets(0, 2, 2)).toBe('bind/indptr-end')
  expect(codeOf(() => csr([2, 3], [0, 2, 3], [0, 2, 1], [1, 2, 3]))).toBe('none')
  expect(codeOf(() => csr([2, 3], BigInt64Array.of(0n, 2n, 3n), indices, values))).toBe('none')
  expect(codeOf(() => csr([2, 3], [0, 2, 3], [0, 3, 1], values))).toBe('tensor/coords')
  expect(codeOf(() => csr([2, 3, 4] as never, [0, 2, 3], indices, values))).toBe('tensor/coords')
  expect(codeOf(() => (csr as () => unknown)())).toBe('tensor/coords')
  expect(codeOf(() => (dense as () => unknown)())).toBe('tensor/shape')
  expect(codeOf(() => dense([2, 3], values))).toBe('tensor/length')
})

test('inputs of any form are bound as in the main API, and `set` replaces values', async () => {
  const plan = (await planIn(
    program,
    planRequest('kernels/spmm.spt?plan&formats&target=cpu&schedule=hyb(1,2)'),
  )) as Plan
  const fn = await instantiate(JSON.parse(JSON.stringify(plan)))
  const A = csr([2, 3], [0, 2, 3], [0, 2, 1], [1, 2, 3])
  const B = Float32Array.from({ length: 12 }, (_, k) => k)
  const expected = [...(await fn({ A, B: dense([3, D], B) })).C!.values!]
  expect([...(await fn({ A, B, d: D })).C!.values!]).toEqual(expected)
  expect([...(await fn({ A, B: [...B], d: D })).C!.values!]).toEqual(expected)
  const codeOf = (inputs: unknown): Promise<string> =>
    fn(inputs as Parameters<typeof fn>[0]).then(
      () => 'none',
      (e: unknown) => (e instanceof SptError ? e.diagnostics[0]!.code : String(e)),
    )
  expect(await codeOf(undefined)).toBe('api/argument')
  expect(await codeOf(null)).toBe('api/argument')
  for (const wrong of ['x', null, undefined, true, 1n, { kind: 'dense' }, {}])
    expect(await codeOf({ A, B: wrong, d: D }), String(wrong)).toMatch(/^(api|tensor|bind)\//)
  const b = await fn.bind({ A, B: new Float32Array(12), d: D })
  const values = B.slice()
  const set = b.set('B', values)
  values.fill(9)
  await set
  await b.set('A', [10, 20, 30])
  await b.run()
  expect([...(await b.get('C')).values!]).toEqual(expected.map((x) => 10 * x))
  await expect(b.set('C', values)).rejects.toThrow('bind/not-input')
  await expect(b.set('B', [1])).rejects.toThrow('bind/values-length')
  b.free()
})
