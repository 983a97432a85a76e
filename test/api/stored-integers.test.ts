/** Ready-made arrays: integers of any type, and indices that are unsorted or repeat, put right on request. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { coords, dense, devices, type Integers, load, type StoredTensor, stored } from '../../src/node.ts'
import { property } from '../support/property.ts'

const TYPES: readonly ((list: readonly number[]) => Integers)[] = [
  (l) => l,
  (l) => Int8Array.from(l),
  (l) => Uint8Array.from(l),
  (l) => Int16Array.from(l),
  (l) => Uint16Array.from(l),
  (l) => Int32Array.from(l),
  (l) => Uint32Array.from(l),
  (l) => BigInt64Array.from(l.map(BigInt)),
  (l) => BigUint64Array.from(l.map(BigInt)),
]

test('every integer array type', () => {
  const want = { j: { indptr: Int32Array.of(0, 1, 3), indices: Int32Array.of(2, 0, 1) } }
  for (const of of TYPES) {
    const made = stored(
      [2, 3],
      { j: { indptr: of([0, 1, 3]), indices: of([2, 0, 1]) } },
      Float32Array.of(1, 2, 3),
    )
    expect(made.arrays).toEqual(want)
  }
  // What is of the type already is not copied; masks are words.
  const { indptr, indices } = want.j
  expect(stored([2, 3], want).arrays.j!.indices).toBe(indices)
  const masked = stored([2, 3], { j: { indptr, mask: Uint32Array.of(0xffffffff) } })
  expect(masked.arrays.j!.mask).toEqual(Int32Array.of(-1))
})

test('values outside 32-bit integers, by name and place', () => {
  const said = (indices: unknown): string => {
    try {
      stored([2, 3], { j: { indices: indices as Integers } })
      return ''
    } catch (e) {
      return (e as SptError).message
    }
  }
  for (const bad of [
    Uint32Array.of(0, 4294967295),
    BigInt64Array.of(0n, 1n << 40n),
    BigUint64Array.of(0n, (1n << 64n) - 1n),
    [0, 1.5],
    [0, Number.NaN],
    ['0', '1'],
    Float64Array.of(0, 2 ** 31),
  ])
    expect(said(bad)).toMatch(/^tensor\/coords: entry [01] of indices of axis j is /)
  expect(said(Uint32Array.of(0, 4294967295))).toContain('is 4294967295')
  expect(said({})).toContain('indices of axis j is')
})

const PRODUCT = `
import "sparsetile/kernels/formats.spt"
kernel product(m: size, n: size, d: size) {
  axis i  = dense_fixed(m)
  axis j  = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f  = dense_fixed(d)
  buffer A: f64[i, j]  in
  buffer B: f64[jd, f] in
  buffer C: f64[i, f]  out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.plain {}
schedule product.blocks { A as bsr(2) }
`

const entriesArb = fc.array(fc.record({ i: fc.nat(3), j: fc.nat(4), v: fc.integer({ min: -9, max: 9 }) }), {
  maxLength: 12,
})

property([entriesArb, fc.constantFrom('plain', 'blocks'), fc.boolean()])(
  'unsorted and repeated indices give the same tensor as coordinates',
  async (entries, schedule, late) => {
    const rows = [0, 1, 2, 3].map((i) => entries.filter((e) => e.i === i))
    const flat = rows.flat()
    const arrays = {
      j: {
        indptr: [0, 1, 2, 3, 4].map((i) => rows.slice(0, i).flat().length),
        indices: flat.map((e) => e.j),
      },
    }
    const values = Float64Array.from(flat, (e) => e.v)
    const A = stored([4, 5], arrays, values, 'f64', { sort: true, sum: true })
    const same = coords([4, 5], [flat.map((e) => e.i), flat.map((e) => e.j)], values)
    const B = dense(
      [5, 2],
      Float64Array.from({ length: 10 }, (_, k) => k + 1),
    )
    const kernel = (await load(PRODUCT)).kernel().schedule(schedule)
    const compiled = await kernel.build(await devices.cpu())
    const result = async (tensor: StoredTensor | typeof same) => {
      const prepared = await compiled.bind({ A: late ? same : tensor, B })
      if (late) await prepared.set('A', tensor)
      await prepared.run()
      return [...(await prepared.get('C')).values!].map((x) => x + 0)
    }
    expect(await result(A)).toEqual(await result(same))
  },
)

test('without the option, the error names the option', async () => {
  const compiled = await (await load(PRODUCT))
    .kernel()
    .schedule('plain')
    .build(await devices.cpu())
  const B = dense([3, 1], [1, 2, 3])
  const failure = async (indices: readonly number[], repair = {}) => {
    const A = stored([1, 3], { j: { indptr: [0, 2], indices } }, Float64Array.of(1, 2), 'f64', repair)
    const error = (await compiled.bind({ A, B }).catch((e) => e)) as SptError
    const { code, hint } = error.diagnostics[0]!
    return [code, /\{ (?:sort|sum): true \}/.exec(hint ?? '')?.[0]]
  }
  expect(await failure([2, 0])).toEqual(['bind/unsorted', '{ sort: true }'])
  expect(await failure([1, 1])).toEqual(['bind/duplicate', '{ sum: true }'])
  expect(await failure([1, 1], { sort: true })).toEqual(['bind/duplicate', '{ sum: true }'])
  expect(await failure([2, 0], { sum: true })).toEqual(['bind/unsorted', '{ sort: true }'])
  expect(await failure([3, 0], { sort: true, sum: true })).toEqual(['bind/index-range', undefined])
})

test('valid options', () => {
  expect(() => stored([1], {}, null, 'f32', { sorted: true } as never)).toThrow('sorted')
  expect(() => stored([1], {}, null, 'f32', { sort: 1 } as never)).toThrow('sort')
})
