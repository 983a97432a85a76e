/** Padding that has a coordinate of the tensor: `padded with`. It is visited, with the fill value. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { coords, dense, devices } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { refusal } from '../support/refusal.ts'

const FORMATS = `
format ell_at(c, w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w) padded with c
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format last(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w) padded with j - 1
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format absent(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w) padded with j
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
// Tiles of t rows under columns of strips, g of them to a group.
format strips(t, g) over (i, j) {
  axis so = dense_fixed(ceildiv(i, t))
  axis go = dense_variable(so, j)
  axis jo = sparse_fixed(go, j, g) padded with 0
  axis ii = dense_fixed(jo, t)
  map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
  inverse (so, go, jo, ii) -> (so * t + ii, jo)
}
// Pieces of w elements, in any order of rows.
format pieces(w) over (i, j) {
  axis io = sparse_variable(i) nonunique
  axis jo = sparse_fixed(io, j, w) padded with 0
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
`
const KERNELS = `
kernel mv(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
}
kernel scaled(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer B: f32[i, j] out
  iterate each [i, j] as SS { B[i, j] = A[i, j] * x[j] + x[j] }
}
kernel most(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer M: f32[i] out
  iterate most [i, j] as SR { M[i] max= A[i, j] }
}
kernel columns(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer y: f32[jd] out
  iterate sum [i, j] as RS { y[j] += A[i, j] }
}
`
const SCHEDULES = `
schedule columns.at_once { A as ell_at(0, 4); bind jo to thread.x }
schedule columns.apart { A as absent(4); bind jo to thread.x }
`
const program = parseProgram(FORMATS + KERNELS + SCHEDULES)
const matrix = fc
  .tuple(
    fc.integer({ min: 1, max: 9 }),
    fc.integer({ min: 1, max: 9 }),
    fc.array(fc.tuple(fc.nat(8), fc.nat(8), fc.integer({ min: 1, max: 9 })), { maxLength: 30 }),
  )
  .map(([m, n, raw]) => {
    const at = new Map(raw.map(([i, j, x]) => [`${i % m} ${j % n}`, [i % m, j % n, x] as const]))
    const entries = [...at.values()]
    return coords(
      [m, n],
      [entries.map((e) => e[0]), entries.map((e) => e[1])],
      Float32Array.from(entries, (e) => e[2]),
    )
  })
const points = (t: { coords: readonly Int32Array[]; values: ArrayLike<number> | null }): string[] =>
  Array.from(t.coords[0]!, (i, e) => `${i},${t.coords[1]![e]}=${t.values?.[e]}`).sort()
const PADDED = ['ell_at(0)', 'last', 'strips(2, 3)', 'pieces(2)', 'ell_at(0, 9)']

describe('arrays', () => {
  const A = coords(
    [3, 4],
    [
      [0, 0, 2],
      [1, 3, 2],
    ],
    Float32Array.of(1, 2, 3),
  )
  it.each([
    ['ell_at(2)', [1, 3, 2, 2, 2, 2], [1, 2, 0, 0, 3, 0]],
    ['last', [1, 3, 3, 3, 2, 3], [1, 2, 0, 0, 3, 0]],
    ['absent', [1, 3, 4, 4, 2, 4], [1, 2, 0, 0, 3, 0]],
  ])('%s', (text, indices, values) => {
    const stored = program.format(text).convert(A)
    const [part] = stored.parts
    expect([...part!.tensor.arrays.jo!.indices!]).toEqual(indices)
    expect([...part!.tensor.values!]).toEqual(values)
    const { slots, stored: held, padding } = stored.describe()
    expect({ slots, held, padding }).toEqual({ slots: 6, held: 3, padding: 3 })
    expect(points(stored.toCoords())).toEqual(points(A))
  })

  it.each(PADDED)(
    '%s: round trip, also from ready-made arrays; all indices are within the tensor',
    (text) => {
      const format = program.format(text)
      fc.assert(
        fc.property(matrix, (t) => {
          const stored = format.convert(t)
          expect(points(stored.toCoords())).toEqual(points(t))
          const again = format.fromParts(t.shape, stored.parts)
          expect(points(again.toCoords())).toEqual(points(t))
          for (const c of stored.parts[0]!.tensor.arrays.jo!.indices!) {
            expect(c).toBeGreaterThanOrEqual(0)
            expect(c).toBeLessThan(t.shape[1]!)
          }
        }),
        { numRuns: runs(30) },
      )
    },
  )
})

describe('padded with last', () => {
  const texts = `
  format rows_last(w: size) over (i, j) {
    axis io = sparse_variable(i)
    axis jo = sparse_fixed(io, j, w) padded with last
    map (i, j) -> (i, j)
    inverse (io, jo) -> (io, jo)
  }
  format ell_last(w: size) over (i, j) {
    axis io = dense_fixed(i)
    axis jo = sparse_fixed(io, j, w) padded with last
    map (i, j) -> (i, j)
    inverse (io, jo) -> (io, jo)
  }
  format strips_last(t, g) over (i, j) {
    axis so = dense_fixed(ceildiv(i, t))
    axis go = dense_variable(so, j)
    axis jo = sparse_fixed(go, j, g) padded with last
    axis ii = dense_fixed(jo, t)
    map (i, j) -> (i / t, rank(j by i / t) / g, j, i % t)
    inverse (so, go, jo, ii) -> (so * t + ii, jo)
  }
  format pieces_last(w) over (i, j) {
    axis io = sparse_variable(i) nonunique
    axis jo = sparse_fixed(io, j, w) padded with last
    map (i, j) -> (i, j)
    inverse (io, jo) -> (io, jo)
  }
  format packed_last(w) over (i, j) {
    axis io = sparse_variable(i)
    axis go = sparse_variable(io, ceildiv(j, 4))
    axis jo = sparse_fixed(go, 4, w) padded with last packed 2
    map (i, j) -> (i, j / 4, j % 4)
    inverse (io, go, jo) -> (io, go * 4 + jo)
  }`
  const own = parseProgram(texts + KERNELS)
  const A = coords(
    [3, 8],
    [
      [0, 0, 0, 2],
      [1, 4, 6, 7],
    ],
    Float32Array.of(1, 2, 3, 4),
  )
  it('repeats the coordinate of the last element', () => {
    const [part] = own.format('rows_last').convert(A).parts
    expect([...part!.tensor.arrays.jo!.indices!]).toEqual([1, 4, 6, 7, 7, 7])
    expect([...part!.tensor.values!]).toEqual([1, 2, 3, 4, 0, 0])
    expect(own.format('rows_last').convert(A).describe()).toMatchObject({ slots: 6, stored: 4, padding: 2 })
  })

  it('rejects an empty segment', () => {
    const refused = refusal(() => own.format('ell_last').convert(A))
    expect(refused.code).toBe('format/padding')
    expect(refused.message).toContain('position 1 of io stores none')
  })

  it('is a size if a size of that name exists', () => {
    const named = parseProgram(texts.replaceAll('w: size', 'w: size, last = 3'))
    const [part] = named.format('rows_last', 3, 3).convert(A).parts
    expect([...part!.tensor.arrays.jo!.indices!]).toEqual([1, 4, 6, 7, 3, 3])
  })

  it('in ready-made arrays other coordinates occur once', () => {
    const format = own.format('rows_last')
    const [part] = format.convert(A).parts
    const made = (indices: readonly number[]) => {
      const { arrays } = part!.tensor
      const jo = { indices: Int32Array.from(indices) }
      return format.fromParts([3, 8], [{ ...part!, tensor: { ...part!.tensor, arrays: { ...arrays, jo } } }])
    }
    expect(points(made([1, 4, 6, 7, 7, 7]).toCoords())).toEqual(points(A))
    expect(refusal(() => made([1, 1, 6, 7, 7, 7])).code).toBe('bind/duplicate')
    expect(refusal(() => made([1, 4, 2, 7, 7, 7])).code).toBe('bind/unsorted')
    expect(refusal(() => made([1, 4, 6, 7, 7, 8])).code).toBe('bind/index-range')
  })

  it.each(['rows_last', 'strips_last(2, 3)', 'pieces_last(2)', 'packed_last(4)'])(
    '%s: equal coordinates are added, also in outputs',
    async (text) => {
      const twice = coords(
        [3, 8],
        [
          [0, 2, 0, 0, 2],
          [4, 7, 1, 4, 7],
        ],
        Float32Array.of(1, 2, 4, 8, 16),
      )
      expect(points(own.format(text).convert(twice).toCoords())).toEqual(['0,1=4', '0,4=9', '2,7=18'])
      const kernel = own.kernel('scaled').as('A', text)
      const prepared = await (await kernel.build(await devices.cpu())).bind({
        A: twice,
        x: dense([8], new Float32Array(8).fill(2)),
      })
      await prepared.run()
      expect((await prepared.verify()).ok).toBe(true)
    },
  )

  it.each([
    'rows_last',
    'strips_last(2, 3)',
    'strips_last(1, 4)',
    'pieces_last(2)',
    'packed_last(3)',
    'packed_last(4)',
  ])('%s: round trip, and padding values have no effect', async (text) => {
    const format = own.format(text)
    const compiled = await own
      .kernel('mv')
      .as('A', text)
      .build(await devices.cpu())
    await fc.assert(
      fc.asyncProperty(matrix, async (drawn) => {
        // Blocks of four columns hold three at most.
        const kept = [...drawn.coords[1]!.keys()].filter(
          (e) => text !== 'packed_last(3)' || drawn.coords[1]![e]! % 4 < 3,
        )
        const t = coords(
          [...drawn.shape],
          drawn.coords.map((c) => kept.map((e) => c[e]!)),
          Float32Array.from(kept, (e) => Number(drawn.values![e])),
        )
        const stored = format.convert(t)
        expect(points(stored.toCoords())).toEqual(points(t))
        expect(points(format.fromParts(t.shape, stored.parts).toCoords())).toEqual(points(t))
        const [m, n] = t.shape as [number, number]
        const x = new Float32Array(n).fill(Number.NaN)
        for (const j of t.coords[1]!) x[j] = 1 + j
        const y = new Float32Array(m)
        for (const [e, i] of t.coords[0]!.entries()) y[i]! += Number(t.values![e]) * x[t.coords[1]![e]!]!
        const prepared = await compiled.bind({ A: t, x: dense([n], x), m, n })
        await prepared.run()
        expect([...(await prepared.get('y')).values!]).toEqual([...y])
        const ready = await compiled.bind({ A: stored.parts[0]!.tensor, x: dense([n], x), m, n })
        await ready.run()
        expect([...(await ready.get('y')).values!]).toEqual([...y])
      }),
      { numRuns: runs(13) },
    )
    const loops = own.kernel('mv').as('A', text).show(2)
    expect(loops).not.toMatch(/where.*jo_indices\[[^\]]*\] </)
  })
})

describe('kernels', () => {
  it.each(PADDED)('%s: agrees with the reference, without a condition on the coordinate', async (text) => {
    const kernel = program.kernel('mv').as('A', text)
    const device = await devices.cpu()
    const compiled = await kernel.build(device)
    await fc.assert(
      fc.asyncProperty(matrix, async (t) => {
        const [m, n] = t.shape as [number, number]
        const params = { m, n }
        const x = dense(
          [n],
          Float32Array.from({ length: n }, (_, k) => k + 1),
        )
        const prepared = await compiled.bind({ A: t, x, ...params })
        await prepared.run()
        expect((await prepared.verify()).ok).toBe(true)
        const made = program.format(text).convert(t)
        const [part] = made.parts
        const ready = await compiled.bind({ A: part!.tensor, x, ...params })
        await ready.run()
        expect((await ready.get('y')).values).toEqual((await prepared.get('y')).values)
      }),
      { numRuns: runs(10) },
    )
    const loops = kernel.show(2)
    expect(loops).not.toContain('jo_indices[jo] <')
    expect(loops).not.toMatch(/where.*jo_indices/)
  })

  it('its elements may be written, and reading returns them', async () => {
    const compiled = await program
      .kernel('scaled')
      .as('A', 'ell_at(1)')
      .build(await devices.cpu())
    const A = coords(
      [3, 4],
      [
        [0, 0, 2],
        [1, 3, 2],
      ],
      Float32Array.of(1, 2, 3),
    )
    const x = dense([4], Float32Array.of(1, 2, 3, 4))
    const prepared = await compiled.bind({ A, x })
    await prepared.run()
    expect((await prepared.verify()).ok).toBe(true)
  })

  it('is rejected if visiting padding would change the result', () => {
    const padding = refusal(() => program.kernel('most').as('A', 'ell_at(0)').compilation.plan)
    expect(padding.code).toBe('schedule/format-padding')
    expect(padding.hint).toContain('axis jo is padded with a coordinate of the tensor')
    const race = refusal(() => program.kernel('columns').schedule('at_once'))
    expect(race.message).toContain('the element of y that threads would combine')
    expect(() => program.kernel('columns').schedule('apart')).not.toThrow()
    expect(() => program.kernel('most').as('A', 'absent').compilation.plan).not.toThrow()
  })
})

describe('rejected', () => {
  const body = (axes: string): string =>
    `format f over (i, j) {\n${axes}\nmap (i, j) -> (i, j)\ninverse (io, jo) -> (io, jo)\n}`
  it.each([
    [
      'another kind of axis',
      body('axis io = dense_fixed(i) padded with 0\naxis jo = dense_fixed(j)'),
      'parse/padding',
      'padded with 0',
    ],
    [
      'a claim',
      body('axis io = dense_fixed(i)\naxis jo = sparse_fixed(io, j, 2) compact padded with 0'),
      'parse/padding',
      'compact',
    ],
    [
      'a kernel',
      'kernel k(n: size) {\naxis i = dense_fixed(n)\naxis j = sparse_fixed(i, n, 2) padded with 0\n}',
      'parse/padding',
      '0',
    ],
    [
      'what is no size',
      body('axis io = dense_fixed(i)\naxis jo = sparse_fixed(io, j, 2) padded with io'),
      'check/unknown-size',
      'io',
    ],
    [
      'structure under it',
      `format f over (i, j) {\naxis io = dense_fixed(i)\naxis p = sparse_fixed(io, i, 2) padded with 0\naxis jo = sparse_variable(p, j)\nmap (i, j) -> (i, i, j)\ninverse (io, p, jo) -> (io, jo)\n}`,
      'check/under-padding',
      'axis jo = sparse_variable(p, j)',
    ],
  ])('%s', (_, text, code, marked) => {
    const { code: found, span } = refusal(() => parseProgram(text))
    expect(found).toBe(code)
    expect(text.slice(span!.start, span!.end)).toBe(marked)
  })

  it('a coordinate outside of the tensor', () => {
    const A = coords([2, 3], [[0], [1]], Float32Array.of(1))
    expect(refusal(() => program.format('ell_at(3)').convert(A))).toMatchObject({
      code: 'format/padding',
      expected: '0 to 2',
    })
    expect(refusal(() => program.format('ell_at(-1)').convert(A)).code).toBe('format/padding')
    const none = coords([2, 0], [[], []], new Float32Array(0))
    expect(refusal(() => program.format('ell_at(0, 1)').convert(none)).code).toBe('format/padding')
    expect(program.format('ell_at(0)').convert(none).toCoords().values).toHaveLength(0)
  })

  it('ready-made arrays with other padding, or without values', () => {
    const format = program.format('ell_at(0)')
    const stored = format.convert(
      coords(
        [2, 3],
        [
          [0, 0],
          [1, 2],
        ],
        Float32Array.of(1, 2),
      ),
    )
    const [part] = stored.parts
    const wrong = (
      indices: number[],
      values: Float32Array | null = part!.tensor.values as Float32Array,
    ): string =>
      refusal(() =>
        format.fromParts(
          [2, 3],
          [
            {
              ...part!,
              tensor: { ...part!.tensor, values, arrays: { jo: { indices: Int32Array.from(indices) } } },
            },
          ],
        ),
      ).code
    expect(wrong([1, 2, 3, 3])).toBe('bind/index-range')
    expect(wrong([1, 1, 0, 0])).toBe('bind/duplicate')
    expect(wrong([2, 1, 0, 0])).toBe('bind/unsorted')
    expect(wrong([1, 2, 0, 0], null)).toBe('bind/padding-values')
  })
})
