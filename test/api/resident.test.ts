/** A kernel that was prepared with resident tensors answers as one that was prepared from the host. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Built } from '../../src/api/built/built.ts'
import type { Inputs } from '../../src/api/inputs/flat-inputs.ts'
import {
  bindResident,
  convertForKernel,
  planConversion,
  type ResidentParts,
  releaseConversions,
  storageFormat,
  upload,
} from '../../src/device.ts'
import {
  type Binding,
  coords,
  type Device,
  dense,
  devices,
  type Kernel,
  load,
  type SptProgram,
  type Tensor,
} from '../../src/node.ts'
import { sample } from '../support/cases.ts'
import { complaint } from './support.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"

format big over (i, j) {
  part large = csr where (value > 3)
  part csr
}

kernel twice(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer D: f32[i, j] out
  buffer y: f32[i] out
  iterate s [i, j] as SS { D[i, j] = A[i, j] * 2 }
  iterate r [i, j] as SR { y[i] += A[i, j] * x[j] }
}

kernel scale(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] inout
  iterate s [i, j] as SS { A[i, j] = A[i, j] * 2 }
}

kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer B: f32[i, j] in
  buffer D: f32[i, j] out
  iterate s [i, j] as SS { D[i, j] = A[i, j] * B[i, j] }
}

kernel spread(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer w: f32[f] in
  buffer D: f32[i, j, f] out
  iterate s [i, j, f] as SSS { D[i, j, f] = A[i, j] * w[f] }
}
`
const rows = [0, 0, 0, 1, 3, 3, 4, 4, 4, 4]
const columns = [0, 2, 4, 1, 0, 3, 0, 1, 2, 4]
const A = coords(
  [5, 5],
  [rows, columns],
  Float32Array.from(rows, (_, e) => e + 1),
)
const x = Float32Array.of(1, 2, 3, 4, 5)

/** Coordinates with values, whatever their order. */
const entries = (t: Tensor | undefined): string[] => {
  if (t?.kind !== 'coords') throw new Error(`a ${t?.kind} tensor`)
  return Array.from(t.values!, (v, e) => `${t.coords.map((c) => c[e]).join(' ')}: ${v}`).sort()
}

const host = await devices.cpu()

