/** One prediction is bounded by the data, whatever the parameters of formats make of them: rows are left out, and the rest scaled. */
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'
import { allocate } from '../../src/columns/allocate.ts'
import { allowanceFor, structureOf } from '../../src/cost-model/matrix/structure.ts'
import { coords, load, type Tensor } from '../../src/node.ts'
import { predictor, space, type TuneResult, tune } from '../../src/search.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { diagnosticOf, refusal } from '../support/refusal.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const spmm = (await load('sparsetile/kernels/spmm.spt')).kernel('spmm')
const SAMPLED = 1 << 15

/** Elements of all typed arrays that are made from `start` on: this counts by itself. */
function counting(): { readonly total: () => number; readonly stop: () => void } {
  let total = 0
  const kinds = ['Int32Array', 'Uint8Array', 'Uint32Array', 'Float32Array', 'Float64Array'] as const
  const before = kinds.map((k) => globalThis[k])
  for (const [k, kind] of kinds.entries()) {
    const counted: typeof Int32Array = new Proxy(before[k] as typeof Int32Array, {
      construct(to, args, as): object {
        if (typeof args[0] === 'number') total += args[0]
        return Reflect.construct(to, args, as === counted ? to : as)
      },
    })
    Object.assign(globalThis, { [kind]: counted })
  }
  return {
    total: () => total,
    stop: () => {
      for (const [k, kind] of kinds.entries()) Object.assign(globalThis, { [kind]: before[k] })
    },
  }
}

/** Those that are made while f runs. */
function allocated(f: () => void): number {
  const { total, stop } = counting()
  try {
    f()
    return total()
  } finally {
    stop()
  }
}

async function allocatedBy(f: () => Promise<void>): Promise<number> {
  const { total, stop } = counting()
  try {
    await f()
    return total()
  } finally {
    stop()
  }
}

/** Rows of one length, so that some of them say all of the others. */
const even = fc
  .record({
    rows: fc.integer({ min: 1, max: 60 }),
    columns: fc.integer({ min: 1, max: 60 }),
    length: fc.integer({ min: 1, max: 12 }),
    step: fc.constantFrom(1, 7, 11, 13),
  })
  .map(({ rows, columns, length, step }) => {
    const each = Math.min(length, columns)
    const i: number[] = []
    const j: number[] = []
    for (let r = 0; r < rows; r++) {
      const own = Array.from({ length: each }, (_, k) => (r * step + k) % columns).sort((a, b) => a - b)
      for (const c of own) {
        i.push(r)
        j.push(c)
      }
    }
    return { rows, columns, length: each, A: coords([rows, columns], [i, j]) }
  })

/** Such that every row takes as many positions. */
const padded = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 8 }))
    .map(([n, m]) => ['nm', Math.max(n, m), m]),
  fc.integer({ min: 12, max: 3000 }).map((w) => ['ell', w]),
  fc.integer({ min: 1, max: 3000 }).map((w) => ['rows_ell', w]),
  fc.integer({ min: 1, max: 3000 }).map((w) => ['pieces_ell', w]),
) as fc.Arbitrary<[string, ...number[]]>

property([even, padded, fc.integer({ min: 200, max: 20_000 })], { numRuns: runs(30) })(
  'sampled builds stay within the limit, and extrapolate to all rows',
  ({ rows, columns, A }, [format, ...args], least) => {
    const { kernel, loops } = spmm.as('A', format, ...args).compilation
    const given = { tensors: { A }, params: { m: rows, n: columns, d: 32 } }
    const all = structureOf(kernel, loops, given)
    const used: (readonly [number, number])[] = []
    let own: ReturnType<typeof allowanceFor> | undefined
    const allowance = (tensors: Parameters<typeof allowanceFor>[0]) => {
      if (own) used.push([own.used, own.max])
      own = allowanceFor(tensors, least)
      return own
    }
    const few = (): ReturnType<typeof structureOf> => structureOf(kernel, loops, given, SAMPLED, allowance)
    let found: ReturnType<typeof structureOf> | undefined
    const total = allocated(() => {
      const refused = diagnosticOf(() => {
        found = few()
      })
      expect([undefined, 'bind/too-many-elements']).toContain(refused?.code)
    })
    used.push([own!.used, own!.max])
    for (const [n, most] of used) expect(n).toBeLessThanOrEqual(most)
    // Coordinates come and go in arrays that formats do not multiply.
    expect(total).toBeLessThanOrEqual(
      used.reduce((n, [, most]) => n + most, 0) + 40 * (A.coords[0]!.length + rows + columns + 500),
    )
    expect(used.length).toBeLessThanOrEqual(2 + Math.log2(rows + 1))
    if (!found) return
    for (const [name, share] of all.filled) expect(found.filled.get(name)).toBeCloseTo(share, 9)
    for (const [name, n] of all.params) expect(found.params.get(name), name).toBeCloseTo(n, 6)
    for (const [name, { sum }] of all.lengths) expect(found.lengths.get(name)!.sum).toBeCloseTo(sum, 6)
  },
)

