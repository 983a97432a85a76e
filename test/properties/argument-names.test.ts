/**
 * Names of lists among the data: whoever uses a format chooses them, and need not know what its text, or the kernel, calls anything.
 * Bound by coordinates, ready-made, and converted, a tensor is the same under every name, or the name is refused.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { additionalArrays } from '../../src/ir/formats/format-tables.ts'
import { coords, type Device, dense, devices, load, SptError, type Tensor } from '../../src/node.ts'
import { costly } from '../support/cases.ts'
import { diagnosticOf } from '../support/refusal.ts'

/** What a text calls its things; a clash within it is refused where it is read. */
interface Called {
  readonly list: string
  readonly place: string
  readonly row: string
  readonly mask: string
  readonly shared: string
}

const formatOf = (c: Called): string => `
format seg(${c.list}: list) over (i, j) {
  sort i by -count(j by i) -> (${c.place}, ${c.row})
  axis io = dense_fixed(segments(${c.list}))
  axis go = dense_variable(io, j)
  list ${c.shared} = sparse_fixed(go, j, 12)
  axis ii = dense_fixed(go, 6)
  axis q = dense_fixed(ii, ${c.shared})
  map (i, j) -> (find(${c.list}, ${c.place}[i]), rank(j by find(${c.list}, ${c.place}[i])) / 12, j,
    ${c.place}[i] - ${c.list}[find(${c.list}, ${c.place}[i])], position(${c.shared}))
  inverse (io, go, ii, q) -> (${c.row}[${c.list}[io] + ii], ${c.shared}[q])
  mask ${c.mask}
}
format both(${c.list}: list, ${c.place}: set) over (i, j) {
  part seg(${c.list}) where (held(${c.place}))
  part seg(${c.list})
}`

const kernelOf = (m: string): string => `
kernel k(${m}: size, n: size) {
  axis i = dense_fixed(${m})
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer X: i32[jd] in
  buffer C: i32[i] out
  buffer D: i32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] * X[j] }
  iterate most [i, j] as SR { D[i] max= A[i, j] - 100 }
}`

const USUAL: Called = { list: 'x', place: 'place', row: 'row', mask: 'held', shared: 'jo' }
const OF_KERNEL = ['m', 'n', 'i', 'j', 'jd', 'A', 'X', 'C', 'D', 'sum', 'most', 'k', 'cuts_segments']
const ENDINGS = ['', '_2', '_x', '_segments', '_indptr', '_indices', '_count', '_seg', '_seg_2', '_2_seg_2']
const BASES = [...Object.values(USUAL), 'io', 'go', 'ii', 'q', 'cuts', 'jd', ...OF_KERNEL]

const calledLike = fc
  .record({
    list: fc.constantFrom(USUAL.list, ...OF_KERNEL),
    place: fc.constantFrom(USUAL.place, 'A', 'p'),
    row: fc.constantFrom(USUAL.row, 'held_2', 'row_2', 'C'),
    mask: fc.constantFrom(USUAL.mask, 'row_2', 'jo_2', 'most'),
    shared: fc.constantFrom(USUAL.shared, 'held_2', 'jo_2', 'X'),
  })
  .filter((c) => new Set([...Object.values(c), 'i', 'j']).size === 7)

const cases = fc.record({
  called: fc.oneof(fc.constant(USUAL), calledLike),
  argument: fc.tuple(fc.constantFrom(...BASES), fc.constantFrom(...ENDINGS)).map(([a, b]) => a + b),
  set: fc.constantFrom('chosen', 'held', 'jo', 'row_seg', 'held_seg_2'),
  size: fc.constantFrom('m', 'cuts_segments', 'io_segments'),
  composed: fc.boolean(),
  cuts: fc.constantFrom([0, 6], [0, 2, 6], [0, 0, 1, 6], [0, 3, 5, 6, 6]),
  cells: fc.uniqueArray(fc.integer({ min: 0, max: 47 }), { minLength: 1, maxLength: 20 }),
})

let device: Device
beforeAll(async () => {
  device = await devices.cpu()
})
afterAll(() => device.dispose())

