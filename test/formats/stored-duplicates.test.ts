/** Ready-made arrays hold each coordinate of a tensor once, whatever its format, where the tensor's axes are unique. */

import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import type { RunInputs } from '../../src/api/inputs/bound-inputs.ts'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { SptProgram } from '../../src/api/programs/program.ts'
import type { Built } from '../../src/node.ts'
import { coords, dense, devices, load, SptError, stored } from '../../src/node.ts'
import { levelsAreUnique } from '../../src/storage/ready/elements.ts'
import type { ConvertedPart } from '../../src/types.ts'
import { runs } from '../support/cases.ts'
import { instanceOf, packageFormats, STANDARD, title } from '../support/packaged-schedules.ts'
import { refusal } from '../support/refusal.ts'

const ints = (...xs: number[]): Int32Array => Int32Array.from(xs)
const ones = (n: number): Float32Array => new Float32Array(n).fill(1)

const ELL_MASKED = `format ell_masked(c, w) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w) padded with c packed 8
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
  mask held
}`
const kernel = (name: string, j: string): string => `kernel ${name}(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = ${j}
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  buffer M: f32[i] out
  iterate t [i, j] as SR { C[i] += 1 }
  iterate u [i, j] as SR { M[i] max= A[i, j] }
}`
/** Several trees: coordinates on them stay apart nowhere, whatever their axes say. */
const trees = (name: string, j: string): string => `kernel ${name}(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = ${j}
  axis e = dense_fixed(d)
  buffer A: f32[i, j, e] in
  buffer C: f32[i] out
  buffer M: f32[i] out
  iterate t [i, j, e] as SRR { C[i] += 1 }
  iterate u [i, j, e] as SRR { M[i] max= A[i, j, e] }
}`
/** Each element has a position of `j`, with places for the coordinates before its own. */
const BESIDE = `kernel beside(m: size, n: size, l: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n) nonunique
  axis k = dense_variable(j, l)
  axis e = dense_fixed(d)
  buffer A: f32[i, j, k, e] in fill 7
  buffer C: f32[i] out
  buffer M: f32[i] out
  iterate t [i, j, k, e] as SRRR { C[i] += 1 }
  iterate u [i, j, k, e] as SRRR { M[i] max= A[i, j, k, e] }
}`
let program: SptProgram
beforeAll(async () => {
  program = await load(`import "sparsetile/kernels/formats.spt"
    import "sparsetile/kernels/formats-composed.spt"
    import "sparsetile/kernels/formats-tensors.spt"
    ${ELL_MASKED}
    ${kernel('once', 'sparse_variable(i, n)')}
    ${kernel('apart', 'sparse_variable(i, n) nonunique')}
    ${trees('variable', 'sparse_variable(i, n) nonunique')}
    ${trees('fixed', 'sparse_fixed(i, n, 3) nonunique')}
    ${BESIDE}`)
})

/** An index array of a part with elements copied over others: in one array, or at one place of all that are as long. */
interface Copy {
  readonly array: number
  readonly from: number
  readonly to: number
  readonly all: boolean
}
const copies: fc.Arbitrary<Copy> = fc.record({
  array: fc.nat(50),
  from: fc.nat(500),
  to: fc.nat(500),
  all: fc.boolean(),
})

function repeated(part: ConvertedPart, { array, from, to, all }: Copy): ConvertedPart {
  const own = Object.entries(part.tensor.arrays).flatMap(([name, { indices }]) =>
    indices ? [[name, indices] as const] : [],
  )
  const tables = Object.entries(part.tables)
  const at = array % Math.max(1, own.length + tables.length)
  const length = [...own, ...tables][at]?.[1].length ?? 0
  const changed = (x: Int32Array, k: number): Int32Array => {
    const out = x.slice()
    if (length > 0 && (k === at || (all && x.length === length))) out[to % length] = x[from % length]!
    return out
  }
  const arrays = { ...part.tensor.arrays }
  own.forEach(([name, x], k) => {
    arrays[name] = { ...arrays[name], indices: changed(x, k) }
  })
  return {
    ...part,
    tensor: { ...part.tensor, arrays },
    tables: Object.fromEntries(tables.map(([name, x], k) => [name, changed(x, own.length + k)])),
  }
}

/** Few coordinates, so that copies meet; each once. */
const tensors = (order: number) =>
  fc
    .uniqueArray(fc.tuple(...Array.from({ length: order }, () => fc.nat(3))), {
      maxLength: 20,
      selector: String,
    })
    .map((at) =>
      coords(
        Array.from({ length: order }, () => 4),
        Array.from({ length: order }, (_, d) => at.map((x) => x[d]!)),
        ones(at.length),
      ),
    )