test('formats with 10^9 positions are predicted within the limit, or rejected', () => {
  const at = Array.from({ length: 9000 }, (_, e) => e)
  const i = at.map((e) => Math.floor(e / 3))
  const A = coords(
    [3000, 3000],
    [i, at.map((e) => (e * 7) % 3000)].map((c) => Int32Array.from(c)) as [Int32Array, Int32Array],
  )
  const predict = predictor(spmm, { device: 'cuda', inputs: { tensors: { A }, params: { d: 32 } } })
  for (const [format, ...args] of [
    ['nm', 512, 4],
    ['nm', 64, 1],
    ['ell', 100_000],
    ['pieces_ell', 100_000],
    ['top_rest', 100_000],
  ] as [string, ...number[]][]) {
    const total = allocated(() =>
      expect(predict(spmm.as('A', format, ...args)).milliseconds).toBeGreaterThan(0),
    )
    expect(total, format).toBeLessThan(4e7)
  }
  const refused = (A: Tensor, width: number): string =>
    refusal(() =>
      predictor(spmm, { device: 'cuda', inputs: { tensors: { A }, params: { d: 32 } } })(
        spmm.as('A', 'ell', width),
      ),
    ).code
  expect(refused(A, 100_000_000)).toBe('bind/too-large')
  expect(
    refused(
      coords(
        [3, 3],
        [
          [0, 1],
          [2, 2],
        ],
      ),
      100_000_000,
    ),
  ).toBe('bind/too-many-elements')
})

test('formats that would exceed memory are rejected before they are built, by code', async () => {
  const device = await simulatedDevice()
  const wide = space('wide', spmm, (p) => {
    const w = p.number('w', [4, 50_000_000])
    return (k) => k.as('A', 'ell', w)
  })
  const inputs = {
    tensors: {
      A: coords(
        [3, 3],
        [
          [0, 1],
          [2, 2],
        ],
      ),
    },
    params: { d: 2 },
    seed: 1,
  }
  let found: TuneResult | undefined
  const total = await allocatedBy(async () => {
    found = await tune(spmm, { space: wide, inputs, device, trials: 2, strategy: 'exhaustive' })
  })
  expect(found?.rejectedByCode).toEqual({ 'bind/too-many-elements': 1 })
  expect(found?.best?.timing.median).toBeGreaterThan(0)
  expect(total).toBeLessThan(5e7)
})

test('arrays beyond memory are not made', () => {
  const memory = vi.spyOn(process, 'availableMemory').mockReturnValue(2 ** 26)
  try {
    expect(
      allocated(() =>
        expect(refusal(() => allocate(2 ** 24 + 1, 'positions')).code).toBe('bind/out-of-memory'),
      ),
    ).toBe(0)
    expect(allocate(2 ** 24, 'positions')).toHaveLength(2 ** 24)
  } finally {
    memory.mockRestore()
  }
})

test('a fully dense format is analysed like any other', () => {
  const A = coords(
    [40, 50],
    [Array.from({ length: 40 }, (_, i) => i), Array.from({ length: 40 }, (_, i) => i)],
  )
  for (const device of ['cpu', 'webgpu', 'cuda'] as const) {
    const predict = predictor(spmm, { device, inputs: { tensors: { A }, params: { d: 8 } } })
    const [narrow, wide] = [predict(spmm.as('A', 'band', 64, 64)), predict(spmm.as('A', 'band', 6000, 6000))]
    expect(narrow.milliseconds).toBeGreaterThan(0)
    expect(wide.milliseconds).toBeGreaterThan(10 * narrow.milliseconds)
  }
})
