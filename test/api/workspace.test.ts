/** Schedules of a kernel that share inputs compute what they compute by themselves, and hold them once. */

import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { Built } from '../../src/api/built/built.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { releaseConversions } from '../../src/device.ts'
import { coords, type Device, type Kernel, load } from '../../src/node.ts'
import { Workspace } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { type Counted, countedDevice } from '../support/counted-device.ts'
import { property } from '../support/property.ts'
import { complaint, TEXT } from './support.ts'

let kernel: Kernel
let counted: Counted
let device: Device
beforeAll(async () => {
  kernel = (
    await load(`import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
${TEXT}`)
  ).kernel('mul')
  counted = await countedDevice()
  device = counted.device
})

/** Schedules, of which some store A alike. */
const CANDIDATES: readonly ((k: Kernel) => Kernel)[] = [
  (k) => k,
  (k) => k.reorder('i', 'f', 'j'),
  (k) => k.as('A', 'bsr', 4),
  (k) => k.as('A', 'bsr', 4).split('f', 2),
  (k) => k.as('A', 'hyb', 2, 2),
  (k) => k.as('A', 'hyb', 2, 2).parallel(),
  (k) => k.split('i', 3),
]

const matrices = fc
  .record({
    m: fc.integer({ min: 1, max: 9 }),
    n: fc.integer({ min: 1, max: 9 }),
    d: fc.integer({ min: 1, max: 5 }),
  })
  .chain(({ m, n, d }) =>
    fc.uniqueArray(fc.tuple(fc.nat(m - 1), fc.nat(n - 1)), { maxLength: 20, selector: String }).map((at) => ({
      d,
      A: coords(
        [m, n],
        [at.map(([i]) => i), at.map(([, j]) => j)],
        Float32Array.from(at, ([i, j]) => 1 + ((3 * i + j) % 5)),
      ),
      B: Float32Array.from({ length: n * d }, (_, k) => (k % 7) - 3),
    })),
  )

property(
  [matrices, fc.shuffledSubarray([...CANDIDATES.keys()], { minLength: 2 }), fc.boolean(), fc.boolean()],
  { numRuns: runs(25) },
)(
  'kernels of a workspace give the same results as separate kernels, wherever formats are built',
  async ({ A, B, d }, order, shareOutputs, there) => {
    const data = new Workspace(
      device,
      kernel,
      { A, B, d },
      { shareOutputs, hostCacheBytes: 0, ...(there && { deviceConversionThreshold: 0 }) },
    )
    const before = counted.held()
    const prepared = []
    for (const k of order)
      prepared.push(await data.bind(await CANDIDATES[k]!(kernel).build(device, { auto: false })))
    for (const p of prepared) {
      await p.run()
      const alone = await Built.fixed(p.code)({ A, B, d })
      expect((await p.get('C')).values).toEqual(alone.C!.values)
      expect((await data.verify(p)).problems).toEqual([])
    }
    for (const p of prepared) {
      p.free()
      p.free()
    }
    data.free()
    await releaseConversions(device)
    expect([counted.held() - before, data.bytes]).toEqual([0, 0])
  },
)

property([matrices, fc.constantFrom(...CANDIDATES.keys())], { numRuns: runs(25) })(
  'arrays built on the device equal those of the host',
  async ({ A, B, d }, which) => {
    const inputs = { A, B, d }
    const compiled = await CANDIDATES[which]!(kernel).build(device, { auto: false })
    const data = new Workspace(device, kernel, inputs, { deviceConversionThreshold: 0 })
    const prepared = await data.bind(compiled)
    const { executable } = prepared
    const isStored = compiled.compilation.kernel.reformats.length > 0
    expect(executable.residents).toEqual(isStored ? ['A'] : [])
    const bound = data.bindOnHost(compiled)
    for (const { name, role } of compiled.program.plan.buffers)
      if (role === 'in' || role === 'index')
        expect([name, [...(await executable.values(name))]]).toEqual([name, [...bound.arrays.get(name)!]])
    prepared.free()
    data.free()
  },
)