const int = (n: number, f: (k: number) => number): Int32Array =>
  Int32Array.from({ length: n }, (_, k) => f(k))

test('a list may have any name', async () => {
  let [ran, ready] = [0, 0]
  await fc.assert(
    fc.asyncProperty(cases, async ({ called, argument, set, size, composed, cuts, cells }) => {
      fc.pre(argument !== set)
      const [rows, columns] = [cells.map((e) => Math.floor(e / 8)), cells.map((e) => e % 8)]
      const A = coords(
        [6, 8],
        [rows, columns],
        Int32Array.from(cells, (e) => (e % 5) - 2),
        'i32',
      )
      const X = dense(
        [8],
        int(8, (j) => j - 3),
      )
      const chosen = coords(
        [6, 8],
        [
          [0, 1, 1, 4],
          [2, 3, 4, 4],
        ],
        Int32Array.of(1, 1, 1, 1),
        'i32',
      )
      const at = (e: number): number => (e % 5) - 2
      const sums = int(6, (i) =>
        cells.reduce((s, e, k) => s + (rows[k] === i ? at(e) * (columns[k]! - 3) : 0), 0),
      )
      const most = int(6, (i) =>
        cells.reduce((s, e, k) => (rows[k] === i ? Math.max(s, at(e) - 100) : s), -(2 ** 31)),
      )
      const use = composed ? `both(${argument}, ${set})` : `seg(${argument})`
      const data = {
        [argument]: dense([cuts.length], Int32Array.from(cuts)),
        ...(composed && { [set]: chosen }),
      }
      const program = await load(`${formatOf(called)}${kernelOf(size)}`)
      const parts = program.format(use).convert(A, data).parts
      const converted = program.format(use).fromParts([6, 8], parts, data)
      const lines = (t: typeof A): string[] =>
        [...t.values!].map((x, e) => `${t.coords.map((c) => c[e])}: ${x}`).sort()
      expect(lines(converted.toCoords())).toEqual(lines(A))
      const refused = diagnosticOf(() => program.kernel('k').as('A', use))
      if (refused) {
        // What the kernel declares among tensors is bound as such, and no list.
        expect(['A', 'C', 'D', 'X']).toContain(argument)
        expect(refused).toMatchObject({
          code: 'format/argument-name',
          expected: 'a list under a distinct name',
        })
        return
      }
      const kernel = program.kernel('k').as('A', use)
      const compiled = await kernel.build(device, { auto: false })
      const check = async (tensors: Record<string, Tensor | Int32Array>): Promise<void> => {
        const bound = await compiled.bind({ ...tensors, [size]: 6, n: 8 })
        await bound.run()
        expect((await bound.get('C')).values).toEqual(sums)
        expect((await bound.get('D')).values).toEqual(most)
        expect((await bound.verify()).problems).toEqual([])
        bound.free()
      }
      /** Whether it ran; tables that are called as something of the kernel come under other names. */
      const unlessRefused = async (
        tensors: Record<string, Tensor | Int32Array>,
        declared: readonly string[],
      ) => {
        try {
          await check(tensors)
          return true
        } catch (e) {
          if (!(e instanceof SptError) || !declared.some((x) => OF_KERNEL.includes(x))) throw e
          expect(e.diagnostics[0]!.code).toMatch(/^bind\//)
          return false
        }
      }
      if (!(await unlessRefused({ ...data, A, X }, [argument]))) return
      ran++
      const tables = Object.assign({}, ...parts.map((p) => p.tables))
      const arrays = Object.fromEntries(kernel.parts('A').map((p, k) => [p.buffer, parts[k]!.tensor]))
      const { [set]: _, ...lists } = data
      const own = [called.row, called.mask, called.shared]
      for (const given of [
        { ...tables, ...arrays, X },
        { ...tables, ...lists, ...arrays, X },
        { ...lists, ...tables, ...arrays, X },
      ])
        if (await unlessRefused(composed ? { [set]: chosen, ...given } : given, [argument, ...own])) ready++
    }),
    { numRuns: costly(20) },
  )
  // Cases are not refused as a rule.
  expect(ran).toBeGreaterThan(0)
  expect(ready).toBeGreaterThan(0)
})

const PAIR = `${formatOf(USUAL)}
kernel k(m: size, n: size, o: size, p: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis u = dense_fixed(o)
  axis v = sparse_variable(u, p)
  buffer A: i32[i, j] in
  buffer B: i32[u, v] in
  buffer C: i32[i] out
  buffer D: i32[u] out
  iterate first [i, j] as SR { C[i] max= A[i, j] - 100 }
  iterate second [u, v] as SR { D[u] max= B[u, v] - 100 }
}`

const pairs = fc.record({
  names: fc
    .uniqueArray(
      fc
        .tuple(
          fc.constantFrom(...Object.values(USUAL), 'cuts', 'u', 'first'),
          fc.constantFrom('', '_2', '_3'),
        )
        .map(([a, b]) => a + b),
      { minLength: 1, maxLength: 2 },
    )
    .map(([a, b]) => [a!, b ?? a!] as const),
  cells: fc.uniqueArray(fc.integer({ min: 0, max: 47 }), { minLength: 1, maxLength: 20 }),
})

test('lists of two formats have names of each other', async () => {
  const program = await load(PAIR)
  let ready = 0
  await fc.assert(
    fc.asyncProperty(pairs, async ({ names, cells }) => {
      const lists = Object.fromEntries(names.map((n, k) => [n, Int32Array.of(0, k + 1, 6)]))
      const values = Int32Array.from(cells, (e) => (e % 5) - 2)
      const T = coords([6, 8], [cells.map((e) => Math.floor(e / 8)), cells.map((e) => e % 8)], values, 'i32')
      const most = int(6, (i) =>
        cells.reduce((s, _, k) => (T.coords[0]![k] === i ? Math.max(s, values[k]! - 100) : s), -(2 ** 31)),
      )
      const kernel = program.kernel('k').as('A', `seg(${names[0]})`).as('B', `seg(${names[1]})`)
      const compiled = await kernel.build(device, { auto: false })
      const check = async (tensors: Record<string, Tensor | Int32Array>): Promise<void> => {
        const bound = await compiled.bind({ ...tensors, m: 6, n: 8, o: 6, p: 8 })
        await bound.run()
        for (const of of ['C', 'D']) expect((await bound.get(of)).values).toEqual(most)
        expect((await bound.verify()).problems).toEqual([])
        bound.free()
      }
      await check({ A: T, B: T, ...lists })
      // As the kernel calls what they keep.
      const tables: Record<string, Int32Array> = {}
      const arrays: Record<string, Tensor> = {}
      for (const [k, { instance }] of kernel.compilation.kernel.reformats.entries()) {
        const name = names[k]!
        const [part] = program.format(`seg(${name})`).convert(T, { [name]: lists[name]! }).parts
        const inKernel = additionalArrays(instance.parts[0]!.instance)
        Object.values(part!.tables).forEach((t, at) => {
          tables[inKernel[at]!.bindingName] = t
        })
        arrays[kernel.parts(k === 0 ? 'A' : 'B')[0]!.buffer] = part!.tensor
      }
      // The first format did not know of the second's list.
      const clash = names[1] !== names[0] && ['row', 'jo', 'held'].includes(names[1])
      try {
        await check({ ...tables, ...arrays, ...lists })
        ready++
      } catch (e) {
        if (!clash || !(e instanceof SptError)) throw e
        expect(e.diagnostics[0]).toMatchObject({ code: 'bind/table', expected: 'an array for each name' })
      }
    }),
    {
      numRuns: 2 + costly(10),
      // The first format's order is called as the second's list, which is shorter; then names that never clash.
      examples: [
        [{ names: ['x', 'row'], cells: [8, 16, 0, 24] }],
        [{ names: ['x', 'u'], cells: [8, 16, 0, 24] }],
      ],
    },
  )
  expect(ready).toBeGreaterThan(0)
})