test('accepted arrays have each coordinate once, in every format; converted arrays are accepted', () => {
  let refused = 0
  for (const s of STANDARD) {
    const lists = s.given?.([4, 4])
    if (lists?.sets) continue
    const data = Object.fromEntries(
      [...(lists?.lists ?? [])].map(([name, x]) => [name, dense([x.length], x, 'i32')]),
    )
    const order = s.order ?? 2
    const format = program.format(s.name, ...s.args).withOrder(order)
    fc.assert(
      fc.property(tensors(order), fc.nat(20), copies, (A, k, copy) => {
        let parts: readonly ConvertedPart[]
        try {
          parts = format.convert(A, data).parts
        } catch (e) {
          // Some have no room for it.
          if (e instanceof SptError) return
          throw e
        }
        expect(format.fromParts(A.shape, parts, data).toCoords().values).toHaveLength(A.values!.length)
        const changed = parts.map((p, n) => (n === k % parts.length ? repeated(p, copy) : p))
        try {
          const back = format.fromParts(A.shape, changed, data).toCoords()
          const at = Array.from(back.values!, (_, e) => back.coords.map((c) => c[e]).join())
          expect(new Set(at).size).toBe(at.length)
        } catch (e) {
          if (!(e instanceof SptError)) throw e
          if (e.diagnostics[0]!.code === 'bind/duplicate') refused++
        }
      }),
      { numRuns: runs(15) },
    )
  }
  expect(refused).toBeGreaterThan(0)
})

test('duplicate coordinates in coo are rejected, and only those', () => {
  const format = program.format('coo')
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), fc.nat(3)), { maxLength: 6 }), (drawn) => {
      const at = drawn.toSorted(([a], [b]) => a - b)
      const arrays = {
        io: { indptr: ints(0, at.length), indices: ints(...at.map(([i]) => i)) },
        jo: { indices: ints(...at.map(([, j]) => j)) },
      }
      const tensor = stored([4, 4], arrays, ones(at.length))
      const make = () => format.fromParts([4, 4], [{ tensor, tables: {} }])
      if (new Set(at.map(String)).size === at.length) make()
      else expect(refusal(make).code).toBe('bind/duplicate')
    }),
    { numRuns: runs(100) },
  )
})

