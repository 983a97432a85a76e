/** Calls that nobody awaits, on kernels that share what is resident: as if each came after the other, also after one that had too little room. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Built, type Device, dense, devices, load, type SptError } from '../../src/node.ts'
import { Choices } from '../support/choices.ts'
import { KERNELS, LIVE, matrix } from './live-gen.ts'
import { numbers, parameters } from './property-cases.ts'

const ROOM = 2
const TEXT = `${LIVE.panels.text}
${LIVE.blocks.text}
kernel rectify(m: size, k: size) {
  axis i = dense_fixed(m)
  axis q = dense_fixed(k)
  buffer X: f32[i, q] in
  buffer Y: f32[i, q] out
  iterate all [i, q] as SS { Y[i, q] = max(X[i, q], 0) }
}
${KERNELS.left}
schedule product.tight { A as panels(2, 2) live in place capacity ${ROOM} }
schedule product.fused { A as blocks(2, 3) live in place fuse (mul.io, mul.jo) -> g }`
const [M, N, K] = [9, 2, 37]
const CALLS = [
  'write X',
  'rectify',
  'run tight',
  'read tight',
  'run fused',
  'read fused',
  'write B',
  'replay',
] as const

const rectified = (X: Float32Array): Float32Array => X.map((x) => Math.max(x, 0) + 0)
const product = (A: Float32Array, B: Float32Array): readonly number[] =>
  Array.from({ length: M * N }, (_, e) => {
    let sum = 0
    for (let q = 0; q < K; q++) sum += A[Math.floor(e / N) * K + q]! * B[q * N + (e % N)]!
    return sum + 0
  })
/** How many groups of two columns the longest list of two rows has. */
const needed = (A: Float32Array): number => {
  const columns = Array.from({ length: Math.ceil(M / 2) }, (_, io) =>
    Array.from({ length: K }, (_, q) => [0, 1].some((ii) => (A[(io * 2 + ii) * K + q] ?? 0) !== 0)),
  )
  return Math.max(...columns.map((held) => Math.ceil(held.filter(Boolean).length / 2)))
}

const codeOf = (run: Promise<void>): Promise<string> =>
  run.then(
    () => 'right',
    (e: SptError) => e.diagnostics[0]!.code,
  )

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let compiled: Readonly<Record<'rectify' | 'tight' | 'fused', Built>>
  beforeAll(async () => {
    device = await devices[kind]()
    const program = await load(TEXT)
    const of = (schedule: string) => program.kernel('product').schedule(schedule).build(device)
    compiled = {
      rectify: await program.kernel('rectify').build(device),
      tight: await of('tight'),
      fused: await of('fused'),
    }
  })
  afterAll(() => device.dispose())

  test('results equal those of sequential calls', async () => {
    await fc.assert(
      fc.asyncProperty(numbers, async (n) => {
        const c = new Choices(n)
        const some = (): Float32Array => matrix(c, N * K)
        // Few columns, mostly: there is room for 4 of them.
        const sparse = (): Float32Array => {
          const held = matrix(c, M * K)
          const few = c.pick([3, 9, 40])
          return held.map((x, e) => ((e % K) % few === 0 && few > 3 ? x : few === 3 ? x : -0))
        }
        let [x, b] = [sparse(), some()]
        const rectify = await compiled.rectify.bind({ X: dense([M, K], x) })
        const A = rectify.output('Y')
        const tight = await compiled.tight.bind({ A, B: dense([K, N], b) })
        const fused = await compiled.fused.bind({ A, B: dense([K, N], b) })
        const all = [rectify, tight, fused] as const
        const graphs = await Promise.all(all.map((p) => p.graph()))
        try {
          await rectify.run()
          await fused.run()
          let a = rectified(x)
          const fusedB = b
          let first: readonly number[] | null = null
          let second = product(a, fusedB)
          let pending: Promise<void>[] = []
          const said: string[] = []
          const is = (got: Promise<unknown>, wanted: unknown, what: string): void => {
            said.push(what)
            pending.push(got.then((x) => expect(x, said.join(', ')).toEqual(wanted)))
          }
          const values = async (of: typeof tight): Promise<number[]> =>
            Array.from((await of.get('C')).values!, (x) => Number(x) + 0)
          for (let call = 0; call < 24; call++) {
            const what = c.pick(CALLS)
            if (what === 'write X') {
              x = sparse()
              is(rectify.set('X', x), undefined, what)
            } else if (what === 'rectify') {
              a = rectified(x)
              is(rectify.run(), undefined, what)
            } else if (what === 'run tight') {
              const fits = needed(a) <= ROOM
              first = fits ? product(a, b) : null
              is(codeOf(tight.run()), fits ? 'right' : 'run/overflow', what)
            } else if (what === 'run fused') {
              second = product(a, fusedB)
              is(fused.run(), undefined, what)
            } else if (what === 'write B') {
              b = some()
              is(tight.set('B', b), undefined, what)
            } else if (what === 'read tight' && first) is(values(tight), first, what)
            else if (what === 'read fused') is(values(fused), second, what)
            else if (what === 'replay') {
              // What is queued at once comes after what has ended.
              await Promise.all(pending)
              pending = []
              a = rectified(x)
              const fits = needed(a) <= ROOM
              first = fits ? product(a, b) : null
              second = product(a, fusedB)
              for (const g of graphs) g.launch()
              is(codeOf(graphs[1]!.finish()), fits ? 'right' : 'run/overflow', what)
              await Promise.all(pending)
              pending = []
            }
          }
          await Promise.all(pending)
        } finally {
          for (const g of graphs) g.free()
          for (const p of all) p.free()
        }
      }),
      parameters(kind === 'cpu' ? 20 : 5),
    )
  })
})