describe('shared storage', () => {
  const inputs = () => ({
    tensors: {
      A: coords(
        [6, 6],
        [
          [0, 1, 5],
          [5, 1, 0],
        ],
        Float32Array.of(1, 2, 3),
      ),
    },
    params: { d: 4 },
    seed: 7,
  })

  test('one conversion for each format, and dense arrays once', async () => {
    const data = new Workspace(device, kernel, ...flatInputs(inputs()))
    const [a, b] = await Promise.all([2, 3].map((k) => CANDIDATES[k]!(kernel).build(device, { auto: false })))
    expect(data.bindOnHost(a!)).toBe(data.bindOnHost(b!))
    const plain = await kernel.build(device, { auto: false })
    expect(data.bindOnHost(plain).arrays.get('B')).toBe(data.bindOnHost(a!).arrays.get('B'))
    expect(data.bindOnHost(plain)).toBe(
      data.bindOnHost(await kernel.reorder('i', 'f', 'j').build(device, { auto: false })),
    )
    const one = await data.bind(a!)
    const held = counted.held()
    const two = await data.bind(b!)
    // C alone.
    expect(counted.held() - held).toBe(6 * 4 * 4)
    one.free()
    await two.run()
    expect((await data.verify(two)).ok).toBe(true)
    two.free()
  })

  test('random data equal those of the unscheduled kernel', async () => {
    const data = new Workspace(device, kernel, ...flatInputs(inputs()))
    const prepared = await data.bind(await CANDIDATES[4]!(kernel).build(device, { auto: false }))
    await prepared.run()
    const alone = await (await kernel.build(device, { auto: false }))(...flatInputs(inputs()))
    expect((await prepared.get('C')).values).toEqual(alone.C!.values)
    prepared.free()
  })

  test('another format of the same name is another format', async () => {
    const other = (
      await load(
        'format bsr(b) over (i, j) { axis jo = dense_fixed(j)\n axis io = sparse_variable(jo, i)\n map (i, j) -> (j, i)\n inverse (jo, io) -> (io, jo) }',
      )
    ).formats.get('bsr')!
    const data = new Workspace(device, kernel, ...flatInputs(inputs()))
    const [a, b] = [kernel.as('A', 'bsr', 2), kernel.as('A', other, 2)]
    expect(data.bindOnHost(await a.build(device, { auto: false }))).not.toBe(
      data.bindOnHost(await b.build(device, { auto: false })),
    )
  })

  test('rejections', async () => {
    const data = new Workspace(device, kernel, ...flatInputs(inputs()))
    const prepared = await data.bind(await kernel.build(device, { auto: false }))
    expect(await complaint(() => prepared.set('B', new Float32Array(24)))).toMatchInlineSnapshot(
      `"run/shared: the memory of B is read by every kernel of the workspace"`,
    )
    const twin = (await load(TEXT)).kernel()
    expect(
      await complaint(async () => data.bindOnHost(await twin.build(device, { auto: false }))),
    ).toMatchInlineSnapshot(
      `"run/other-kernel: the workspace was made for kernel mul, and this is another one: mul"`,
    )
    const elsewhere = await kernel.build((await countedDevice()).device, { auto: false })
    const refused =
      'run/other-device: the workspace has memory of cpu, and kernel mul was compiled for another device: cpu'
    expect(await complaint(() => data.bind(elsewhere))).toBe(refused)
    expect(await complaint(async () => data.bindOnHost(elsewhere))).toBe(refused)
    prepared.free()
  })
})

property([fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 35, maxLength: 35 }), fc.boolean()], {
  numRuns: runs(8),
})('dense tensors over common axes are stored in separate formats', async (values, there) => {
  const product = (
    await load(`import "sparsetile/kernels/formats.spt"
kernel product(m: size, k: size, n: size) {
  axis i = dense_fixed(m)
  axis p = dense_fixed(k)
  axis j = dense_fixed(n)
  buffer A: f32[i, p] in
  buffer B: f32[p, j] in
  buffer C: f32[i, j] out
  iterate sum [i, p, j] as SRS { C[i, j] += A[i, p] * B[p, j] }
}`)
  ).kernel('product')
  const dense = (shape: number[], from: number) => ({
    kind: 'dense' as const,
    shape,
    values: Float32Array.from(values.slice(from, from + shape[0]! * shape[1]!)),
    dtype: 'f32' as const,
  })
  const tensors = { A: dense([4, 5], 0), B: dense([5, 3], 20) }
  const data = new Workspace(device, product, tensors, there ? { deviceConversionThreshold: 0 } : {})
  const wanted = (await (await product.build(device, { auto: false }))(tensors)).C!.values
  for (const k of [
    product,
    product.as('A', 'bsr', 2),
    product.as('A', 'ell').as('B', 'bsr', 2),
    product.as('B', 'csr').as('A', 'csr').parallel(),
  ]) {
    const p = await data.bind(await k.build(device, { auto: false }))
    await p.run()
    expect((await p.get('C')).values).toEqual(wanted)
    expect((await data.verify(p)).problems).toEqual([])
    p.free()
  }
  data.free()
})