describe('kernels', () => {
  /** Ready-made arrays of one part or of the whole: `undefined` where they are accepted, and then right. */
  async function codeOf(compiled: Built, bound: RunInputs): Promise<string | undefined> {
    const prepared = await compiled.bind(...flatInputs(bound)).catch((e: SptError) => e.diagnostics[0]!.code)
    if (typeof prepared === 'string') return prepared
    await prepared.run()
    expect(await prepared.verify()).toMatchObject({ ok: true, problems: [] })
    prepared.free()
    return undefined
  }

  test.each([
    'coo',
    'rows_ell(2)',
    'pieces_ell(2)',
    'sell(2, 4)',
    'panels_masked(2, 2)',
    'vnm(2, 4)',
    'ell_masked(0, 4)',
  ])('%s', async (as) => {
    const compiled = await program
      .kernel('once')
      .as('A', as)
      .build(await devices.cpu())
    const format = program.format(as)
    await fc.assert(
      fc.asyncProperty(tensors(2), copies, async (A, copy) => {
        let parts: readonly ConvertedPart[]
        try {
          parts = format.convert(A).parts
        } catch (e) {
          if (e instanceof SptError) return
          throw e
        }
        const part = repeated(parts[0]!, copy)
        const tables = Object.entries(part.tables).map(
          ([name, x]) => [name, dense([x.length], x, 'i32')] as const,
        )
        const bound = { tensors: { A: part.tensor, ...Object.fromEntries(tables) }, params: { m: 4, n: 4 } }
        const alone = () => format.fromParts([4, 4], [part])
        const code = await codeOf(compiled, bound)
        if (code === undefined) alone()
        else expect(refusal(alone).code).toBe(code)
      }),
      { numRuns: runs(25) },
    )
  })

  test('arrays over several trees, of which one is nonunique', async () => {
    const device = await devices.cpu()
    const variable = await program.kernel('variable').build(device)
    const fixed = await program.kernel('fixed').build(device)
    const rows = fc.array(fc.array(fc.nat(3), { maxLength: 3 }), { minLength: 1, maxLength: 3 })
    await fc.assert(
      fc.asyncProperty(rows, fc.nat(2), async (drawn, d) => {
        const sorted = drawn.map((r) => r.toSorted((a, b) => a - b))
        const at = sorted.flat()
        const ends = sorted.map((_, k) => sorted.slice(0, k + 1).flat().length)
        const shape = [sorted.length, 4, d]
        const twice = sorted.some((r) => new Set(r).size < r.length)
        const expected = twice ? 'bind/duplicate' : undefined
        const j = { indptr: ints(0, ...ends), indices: ints(...at) }
        expect(await codeOf(variable, { tensors: { A: stored(shape, { j }, ones(at.length * d)) } })).toBe(
          expected,
        )
        // Padding is at no coordinate, however often it is there.
        const padded = sorted.flatMap((r) => [...r, 4, 4, 4].slice(0, 3))
        const A = stored(shape, { j: { indices: ints(...padded) } }, ones(padded.length * d))
        expect(await codeOf(fixed, { tensors: { A } })).toBe(expected)
      }),
      { numRuns: runs(60) },
    )
  })

  test('padding next to an element is not a coordinate, for an axis under a nonunique one of several trees', async () => {
    const compiled = await program.kernel('beside').build(await devices.cpu())
    const elements = fc.uniqueArray(fc.tuple(fc.nat(1), fc.nat(2)), { maxLength: 5, selector: String })
    await fc.assert(
      fc.asyncProperty(elements, fc.integer({ min: 1, max: 2 }), fc.nat(20), async (drawn, d, which) => {
        const at = drawn.toSorted(([a, k], [b, l]) => a - b || k - l)
        const ends = at.map((_, e) => at.slice(0, e + 1).reduce((n, [, k]) => n + k + 1, 0))
        const arrays = {
          j: { indptr: ints(0, at.length), indices: ints(...at.map(([j]) => j)) },
          k: { indptr: ints(0, ...ends) },
        }
        const values = new Float32Array(d * (ends.at(-1) ?? 0)).fill(7)
        for (const end of ends) values.fill(1, d * (end - 1), d * end)
        const bound = (v: Float32Array) => ({ tensors: { A: stored([1, 2, 3, d], arrays, v) } })
        expect(await codeOf(compiled, bound(values))).toBeUndefined()
        // One of the places beside, where there are some, is that of another element.
        const beside = ends.flatMap((end, e) =>
          Array.from({ length: at[e]![1] }, (_, k) => ({
            place: end - 1 - at[e]![1] + k,
            key: `${at[e]![0]},${k}`,
          })),
        )
        const one = beside[which % Math.max(1, beside.length)]
        if (!one || !at.map(String).includes(one.key)) return
        const twice = values.slice()
        twice[one.place * d] = 2
        expect(await codeOf(compiled, bound(twice))).toBe('bind/duplicate')
      }),
      { numRuns: runs(60) },
    )
  })

  test.each(['csf', 'coo_n', 'csr', 'coo', 'dcsr', 'rows_ell(2)'])(
    'a tensor over several trees, of which one is nonunique, in %s',
    async (as) => {
      const compiled = await program
        .kernel('variable')
        .as('A', as)
        .build(await devices.cpu())
      const format = program.format(as).withOrder(2)
      await fc.assert(
        fc.asyncProperty(tensors(2), copies, async (A, copy) => {
          const part = repeated(format.convert(A).parts[0]!, copy)
          const tables = Object.entries(part.tables).map(
            ([name, x]) => [name, dense([x.length], x, 'i32')] as const,
          )
          const tensor = {
            ...part.tensor,
            shape: [...part.tensor.shape, 1],
          }
          const bound = {
            tensors: { A: tensor, ...Object.fromEntries(tables) },
            params: { m: 4, n: 4, d: 1 },
          }
          const code = await codeOf(compiled, bound)
          const alone = () => format.fromParts(A.shape, [part])
          if (code === undefined) alone()
          else expect(refusal(alone).code).toBe(code)
        }),
        { numRuns: runs(40) },
      )
    },
  )

  const coo = stored(
    [1, 3],
    { io: { indptr: ints(0, 3), indices: ints(0, 0, 0) }, jo: { indices: ints(0, 1, 1) } },
    Float32Array.of(5, 2, 4),
  )

  test('duplicate coordinates are named, and are separate elements under nonunique axes', async () => {
    const device = await devices.cpu()
    const once = await program.kernel('once').as('A', 'coo').build(device)
    await expect(once.bind({ A: coo })).rejects.toThrow(/bind\/duplicate: A holds \(i, j\) = \(0, 1\) twice/)
    const apart = await (await program.kernel('apart').as('A', 'coo').build(device)).bind({ A: coo })
    await apart.run()
    expect([...(await apart.get('C')).values!]).toEqual([3])
    expect(await apart.verify()).toMatchObject({ ok: true })
  })
})

test('if levels prove uniqueness, coordinates are not checked', async () => {
  const formats = await packageFormats()
  const told = new Set<string>()
  for (const s of STANDARD) {
    const { parts, over } = instanceOf(formats.get(s.name)!, s.args, s.order ?? 2)
    const dims = over.map((a) => a.name)
    if (parts.every(({ instance }) => levelsAreUnique(instance.axes, [{ instance, dims }])))
      told.add(title(s))
  }
  const simple = [
    'csr()',
    'csc()',
    'dcsr()',
    'by_length()',
    'ragged()',
    'ell()',
    'nm(2, 4)',
    'csr_panels(7)',
    'dia()',
    'csf()',
  ]
  const blocks = [
    'bsr(1)',
    'bsr(4)',
    'bsr_masked(3)',
    'bsr_by_length(4)',
    'dbsr(3)',
    'bitmap_blocks()',
    'blocks_n(2)',
  ]
  for (const name of [...simple, ...blocks]) expect(told).toContain(name)
  for (const name of [
    'coo()',
    'ell_at(0)',
    'sell(4, 8)',
    'pieces_ell(3)',
    'panels_masked(2, 3)',
    'vbr(rows, cols)',
  ])
    expect(told).not.toContain(name)
})
