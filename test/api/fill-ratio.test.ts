/** What conditions ask of formats: the share of a tensor that they store. */

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { upload } from '../../src/device.ts'
import type { Built, CoordTensor, Device, SptProgram, Tensor } from '../../src/node.ts'
import { coords, dense, devices, load, stored } from '../../src/node.ts'
import { slotsOf } from '../../src/storage/entries/stored-parts.ts'
import { runs } from '../support/cases.ts'
import { complaint } from './support.ts'

// Counts how often structure is looked at.
vi.mock('../../src/storage/entries/stored-parts.ts', async (original) => {
  const own = await original<{ slotsOf: typeof slotsOf }>()
  return { ...own, slotsOf: vi.fn(own.slotsOf) }
})

const TEXT = `import "sparsetile/kernels/formats.spt"
import "sparsetile/kernels/formats-composed.spt"
import { tile_wise } from "sparsetile/kernels/tile-wise.spt"
format long_short over (i, j) {
  part long = csr where (count(j by i) > 1)
  part short = coo
}
kernel sums(m: size, n: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j]  in
  buffer D: f32[i, jd] in
  buffer C: f32[i]     out
  iterate all [i, j] as SR { C[i] += A[i, j] * D[i, j] }
}
schedule sums.plain { reorder (i, j) }
schedule sums.other { split i by 2 }
`
const choosing = (condition: string, params = ''): Promise<SptProgram> =>
  load(`${TEXT}schedule sums.auto${params} choose { when (${condition}) plain otherwise other }`)

const FORMATS = [
  'csr',
  'coo',
  'ell',
  'ell(7)',
  'bsr(2)',
  'bsr_masked(3)',
  'sell(2, 4)',
  'panels(2, 2)',
  'tile_wise(2, 3)',
  'dia',
  'hyb(2, 1)',
  'dense_blocks(2, 0.5)',
  'top_rest(1)',
  'strided_rest(2)',
  'long_short',
] as const

interface Case {
  readonly shape: readonly [number, number]
  readonly at: readonly (readonly [number, number])[]
  readonly format: string
}
const cases: fc.Arbitrary<Case> = fc
  .tuple(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 7 }))
  .chain(([m, n]) =>
    fc.record({
      shape: fc.constant([m, n] as const),
      // In order, too: then arrays of the tensor may be those of the format.
      at: fc
        .tuple(fc.uniqueArray(fc.integer({ min: 0, max: m * n - 1 })), fc.boolean())
        .map(([points, sorted]) => (sorted ? points.sort((a, b) => a - b) : points))
        .map((points) => points.map((p) => [Math.floor(p / n), p % n] as const)),
      format: fc.constantFrom(...FORMATS),
    }),
  )

const pattern = ({ shape, at }: Case): CoordTensor =>
  coords(
    shape,
    [at.map(([i]) => i), at.map(([, j]) => j)],
    Float32Array.from(at, ([i, j]) => ((3 * i + j) % 5) - 7),
  )
function values({ shape, at }: Case): Tensor {
  const all = new Float32Array(shape[0] * shape[1])
  for (const [i, j] of at) all[i * shape[1] + j] = ((3 * i + j) % 5) - 7
  return dense(shape, all)
}
function rows({ shape, at }: Case): Tensor {
  const sorted = [...at].sort(([a, b], [c, d]) => a - c || b - d)
  const indptr = Int32Array.from({ length: shape[0] + 1 }, (_, r) => sorted.filter(([i]) => i < r).length)
  const arrays = { j: { indptr, indices: Int32Array.from(sorted, ([, j]) => j) } }
  return stored(
    shape,
    arrays,
    Float32Array.from(sorted, ([i, j]) => ((3 * i + j) % 5) - 7),
  )
}
const WAYS = { coordinates: pattern, values, rows } as const

const example: Case = {
  shape: [4, 6],
  at: [
    [0, 1],
    [0, 4],
    [3, 4],
  ],
  format: '',
}

let cpu: Device
let asking: Map<string, SptProgram>
beforeAll(async () => {
  cpu = await devices.cpu()
  asking = new Map()
  for (const f of FORMATS)
    asking.set(f, await choosing(`fill_ratio(A, ${f}) >= 0 and fill_ratio(D, ${f}) >= 0`))
})
afterAll(() => cpu.dispose())