describe('lists and sets of formats', () => {
  const PROGRAM = `import "sparsetile/kernels/formats.spt"
format halved(some: set) over (i, j) {
  part some_of = csr where (held(some))
  part rest = coo
}
${TEXT}
schedule mul.blocks { A as vbr(top, left) }
schedule mul.wide { A as vbr(top, across) }
schedule mul.halves { A as halved(picked) }
schedule mul.chosen choose {
  when (m > 6) blocks
  when (m > 3) halves
  otherwise squares
}
schedule mul.squares { A as bsr(2) }
`
  const SCHEDULES = ['blocks', 'wide', 'halves', 'squares'] as const
  let of: Kernel
  beforeAll(async () => {
    of = (await load(PROGRAM)).kernel('mul')
  })
  const cuts = (end: number) =>
    fc
      .uniqueArray(fc.integer({ min: 1, max: end }), { maxLength: end })
      .map((at) => Int32Array.from([...new Set([0, ...at, end])].sort((a, b) => a - b)))
  const bound = matrices.chain(({ A, B, d }) => {
    const [m, n] = A.shape as [number, number]
    return fc.record({
      tensors: fc.record({
        A: fc.constant(A),
        B: fc.constant(B),
        top: cuts(m),
        left: cuts(n),
        across: cuts(n),
        picked: fc.subarray([...(A.coords[0] ?? [])].map((_, e) => e)).map((some) =>
          coords(
            [m, n],
            A.coords.map((c) => some.map((e) => c[e]!)),
            null,
          ),
        ),
      }),
      params: fc.constant({ d }),
    })
  })

  property([bound, fc.shuffledSubarray([...SCHEDULES], { minLength: 2 }), fc.boolean()], {
    numRuns: runs(25),
  })(
    'each kernel of a workspace and each variant receives the lists of its formats',
    async ({ tensors, params }, order, byHand) => {
      const data = new Workspace(device, of, { ...tensors, ...params })
      for (const name of order) {
        const scheduled = byHand && name === 'blocks' ? of.as('A', 'vbr(top, left)') : of.schedule(name)
        const compiled = await scheduled.build(device, { auto: false })
        const prepared = await data.bind(compiled)
        await prepared.run()
        expect((await data.verify(prepared)).ok).toBe(true)
        prepared.free()
        compiled.release()
      }
      const choice = await of.schedule('chosen').build(device)
      const { across, ...ofChoice } = tensors
      const chosen = await choice.bind({ ...ofChoice, ...params })
      await chosen.run()
      expect((await chosen.verify()).ok).toBe(true)
      chosen.free()
      // Which is of another schedule.
      expect(await complaint(() => choice.bind({ ...ofChoice, across, ...params }))).toContain(
        'bind/unknown-name',
      )
      choice.release()
      data.free()
    },
  )

  property([bound, fc.constantFrom(...SCHEDULES)], { numRuns: runs(10) })(
    'unused lists and missing lists are rejected',
    async ({ tensors, params }, name) => {
      const compiled = await of.schedule(name).build(device, { auto: false })
      const misspelt = new Workspace(device, of, { ...tensors, tops: [0, 1], ...params })
      expect(await complaint(() => misspelt.bind(compiled))).toContain('bind/unknown-name')
      expect(
        await complaint(async () =>
          (await of.schedule('chosen').build(device))({ ...tensors, tops: [0, 1], ...params }),
        ),
      ).toContain('bind/unknown-name')
      const { A, B } = tensors
      const bare = new Workspace(device, of, { A, B, ...params })
      if (name !== 'squares')
        expect(await complaint(() => bare.bind(compiled))).toMatch(/bind\/missing-(list|set)/)
      compiled.release()
    },
  )
})