const STORED: [string, ...(number | string)[]][] = [
  ['csr'],
  ['csc'],
  ['coo'],
  ['dcsr'],
  ['by_length'],
  ['ragged'],
  ['ell', 4],
  ['ell_at', 0],
  ['ell_at', 2],
  ['sell', 2, 4],
  ['pieces_ell', 2],
  ['bsr', 2],
  ['dbsr', 2],
  ['bitmap_blocks'],
  ['dia'],
  ['band', 4, 4],
  ['hyb', 2, 1],
  ['dense_blocks', 2, 0.75],
  ['top_rest', 1],
  ['rows_by_length', 2],
  ['column_ranges', 2],
  ['big'],
]

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  let program: SptProgram
  const live: { free(): void }[] = []
  beforeAll(async () => {
    device = await devices[kind]()
    program = await load(TEXT)
  })
  afterAll(async () => {
    for (const x of live.reverse()) x.free()
    await releaseConversions(device)
    await device.dispose()
  })

  const keep = <T extends { free(): void }>(thing: T): T => {
    live.push(thing)
    return thing
  }

  /** Prepared with these tensors resident. */
  async function prepare(
    kernel: Kernel,
    tensors: Readonly<Record<string, ReturnType<typeof coords>>>,
    inputs: Inputs = {},
    given: Parameters<typeof convertForKernel>[3] = {},
  ): Promise<{ prepared: Binding; parts: Record<string, ResidentParts> }> {
    const compiled = await kernel.build(device)
    const parts: Record<string, ResidentParts> = {}
    for (const [name, t] of Object.entries(tensors)) {
      const from = await upload(device, t)
      parts[name] = keep(await convertForKernel(compiled, name, from, given))
      from.free()
    }
    return { prepared: keep(await bindResident(compiled, { ...inputs, ...parts })), parts }
  }

  // On webgpu each compiles kernels of its own: others in every run.
  test.each(kind === 'cpu' ? STORED : [...sample(STORED, 7)])('%s', async (format, ...args) => {
    const kernel = program.kernel('twice').as('A', format, ...args)
    const { prepared } = await prepare(kernel, { A }, { x: dense([5], x) })
    await prepared.run()
    // Integers: the same on every device, and on cpu nothing is compiled for long.
    const wanted = await (await kernel.build(host))({ A, x })
    const out = await prepared.outputs()
    expect(entries(out.D)).toEqual(entries(wanted.D))
    expect(entries(out.D)).toHaveLength(rows.length)
    expect(out.y).toEqual(wanted.y)
    expect(await prepared.get('D')).toEqual(out.D)
    expect(entries(await prepared.get('A'))).toEqual(entries(A))
    expect(await prepared.verify()).toMatchObject({ ok: true, problems: [] })
  })

  test('a wrong result is detected', async () => {
    const { prepared, parts } = await prepare(
      program.kernel('twice').as('A', 'csr'),
      { A },
      { x: dense([5], x) },
    )
    const { verifyAgainst } = await import('../../src/run/verify/verify.ts')
    const { expectedOf } = await import('../../src/run/bind/results/reference-inputs.ts')
    const { source } = prepared.code.compilation
    const expected = expectedOf(source, await prepared.executable.boundFromDevice())
    const { memory } = parts.A!.parts[0]!.values
    await device.upload(memory, Float32Array.of(100))
    const found = await verifyAgainst(prepared.code.compilation.source, prepared.executable, expected)
    expect(found.problems.join()).toMatch(/D\[0, 0\].*y\[0\]/)
    // What it holds now is what is taken for bound.
    if (prepared.executable.program.plan.packed.length === 0)
      expect(entries(await prepared.get('A'))[0]).toBe('0 0: 100')
    expect(await prepared.verify()).toMatchObject({ ok: true })
  })

  test('zeros are padding in blocks, and elements elsewhere', async () => {
    const some = coords([5, 5], [rows, columns], (A.values as Float32Array).with(4, 0).with(9, 0))
    for (const [format, count] of [
      ['csr', 10],
      ['bsr', 8],
    ] as const) {
      const kernel = program.kernel('twice').as('A', format, ...(format === 'bsr' ? [2] : []))
      const { prepared } = await prepare(kernel, { A: some }, { x: dense([5], x) })
      expect(await prepared.verify()).toMatchObject({ ok: true })
      expect(entries(await prepared.get('D'))).toHaveLength(count)
    }
  })

  test('values written next to a resident tensor are used', async () => {
    // Without a schedule, what is bound on the host would choose another one.
    const kernel = program.kernel('twice').as('A', 'hyb', 2, 1).parallel()
    const { prepared } = await prepare(kernel, { A }, { x: dense([5], x) })
    await prepared.set('x', [0, 0, 0, 0, 1])
    expect(await prepared.verify()).toMatchObject({ ok: true })
    expect([...(await prepared.get('y')).values!]).toEqual([3, 0, 0, 0, 10])
    const { launches } = await prepared.explain({ time: false })
    const host = await (await kernel.build(device)).bind({ A, x })
    expect(launches).toEqual((await host.explain({ time: false })).launches)
    host.free()
  })

  test('an inout tensor is read and verified from device memory', async () => {
    const { prepared } = await prepare(program.kernel('scale').as('A', 'bsr', 2), { A })
    await prepared.run()
    const doubled = (by: number): string[] => rows.map((r, e) => `${r} ${columns[e]}: ${(e + 1) * by}`).sort()
    expect(entries(await prepared.get('A'))).toEqual(doubled(2))
    expect(await prepared.verify()).toMatchObject({ ok: true })
    expect(entries((await prepared.outputs()).A)).toEqual(doubled(2))
    await prepared.run()
    expect(entries(await prepared.get('A'))).toEqual(doubled(4))
  })

  test('lists and sets of its format', async () => {
    const bounds = Int32Array.of(0, 2, 5)
    const lists = new Map([
      ['rows', bounds],
      ['cols', bounds],
    ])
    const list = dense([3], bounds)
    const { prepared } = await prepare(
      program.kernel('twice').as('A', 'vbr', 'rows', 'cols'),
      { A },
      { x: dense([5], x), rows: list, cols: list },
      { lists },
    )
    expect(await prepared.verify()).toMatchObject({ ok: true })
    expect(entries(await prepared.get('D'))).toHaveLength(rows.length)
    const sets = new Map([['mask', [Int32Array.of(0, 4), Int32Array.of(2, 4)]]])
    const masked = await prepare(
      program.kernel('twice').as('A', 'masked_rest', 'mask'),
      { A },
      {
        x: dense([5], x),
        mask: coords(
          [5, 5],
          [
            [0, 4],
            [2, 4],
          ],
        ),
      },
      { sets },
    )
    expect(await masked.prepared.verify()).toMatchObject({ ok: true })
    expect(entries(await masked.prepared.get('D'))).toHaveLength(rows.length)
  })

  test('undeterminable sizes are rejected', async () => {
    const { prepared, parts } = await prepare(
      program.kernel('twice').as('A', 'csr'),
      { A },
      { x: dense([5], x) },
    )
    expect(await complaint(() => prepared.set('A', A))).toMatch(/run\/resident.*A is resident/)
    expect(await complaint(() => prepared.set('A', [1]))).toMatch(/run\/resident/)
    expect(await complaint(() => prepared.formats)).toMatch(/run\/resident.*A was converted/)
    // Coordinates of an output over more axes would take a conversion.
    const spread = await prepare(program.kernel('spread').as('A', 'bsr', 2), { A }, { w: dense([2], [1, 2]) })
    await spread.prepared.run()
    for (const call of ['outputs', 'verify'] as const)
      expect(await complaint(() => spread.prepared[call]())).toMatch(
        /run\/resident.*D has the structure of A/,
      )
    parts.A!.free()
    expect(await complaint(() => prepared.get('D'))).toMatch(/device\/freed/)
  })

  test('tensors that share its structure have its coordinates, on the device', async () => {
    const kernel = program.kernel('product').as('A', 'csr')
    const B = coords([5, 5], [rows, columns], Float32Array.from(rows).fill(3))
    const { prepared, parts } = await prepare(kernel, { A, B })
    await prepared.run()
    expect(await prepared.verify()).toMatchObject({ ok: true })
    const out = entries(await prepared.get('D'))
    expect(out).toEqual(rows.map((r, e) => `${r} ${columns[e]}: ${3 * (e + 1)}`).sort())
    const other = coords([5, 5], [rows, columns.with(9, 3)], Float32Array.from(rows).fill(3))
    expect(await complaint(() => prepare(kernel, { A, B: other }))).toMatch(/convert\/shared.*A and B/)
    const host = () => bindResident(Built.fixed(prepared.code), { A: parts.A!, B })
    expect(await complaint(host)).toMatch(/convert\/shared.*B is bound from the host/)
  })

  test('values without a shape, and non-resident values, are accepted as by prepare', async () => {
    const kernel = program.kernel('twice').as('A', 'csr')
    const expected = [...(await (await kernel.build(device))({ A, x })).y!.values!]
    for (const bare of [x, [...x]]) {
      const { prepared } = await prepare(kernel, { A }, { x: bare })
      await prepared.run()
      expect([...(await prepared.get('y')).values!]).toEqual(expected)
      expect((await prepared.verify()).ok).toBe(true)
      const host = keep(await bindResident(Built.fixed(prepared.code), { A, x: bare }))
      await host.run()
      expect([...(await host.get('y')).values!]).toEqual(expected)
    }
    for (const [tensors, said] of [
      [{ x: '5' }, /^api\/argument.*x cannot be "5"/],
      [{ x: Float32Array.of(1) }, /^bind\/values-length/],
      [{ x: { tensors: { x } } }, /^api\/argument.*x cannot be an object/],
      [{ d: 5 }, /^bind\/unknown/],
    ] as const)
      expect(await complaint(() => prepare(kernel, { A }, tensors as never))).toMatch(said)
  })

  test('a kernel whose tensor was freed does not run', async () => {
    const { prepared, parts } = await prepare(program.kernel('twice').as('A', 'csr'), { A }, { x })
    await prepared.run()
    parts.A!.free()
    for (const call of [
      () => prepared.run(),
      () => prepared.time(1),
      () => prepared.graph(),
      () => prepared.measure({ repeats: 1 }),
      () => prepared.get('y'),
    ])
      expect(await complaint(call)).toMatch(/^device\/freed/)
  })

  test('a tensor that was freed is rejected', async () => {
    const compiled = await program.kernel('scale').as('A', 'csr').build(device)
    const from = await upload(device, A)
    const parts = await convertForKernel(compiled, 'A', from)
    parts.free()
    expect(await complaint(() => bindResident(compiled, { A: parts }))).toMatch(/device\/freed/)
    expect(from.freed).toBe(false)
    from.free()
    expect(from.freed).toBe(true)
    for (const gone of [from, parts]) {
      expect(await complaint(() => convertForKernel(compiled, 'A', gone))).toMatch(/^device\/freed/)
      const plan = planConversion(device, storageFormat(compiled, 'A'))
      const none = new Map()
      const given = { sizes: none, extents: none, lists: none, sets: none }
      expect(await complaint(() => plan.run(gone, given))).toMatch(/^device\/freed/)
    }
  })
})

