/** Outputs over unordered indices are compared by coordinates. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { devices, load, stored } from '../../src/node.ts'
import { compareOutput } from '../../src/run/verify/compare-outputs.ts'
import { runs } from '../support/cases.ts'
import { property } from '../support/property.ts'

const device = await devices.cpu()
const [N, WIDTH] = [5, 3]
const compiled = Object.fromEntries(
  await Promise.all(
    ['sparse_variable(i, n) unordered', 'sparse_fixed(i, n, 3) unordered'].flatMap((axis) =>
      ['out', 'inout'].map(async (role) => {
        const program = await load(`kernel twice(m: size, n: size) {
          axis i = dense_fixed(m)
          axis j = ${axis}
          buffer A: i32[i, j] in
          buffer O: i32[i, j] ${role}
          iterate o [i, j] as SS { O[i, j] ${role === 'out' ? '=' : '+='} A[i, j] * 2 }
        }`)
        return [`${axis}, ${role}`, await program.kernel().build(device)] as const
      }),
    ),
  ),
)

const rows = fc.array(fc.uniqueArray(fc.nat({ max: N - 1 }), { maxLength: WIDTH }), {
  minLength: 1,
  maxLength: 4,
})

/** Arrays of these columns, with values 1, 2, …. */
function arraysOf(data: readonly (readonly number[])[], isFixed: boolean) {
  const padded = isFixed ? data.map((r) => [...r, ...Array(WIDTH - r.length).fill(N)]) : data
  let next = 1
  const values = padded.flat().map((c) => (c === N ? 0 : next++))
  const indptr = [0]
  for (const r of padded) indptr.push(indptr.at(-1)! + r.length)
  const j = {
    ...(isFixed ? {} : { indptr: Int32Array.from(indptr) }),
    indices: Int32Array.from(padded.flat()),
  }
  return stored([data.length, N], { j }, Int32Array.from(values))
}

test.each(Object.keys(compiled))('%s', async (name) => {
  await fc.assert(
    fc.asyncProperty(rows, async (data) => {
      const A = arraysOf(data, name.startsWith('sparse_fixed'))
      const tensors = name.endsWith('inout') ? { A, O: A } : { A }
      const prepared = await compiled[name]!.bind(tensors)
      const { problems, verdict } = await prepared.verify()
      prepared.free()
      expect(problems).toEqual([])
      expect(verdict).toBe(data.flat().length > 0 ? 'agrees' : 'empty')
    }),
    { numRuns: runs(15) },
  )
})

const cells = fc.array(fc.tuple(fc.nat({ max: 2 }), fc.nat({ max: 2 })), { minLength: 1, maxLength: 8 })
const lexicographic = (a: readonly number[], b: readonly number[]): number => a[0]! - b[0]! || a[1]! - b[1]!

property([cells, fc.nat()])('duplicates are compared in their order, and a wrong entry is found', (at, k) => {
  const entries = at.map((point, e) => ({ point, value: e + 1 }))
  const sorted = entries.toSorted((a, b) => lexicographic(a.point, b.point))
  const columns = (list: typeof entries) => [0, 1].map((d) => Int32Array.from(list, (e) => e.point[d]!))
  const want = {
    kind: 'sparse',
    shape: [3, 3],
    coords: columns(sorted),
    values: Float64Array.from(sorted, (e) => e.value),
    errors: new Float64Array(at.length),
  } as const
  const compare = (list: typeof entries) => {
    const values = Int32Array.from(list, (e) => e.value)
    const got = { kind: 'coords', shape: [3, 3], coords: columns(list), values, dtype: 'i32' } as const
    return compareOutput('O', got, want, null).problem
  }
  expect(compare(entries)).toBe(null)
  const wrong = entries[k % at.length]!
  const { point, value } = wrong
  const instead = (e: typeof wrong) => entries.map((x) => (x === wrong ? e : x))
  expect(compare(instead({ point, value: 100 }))).toBe(
    `O[${point.join(', ')}] is 100, the reference has ${value} (allowed error 0.00e+0)`,
  )
  const [i, j] = point
  expect(compare(instead({ point: [(i + 1) % 3, j], value }))).toMatch(
    /^O: (an entry is at|no entry, or too few, at) \d, \d, where/,
  )
})
