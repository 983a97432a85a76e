/** Dense levels under a parent, bitmaps and pieces of rows: every place and lookup, on devices, under schedules. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Built, coords, devices, load } from '../../src/node.ts'
import type { Device } from '../../src/runtime/device.ts'
import { runs } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'

const all: Device[] = []
beforeAll(async () => {
  all.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of all) await d.dispose()
})

/** Sums along rows, copies, lookups at every coordinate, and one loop over everything. */
const TEXT = (rows: string, leaf: string, extent: number): string => `
kernel all(m: size, n: size) {
  axis i = ${rows}
  axis j = sparse_variable(i, n)
  axis e = ${leaf}
  axis x = fused(i, j, e)
  axis r = dense_fixed(m)
  axis q = dense_fixed(n)
  axis l = dense_fixed(${extent})
  buffer A: i32[i, j, e] in fill -7
  buffer w: i32[l] in
  buffer S: i32[r, q] out
  buffer B: i32[i, j, e] out
  buffer L: i32[r, q, l] out
  buffer T: i32[r, l] out
  iterate sums [i, j, e] as SSR { S[i, j] += A[i, j, e] * w[e] }
  iterate copies [i, j, e] as SSS { B[i, j, e] = A[i, j, e] + e }
  iterate look [r, q, l] as SSS { L[r, q, l] = A[r, q, l] }
  iterate once [x] as R { T[i, e] += A[i, j, e] }
}
schedule all.threads {
  bind copies.i to block.x
  bind copies.e to thread.x
  bind look.r to block.x
  split look.l by 32 -> (lo, li)
  bind li to thread.x
  atomic T
  split x by 64 -> (xo, xi)
  bind xo to block.x, xi to thread.x
}`

interface Entries {
  readonly m: number
  readonly n: number
  readonly cells: readonly (readonly [number, number, number])[]
}

/** Any bit, and those at the ends of words, where counting goes wrong. */
const bit = (extent: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.nat(extent - 1),
    fc.constantFrom(...[0, 30, 31, 32, 63, 64, 95, 96, 1022].map((b) => Math.min(b, extent - 1))),
    fc.nat(3).map((b) => Math.max(0, extent - 1 - b)),
  )

const entriesOf = (extent: number): fc.Arbitrary<Entries> =>
  fc.record({ m: fc.integer({ min: 1, max: 3 }), n: fc.integer({ min: 1, max: 3 }) }).chain(({ m, n }) =>
    fc
      .uniqueArray(fc.tuple(fc.nat(m - 1), fc.nat(n - 1), bit(extent)), {
        maxLength: 40,
        selector: (c) => c.join(),
      })
      .map((cells) => ({ m, n, cells })),
  )

/** What a dense leaf stores besides: every coordinate under a stored pair, at the fill value. */
function stored(k: Entries, extent: number, dense: boolean): Map<string, number> {
  const out = new Map<string, number>()
  if (dense) for (const [i, j] of k.cells) for (let e = 0; e < extent; e++) out.set([i, j, e].join(), -7)
  k.cells.forEach((c, at) => {
    out.set(c.join(), at + 1)
  })
  return out
}

async function agrees(compiled: Built, k: Entries, extent: number, dense: boolean): Promise<void> {
  const A = stored(k, extent, dense)
  const w = Int32Array.from({ length: extent }, (_, e) => (e % 5) + 1)
  const L = new Array<number>(k.m * k.n * extent).fill(-7)
  const S = new Array<number>(k.m * k.n).fill(0)
  const T = new Array<number>(k.m * extent).fill(0)
  for (const [at, v] of A) {
    const [i, j, e] = at.split(',').map(Number) as [number, number, number]
    L[(i * k.n + j) * extent + e] = v
    S[i * k.n + j]! += v * w[e]!
    T[i * extent + e]! += v
  }
  const tensors = {
    A: coords(
      [k.m, k.n, extent],
      [0, 1, 2].map((d) => k.cells.map((c) => c[d]!)),
      Int32Array.from(k.cells, (_, at) => at + 1),
    ),
    w,
  }
  const out = await compiled({ ...tensors, m: k.m, n: k.n })
  expect([...out.S!.values!], 'S').toEqual(S)
  expect([...out.L!.values!], 'L').toEqual(L)
  expect([...out.T!.values!], 'T').toEqual(T)
  const B = out.B!
  if (B.kind !== 'coords') throw new Error('B is over stored coordinates')
  const copied = [...B.values!].map((v, at) => [B.coords.map((c) => c[at]!).join(), v] as const)
  // A dense leaf gives back what it was given; what it stores besides is its own.
  for (const [at, v] of copied) expect(v).toBe(A.get(at)! + Number(at.split(',')[2]))
  expect(copied.length).toBeGreaterThanOrEqual(k.cells.length)
}