describe('sizes of the formats that tensors are in', () => {
  const text = `${TEXT}
format narrow(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}`
  const bound = async (w: number | undefined, params: Readonly<Record<string, number>>) => {
    const program = await load(text)
    const compiled = await program.kernel('twice').as('A', 'narrow', 'w').build(host)
    const from = await upload(host, A)
    const made = await convertForKernel(
      compiled,
      'A',
      from,
      w === undefined ? {} : { sizes: new Map([['w', w]]) },
    )
    return bindResident(compiled, { A: made, x, ...params })
  }
  test.each([
    [6, {}],
    [6, { w: 6 }],
    [undefined, {}],
    [undefined, { w: 4 }],
  ])('converted with %s, and bound with %o', async (w, params) => {
    const prepared = await bound(w, params)
    expect(await prepared.verify()).toMatchObject({ ok: true })
    prepared.free()
  })
  test('another fill value than the kernel has is rejected', async () => {
    const compiled = await (await load(text)).kernel('twice').as('A', 'bsr', 2).build(host)
    const to = storageFormat(compiled, 'A')
    const extents = new Map(to.over.map((axis) => [axis.name, 5]))
    const sizes = new Map(['m', 'n'].map((name) => [name, 5]))
    const given = { sizes, extents, lists: new Map(), sets: new Map() }
    const bound = async (fill: number) => {
      const made = await planConversion(host, to, fill).run(await upload(host, A), given)
      return bindResident(compiled, { A: made, x })
    }
    expect(await (await bound(0)).verify()).toMatchObject({ ok: true })
    expect(await complaint(() => bound(7))).toMatch(/convert\/other-format.*fill value 7/)
  })
  test('others are rejected', async () => {
    expect(await complaint(() => bound(6, { w: 5 }))).toMatch(/convert\/other-format.*w = 6.*given has w = 5/)
    expect(await complaint(() => bound(undefined, { w: 3 }))).toMatch(/convert\/other-format.*w = 4/)
  })
})