describe('covered', () => {
  test.each(Object.entries(WAYS))(
    'equals the slots that conversion stores per element: %s',
    async (_, make) => {
      await fc.assert(
        fc.asyncProperty(cases, async (c) => {
          const program = asking.get(c.format)!
          const { shape, format } = c
          const { parts } = program.format(format).convert(pattern(c))
          const slots = parts.reduce((sum, p) => sum + p.tensor.values!.length, 0)
          const A = make(c)
          const before = structuredClone(A)
          const { selection } = await program
            .kernel()
            .choose('cpu', { A, D: values({ ...c, at: c.at.slice(1) }) })
          const [first = 0, second] = Object.values(selection.values) as number[]
          expect(A).toEqual(before)
          expect(Object.keys(selection.values)).toEqual([
            `fill_ratio(A, ${format})`,
            `fill_ratio(D, ${format})`,
          ])
          expect(first * shape[0] * shape[1]).toBeCloseTo(slots, 6)
          const less = program.format(format).convert(values({ ...c, at: c.at.slice(1) }))
          const fewer = less.parts.reduce((sum, p) => sum + p.tensor.values!.length, 0)
          expect(second! * shape[0] * shape[1]).toBeCloseTo(fewer, 6)
        }),
        { numRuns: runs(40) },
      )
    },
  )

  test('padding can exceed 1, and an empty tensor has ratio 0', async () => {
    const k = (await choosing('fill_ratio(A, bsr(4)) > 1')).kernel()
    const A = coords([1, 1], [[0], [0]], [1], 'f32')
    const D = dense([1, 1], Float32Array.of(1))
    const { selection } = await k.choose('cpu', { A, D })
    expect([selection.text, selection.values]).toEqual(['plain', { 'fill_ratio(A, bsr(4))': 16 }])
    const none = coords([0, 3], [[], []], [], 'f32')
    const empty = { A: none, D: dense([0, 3], new Float32Array()) }
    expect((await k.choose('cpu', empty)).selection.rejectedBranches).toEqual([
      'plain: fill_ratio(A, bsr(4)) > 1 does not hold: fill_ratio(A, bsr(4)) is 0',
    ])
  })

  test('arguments are expressions over parameters, and reports show their values', async () => {
    const program = await choosing('fill_ratio(A, bsr(2 * b)) > 0.5 and fill_ratio(A, bsr(b)) > 0', '(b = 1)')
    const inputs = { tensors: { A: pattern(example), D: values(example) } }
    const ask = async (b: number) =>
      (
        await program
          .kernel()
          .schedule('auto', b)
          .choose('cpu', ...flatInputs(inputs))
      ).selection
    expect([(await ask(1)).reason, (await ask(1)).values]).toEqual([
      'otherwise',
      { 'fill_ratio(A, bsr(2))': 0.5 },
    ])
    expect((await ask(2)).values).toEqual({ 'fill_ratio(A, bsr(4))': 32 / 24, 'fill_ratio(A, bsr(2))': 0.5 })
    const statistics = { 'fill_ratio(A,bsr( 6 ))': 0.75, 'fill_ratio(A, bsr(3))': 0.25 }
    const told = await program.kernel().schedule('auto', 3).choose('cuda', {}, { statistics })
    expect([told.selection.reason, told.selection.values]).toEqual([
      'fill_ratio(A, bsr(2 * b)) > 0.5 and fill_ratio(A, bsr(b)) > 0',
      { 'fill_ratio(A, bsr(6))': 0.75, 'fill_ratio(A, bsr(3))': 0.25 },
    ])
    expect(
      await complaint(() => program.kernel().schedule('auto', 2).choose('cpu', {}, { statistics })),
    ).toContain('choose/unknown-name: sums.auto does not depend on fill_ratio(A,bsr( 6 ))')
  })

  test('lists are passed by name', async () => {
    const program = await choosing('fill_ratio(A, vbr(tall, wide)) > 0')
    const inputs = {
      tensors: { A: pattern(example), D: values(example), tall: [0, 1, 4], wide: [0, 3, 6] },
    }
    const compiled = await program.kernel().build(cpu)
    const prepared = await compiled.bind(...flatInputs(inputs))
    const { tall, wide, A, D } = inputs.tensors
    const lists = { tall: Int32Array.from(tall), wide: Int32Array.from(wide) }
    const { parts } = program.format('vbr(tall, wide)').convert(A, lists)
    const slots = parts.reduce((sum, p) => sum + p.tensor.values!.length, 0)
    expect(prepared.selection?.values).toEqual({ 'fill_ratio(A, vbr(tall, wide))': slots / 24 })
    const others = { A, D, wide }
    expect(await complaint(() => compiled.bind(others))).toContain('bind/missing-list')
  })

  test('random data have the fill ratio that the dispatch assumes', async () => {
    const program = await choosing('fill_ratio(A, csr) > 0 and fill_ratio(D, csr) > 0')
    const compiled = await program.kernel().build(cpu)
    const prepared = await compiled.bind({ m: 6, n: 5 }, { seed: 3 })
    const sources = prepared.executable.bound.sources
    const elements = sources.find((s) => s.name === 'A')!.columns[0]!.length
    const drawn = prepared.executable.bound.dense.get('D') as Extract<Tensor, { kind: 'dense' }>
    expect(prepared.selection?.values).toEqual({
      'fill_ratio(A, csr)': elements / 30,
      'fill_ratio(D, csr)': [...drawn.values].filter((x) => x !== 0).length / 30,
    })
  })

  test('is computed once for the same arrays, and only if needed', async () => {
    const program = await choosing('m > 2 and fill_ratio(A, bsr(2)) > 0 and fill_ratio(A, top_rest(1)) > 0')
    vi.mocked(slotsOf).mockClear()
    const times = (): number => vi.mocked(slotsOf).mock.calls.length
    const compiled = await program.kernel().build(cpu)
    const A = pattern(example)
    const ask = async (given: Tensor) => (await compiled.bind({ A: given, D: values(example) })).free()
    await ask(A)
    await ask({ ...A })
    expect(times()).toBe(2)
    // Other values at the same places matter to one of the formats.
    await ask({ ...A, values: A.values!.slice() })
    expect(times()).toBe(3)
    const short = { A: coords([1, 2], [[0], [0]], [1], 'f32'), D: dense([1, 2], new Float32Array(2)) }
    await compiled.bind(short)
    expect(times()).toBe(3)
  })

  test('needs only the coordinates of a resident tensor unless values matter', async () => {
    const kernel = (await choosing('fill_ratio(A, bsr(2)) > 0')).kernel()
    const there = await upload(cpu, pattern(example))
    const given = { tensors: { D: values(example) }, resident: { A: there } }
    const { selection } = await ((await kernel.build(cpu)) as Built).choose(...flatInputs(given))
    expect(selection!.values).toEqual({ 'fill_ratio(A, bsr(2))': 0.5 })
    const program = await choosing('fill_ratio(A, top_rest(1)) > 0')
    const compiled = (await program.kernel().build(cpu)) as Built
    expect(await complaint(() => compiled.choose(...flatInputs(given)))).toContain('choose/unknown-statistic')
    const statistics = { 'fill_ratio(A, top_rest(1))': 0.5 }
    expect((await compiled.choose(...flatInputs({ ...given, statistics }))).selection!.text).toBe('plain')
    there.free()
  })

  test('an unknown fill ratio is requested', async () => {
    const k = (await choosing('fill_ratio(A, bsr(2)) > 0.5')).kernel()
    expect(await complaint(() => k.choose('cpu', { m: 4, n: 4 }))).toBe(
      'choose/unknown-statistic: missing fill_ratio(A, bsr(2)) (required by the dispatch)',
    )
  })

  test('conditions of spaces evaluate it for constant arguments', async () => {
    const program = await load(`${TEXT}schedule sums.all choose by search {
      b in 1, 2, 4 where (fill_ratio(A, bsr(4)) <= 1 or b < 4)
      split i by b
    }`)
    const space = await program
      .kernel()
      .space('all')
      .bind('cpu', { A: pattern(example), D: values(example) })
    expect(space.next({})?.values).toEqual([1, 2])
  })
})
