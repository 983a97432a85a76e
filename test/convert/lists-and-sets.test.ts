/** Lists and sets that conversions on a device are given are checked as on the host. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { upload } from '../../src/api/resident/resident.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { bindResident, convertForKernel } from '../../src/device.ts'
import { coords, devices, load } from '../../src/node.ts'
import { CSR, ROW_SUMS, segmentsOfRows } from '../formats/programs.ts'
import { runs } from '../support/cases.ts'

const TEXT = `${CSR}${segmentsOfRows('vb')}format both(rows: list, s: set) over (i, j) {
  part a = csr where (held(s))
  part b = vb(rows)
}
${ROW_SUMS}`
const A = coords(
  [4, 3],
  [
    [0, 0, 1, 3, 3],
    [0, 2, 1, 2, 0],
  ],
  Float32Array.of(1, 2, 3, 4, 5),
)
const LIST = Int32Array.of(0, 2, 4)
const SET = [Int32Array.of(0, 1, 3), Int32Array.of(0, 1, 2)]

/** `code: message`, or null. */
const refused = async (work: () => unknown): Promise<string | null> => {
  try {
    await work()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    return e.message.split('\n')[0]!
  }
  return null
}

const list = fc.oneof(
  fc.array(fc.integer({ min: -1, max: 6 }), { maxLength: 5 }),
  fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 4 }).map((x) => [0, ...x.sort((a, b) => a - b), 4]),
)
const set = fc
  .array(fc.tuple(fc.integer({ min: -1, max: 4 }), fc.integer({ min: 0, max: 3 })), { maxLength: 3 })
  .map((points) => [0, 1].map((d) => Int32Array.from(points, (p) => p[d]!)))

describe('lists and sets on a device', () => {
  test('are accepted and rejected as on the host, with the same messages', async () => {
    const program = await load(TEXT)
    const device = await devices.cpu()
    const compiled = await program.kernel().as('A', 'both(rows, s)').build(device, { auto: false })
    const format = program.format('both')
    const there = await upload(device, A)
    await fc.assert(
      fc.asyncProperty(list, set, async (rows, s) => {
        const lists = new Map([['rows', Int32Array.from(rows)]])
        const device = await refused(async () => {
          ;(await convertForKernel(compiled, 'A', there, { lists, sets: new Map([['s', s]]) })).free()
        })
        const host = await refused(() => {
          const mask = { kind: 'coords', shape: [4, 3], coords: s, values: null, dtype: 'f32' } as const
          format.convert(A, { rows: Int32Array.from(rows), s: mask })
        })
        expect(device).toBe(host)
      }),
      { numRuns: runs(60) },
    )
    for (const [given, code] of [
      [{ sets: new Map([['s', SET]]) }, 'bind/missing-list'],
      [{ lists: new Map([['rows', LIST]]) }, 'bind/missing-set'],
      [{ lists: new Map([['rows', [0, 2, 4]]]), sets: new Map([['s', SET]]) }, 'api/argument'],
      [{ lists: new Map([['rows', LIST]]), sets: new Map([['s', coords([4, 3], SET)]]) }, 'api/argument'],
      [
        { lists: new Map([['rows', LIST]]), sets: new Map([['s', [SET[0], Int32Array.of(0)]]]) },
        'tensor/coords',
      ],
      [
        { lists: new Map(['rows', 'zz'].map((x) => [x, LIST])), sets: new Map([['s', SET]]) },
        'api/unknown-option',
      ],
    ] as const)
      expect(await refused(() => convertForKernel(compiled, 'A', there, given as never))).toMatch(code)
    await device.dispose()
  })

  test('are bound with the tensor', async () => {
    const device = await devices.cpu()
    const compiled = await (await load(TEXT)).kernel().as('A', 'vb(rows)').build(device, { auto: false })
    const made = await convertForKernel(compiled, 'A', await upload(device, A), {
      lists: new Map([['rows', LIST]]),
    })
    const prepared = await bindResident(compiled, { A: made, rows: LIST })
    await prepared.run()
    expect([...(await prepared.get('C')).values!]).toEqual([3, 3, 0, 9])
    for (const rows of [
      [0, 1, 4],
      [0, 0, 2, 4],
    ])
      expect(await refused(() => bindResident(compiled, { A: made, rows }))).toBe(
        'convert/other-format: A is resident in vb(rows) with another list rows than the bound list',
      )
    await device.dispose()
  })

  test('fit every tensor with such a parameter', async () => {
    const two = TEXT.replace('kernel sum(m: size, n: size) {', 'kernel sum(m: size, n: size, p: size) {')
      .replace(
        'buffer C',
        'axis u = dense_fixed(n)\n  axis v = sparse_variable(u, p)\n  buffer B: f32[u, v] in\n  buffer C',
      )
      .replace(
        'iterate sum',
        'buffer D: f32[u] out\n  iterate more [u, v] as SR { D[u] += B[u, v] }\n  iterate sum',
      )
    const device = await devices.cpu()
    const program = await load(two)
    const B = coords(
      [3, 2],
      [
        [0, 1],
        [0, 1],
      ],
      Float32Array.of(1, 2),
    )
    for (const [first, second] of [
      ['A', 'B'],
      ['B', 'A'],
    ] as const) {
      const compiled = await program
        .kernel()
        .as(first, 'vb(q)')
        .as(second, 'vb(q)')
        .build(device, { auto: false })
      for (const q of [
        [0, 2, 4],
        [0, 2, 3],
      ])
        expect(await refused(() => compiled.bindOnHost({ A, B, q }))).toMatch('bind/list')
    }
  })
})
