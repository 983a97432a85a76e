/** Kernels without a schedule: formats for run-time zeros of temporaries and inputs next to the dense kernel. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Binding, type Device, dense, devices, load } from '../../src/node.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { asHardware } from '../support/hardware.ts'

let on: Readonly<Record<'cpu' | 'webgpu', Device>>
beforeAll(async () => {
  on = { cpu: await devices.cpu(), webgpu: asHardware(await createNodeWebGpu()) }
})
afterAll(() => on.webgpu.dispose())

const [M, K, N] = [192, 128, 64]
/** Rows and columns of a layer; on GPUs, index construction costs more than the product with few columns. */
const SIZES = { cpu: [M, N], webgpu: [64, 768] } as const
/** Random values of which a share is positive; the others are `other`. */
function values(share: number, seed: number, other: number, m = M): Float32Array {
  let state = seed
  const next = (): number => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
  return Float32Array.from({ length: m * K }, () => (next() < share ? 1 + Math.floor(next() * 4) : other))
}
/** Large on the diagonal, so that the product before the activation has the signs of the input. */
const U = dense(
  [K, K],
  Float32Array.from({ length: K * K }, (_, e) => (e % (K + 1) === 0 ? 1000 : (e % 3) - 1)),
)
const weights = (n: number) =>
  dense(
    [K, n],
    Float32Array.from({ length: K * n }, (_, e) => (e % 5) - 2),
  )
const D = weights(N)

const multiply = (A: Float32Array, B: Float32Array, columns: number): Float32Array =>
  Float32Array.from({ length: (A.length / K) * columns }, (_, e) => {
    const [row, column] = [Math.floor(e / columns) * K, e % columns]
    let sum = 0
    for (let q = 0; q < K; q++) sum += A[row + q]! * B[q * columns + column]!
    return sum
  })
const layer = (X: Float32Array, n: number): Float32Array => {
  const S = multiply(X, U.values as Float32Array, K)
  return multiply(
    S.map((x) => Math.max(x, 0)),
    weights(n).values as Float32Array,
    n,
  )
}

/** Runs with data of each sparsity, and returns the schedules that ran. */
async function taken(b: Binding, [m, n]: readonly [number, number], sparsities: readonly number[]) {
  const schedules: string[] = []
  for (const [seed, sparsity] of sparsities.entries()) {
    const X = values(1 - sparsity, seed + 1, -1, m)
    await b.set('X', X)
    await b.run()
    expect((await b.get('Y')).values).toEqual(layer(X, n))
    await b.awaitMeasurements()
    schedules.push(b.selection!.text)
  }
  return schedules
}
const isLive = (text: string): boolean => text.includes('live in place')

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  test('a ReLU layer runs the sparse branch at 91, 95 and 99 %, and the dense one at 10 %', async () => {
    const fn = await (await load('test/models/rectified.spt')).kernel('perceptron').build(on[kind])
    const [m, n] = SIZES[kind]
    const [first, D] = [dense([m, K], values(0.05, 7, -1, m)), weights(n)]
    const b = await fn.bind({ X: first, U, D })
    const { alternatives } = b.selection!
    expect(alternatives!.map((a) => isLive(a.text))).toEqual([true, false])
    expect(alternatives![0]!.reason).toMatch(/^fill_ratio\(H, \w+.*\) < 0\.\d+$/)
    const schedules = await taken(b, [m, n], [0.91, 0.1, 0.95, 0.99, 0.1, 0.91])
    expect(schedules.map(isLive)).toEqual([true, false, true, true, false, true])
    expect((await b.verify({ sample: { count: 4 } })).problems).toEqual([])
    b.free()
    // The rules were selected on the first data of these sizes.
    const again = await fn.bind({ X: dense([m, K], values(0.9, 3, -1, m)), U, D })
    expect(isLive(again.selection!.text)).toBe(false)
    expect(again.selection!.alternatives!.length).toBe(2)
    again.free()
  })
})

const PRODUCT = `kernel product(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  axis o = dense_fixed(n)
  buffer H: f32[i, q] in
  buffer D: f32[q, o] in
  buffer Y: f32[i, o] out
  iterate mul [i, q, o] as SRS { Y[i, o] += H[i, q] * D[q, o] }
}`

test('mostly zero inputs get rules; dense inputs, dense activations and small kernels do not', async () => {
  const program = await load(PRODUCT)
  const rows = (m: number, share: number): Float32Array =>
    Float32Array.from({ length: m * K }, (_, e) =>
      (Math.imul(e + 1, 2654435761) >>> 8) % 100 < share * 100 ? 1 : 0,
    )
  const bound = async (m: number, share: number): Promise<boolean> => {
    const fn = await program.kernel().build(on.cpu)
    const b = await fn.bind({ H: dense([m, K], rows(m, share)), D })
    await b.run()
    const H = rows(m, share)
    const Y = (await b.get('Y')).values!
    for (let o = 0; o < N; o++) {
      let sum = 0
      for (let q = 0; q < K; q++) sum += H[(m - 1) * K + q]! * D.values![q * N + o]!
      expect(Y[(m - 1) * N + o]).toBe(sum)
    }
    const isProposed = b.selection?.alternatives !== undefined
    b.free()
    return isProposed
  }
  expect(await bound(600, 0.03)).toBe(true)
  expect(await bound(600, 0.8)).toBe(false)
  expect(await bound(60, 0.03)).toBe(false)
  const plain = await (await load('test/models/rectified.spt')).kernel('perceptron').build(on.cpu)
  const b = await plain.bind({ X: dense([M, K], values(0.95, 7, -1)), U, D })
  expect(b.selection).toBe(null)
  b.free()
})
