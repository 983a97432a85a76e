/** Arrays that are brought without a kernel are checked as those that a kernel is given. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, devices, load, SptError, stored } from '../../src/node.ts'
import { runs, scaled } from '../support/cases.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
format first_row over (i, j) {
  part csr where (i < 1)
  part csr
}`)
const A = coords(
  [3, 4],
  [
    [0, 0, 1, 2],
    [0, 2, 1, 3],
  ],
  [1, 2, 3, 4],
)
const code = (call: () => unknown): string => refusal(call).code

test.each([[[3, 3]], [[2, 4]], [[3, 5]], [[4, 4]]])(
  'arrays of a 3 by 4 tensor do not fit a tensor of shape %j',
  (shape) => {
    for (const format of [program.format('csr'), program.format('ell', 2), program.format('bsr', 1)])
      expect(code(() => format.fromParts(shape, format.convert(A).parts))).toBe('bind/shape')
  },
)

test('the order of rows is a permutation, and comes with the arrays', () => {
  const format = program.format('by_length')
  const [part] = format.convert(A).parts
  const made = (tables: Record<string, Int32Array>) =>
    format.fromParts([3, 4], [{ tensor: part!.tensor, tables }])
  expect(made({ row: Int32Array.of(0, 1, 2) }).toCoords().values).toEqual(Float64Array.of(1, 2, 3, 4))
  for (const row of [
    [0, 1, 9],
    [0, 1, -1],
    [0, 0, 1],
    [0, 1],
  ])
    expect(code(() => made({ row: Int32Array.from(row) }))).toBe('bind/table')
  expect(code(() => made({}))).toBe('bind/missing-table')
  expect(code(() => made({ rows: Int32Array.of(0, 1, 2) }))).toBe('bind/missing-table')
})

test('an element in two parts is rejected', () => {
  const format = program.format('first_row')
  const [first, rest] = format.convert(A).parts
  expect(format.fromParts([3, 4], [first!, rest!]).toCoords().values).toHaveLength(4)
  const { arrays } = rest!.tensor
  const name = Object.keys(arrays).find((a) => arrays[a]!.indices)
  const both = stored(
    [3, 4],
    { [name!]: { indptr: Int32Array.of(0, 1, 2, 3), indices: Int32Array.of(0, 1, 3) } },
    Float64Array.of(9, 3, 4),
  )
  const refused = refusal(() => format.fromParts([3, 4], [first!, { tensor: both, tables: {} }]))
  expect(refused.code).toBe('format/overlap')
  expect(refused.message).toContain('(i, j) = (0, 0)')
})

const conditional = await load(`import "sparsetile/kernels/formats.spt"
format near(z: list) over (i, j) {
  part one = csr where (z[i] < 100)
}
format apart(z: list) over (i, j) {
  part one = csr where (bit_xor(z[i], 1) < 100)
  part two = dcsr
}
format found(z: list) over (i, j) {
  part one = csr where (find(z, j) < 2)
  part two = dcsr
}
kernel sums(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] }
}`)
const seen = new Set<string>()
const boundaries = fc
  .array(fc.oneof(fc.nat(3), fc.nat(200)), { minLength: 2, maxLength: 5 })
  .map((xs) => Int32Array.from([0, ...xs]).sort())

property([fc.constantFrom('near', 'apart', 'found'), boundaries, boundaries], { numRuns: runs(60) })(
  'arrays of a part are rejected under another list in its condition',
  async (name, ...two) => {
    // Segments of columns end with the last of them.
    const [z1, z2] = two.map((z) =>
      name === 'found' ? Int32Array.from([...z.map((b) => b % 5), 4]).sort() : z,
    ) as [Int32Array, Int32Array]
    const format = conditional.format(`${name}(z)`)
    const made = (z: Int32Array) => {
      try {
        return format.convert(A, { z })
      } catch (e) {
        if (e instanceof SptError) return null
        throw e
      }
    }
    const there = made(z1)
    if (!there) return
    const find = (x: number): number => z2.findLastIndex((b) => b <= x)
    const holds = (i: number, j: number): boolean =>
      name === 'near' ? z2[i]! < 100 : name === 'apart' ? (z2[i]! ^ 1) < 100 : find(j) < 2
    const first = there.parts[0]!.tensor
    const own = format.fromParts([3, 4], there.parts, { z: z1 }).toCoords()
    expect(own.values).toHaveLength(4)
    // What is under the condition: all of it, or what the list it was made with puts there.
    const under = [...A.coords[0]!].flatMap((i, e) => {
      const j = A.coords[1]![e]!
      const before = z1.findLastIndex((b) => b <= j)
      const inFirst = name === 'near' || (name === 'apart' ? (z1[i]! ^ 1) < 100 : before < 2)
      return inFirst ? [[i, j] as const] : []
    })
    expect(first.values).toHaveLength(under.length)
    const lacks = name !== 'found' && under.some(([i]) => i >= z2.length)
    const wrong = lacks ? 'format/map-range' : under.every(([i, j]) => holds(i, j)) ? null : 'format/leak'
    const refused = async (call: () => unknown): Promise<string | null> => {
      try {
        await call()
        return null
      } catch (e) {
        if (e instanceof SptError) return e.diagnostics[0]!.code
        throw e
      }
    }
    expect(await refused(() => format.fromParts([3, 4], there.parts, { z: z2 }))).toBe(wrong)
    const compiled = await conditional
      .kernel()
      .as('A', `${name}(z)`)
      .build(await devices.cpu(), { auto: false })
    const tensors = Object.fromEntries(
      there.parts.flatMap((p) => [
        [p.label ? `A_${p.label}` : 'A', p.tensor] as const,
        ...Object.entries(p.tables),
      ]),
    )
    const bound = compiled.bind({ ...tensors, z: z2, m: 3, n: 4 })
    expect(await refused(() => bound)).toBe(wrong)
    seen.add(`${name} ${wrong}`)
  },
)

test('the previous test has such cases', () => {
  expect(seen.size).toBeGreaterThan(scaled(3))
})