async function everywhere(text: string, extent: number, dense: boolean): Promise<void> {
  const program = await load(text)
  for (const schedule of [null, 'threads'])
    for (const device of schedule === null || extent > 100 ? all.slice(0, 1) : all) {
      const kernel = schedule ? program.kernel().schedule(schedule) : program.kernel()
      const compiled = await kernel.build(device)
      const check = fc.asyncProperty(entriesOf(extent), (k) => agrees(compiled, k, extent, dense))
      await fc.assert(check, { numRuns: runs(3) })
      compiled.release()
    }
}

const ROWS = { 'a dense root': 'dense_fixed(m)', 'a sparse root': 'sparse_variable(m)' }

describe.each(Object.keys(ROWS) as (keyof typeof ROWS)[])('under %s', (rows) => {
  // Words of a mask: of one bit, a full one, one bit more, several.
  test.each([1, 32, 33, 100, 1024])('a bitmap of %i', (extent) =>
    everywhere(TEXT(ROWS[rows], `bitmap(j, ${extent})`, extent), extent, false),
  )

  test.each([1, 40])('a dense level of %i', (extent) =>
    everywhere(TEXT(ROWS[rows], `dense_fixed(j, ${extent})`, extent), extent, true),
  )
})

test.skipIf(noNvcc !== null)('their CUDA code compiles', async () => {
  const texts = await Promise.all(
    ['bitmap(j, 100)', 'dense_fixed(j, 100)'].map(async (leaf) => {
      const program = await load(TEXT('sparse_variable(m)', leaf, 100))
      return program.kernel().schedule('threads').emit('cuda')[0]!.text
    }),
  )
  expect(texts.join('\n')).toContain('__popc(')
  expect(compileTogether(texts)).toBe('')
})

test('one loop over a bitmap and dense levels under it, not over ragged ones', async () => {
  const text = (child: string): string => `
kernel k(m: size) {
  axis i = dense_fixed(m)
  axis e = bitmap(i, 40)
  axis c = ${child}
  axis x = fused(i, e, c)
  axis l = dense_fixed(40)
  buffer A: i32[i, e, c] in
  buffer T: i32[l] out
  iterate once [x] as R { T[e] += A[i, e, c] * (c + 1) }
}`
  const program = await load(text('dense_fixed(e, 3)'))
  const A = coords(
    [2, 40, 3],
    [
      [0, 0, 1, 1],
      [35, 35, 2, 39],
      [0, 2, 1, 2],
    ],
    Int32Array.from([1, 2, 3, 4]),
  ) // prettier-ignore
  const want = new Array<number>(40).fill(0)
  want[35] = 1 + 2 * 3
  want[2] = 3 * 2
  want[39] = 4 * 3
  const compiled = await program.kernel().build(all[0]!)
  const { T } = await compiled({ A, m: 2 })
  expect([...T!.values!]).toEqual(want)
  compiled.release()
  const ragged = await load(text('sparse_variable(e, m)'))
  expect(() => ragged.kernel().compilation.loops).toThrow('lower/fused-bitmap')
})

test('bitmaps are of constant size', async () => {
  const text = (extent: string): string =>
    `kernel k(m: size) { axis i = dense_fixed(m) axis e = bitmap(i, ${extent}) buffer A: f32[i, e] in buffer s: f32[] out iterate t [i, e] as RR { s[] += A[i, e] } }`
  await expect(load(text('m'))).rejects.toThrow('check/bitmap-extent')
  await expect(load(text('1025'))).rejects.toThrow('check/bitmap-extent')
  await expect(load(text('1024'))).resolves.toBeDefined()
})
