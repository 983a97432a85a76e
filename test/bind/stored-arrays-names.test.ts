/** What `convert` gives is what a kernel takes for its tensor, whatever the axes of the format are, and what else has their names. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isStored } from '../../src/ir/coordinates/axis.ts'
import { coords, dense, devices, load, type SptError, stored, type Tensor } from '../../src/node.ts'
import { allAxesOf, isStructured } from '../../src/run/bind/bind-plan.ts'
import { bindingIn, bindingOf } from '../../src/run/bind/binding-names.ts'
import { runs } from '../support/cases.ts'
import { ROW_SUMS } from '../support/product.ts'
import { refusal } from '../support/refusal.ts'

const program = await load(`import "sparsetile/kernels/formats.spt"
format transposed over (i, j) {
  axis jo = dense_fixed(j)
  axis io = dense_fixed(i)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
format ordered over (i, j) {
  sort i by -count(j by i) -> (place, row)
  axis ro = dense_fixed(i)
  axis jo = dense_fixed(j)
  map (i, j) -> (place[i], j)
  inverse (ro, jo) -> (row[ro], jo)
}
format kept over (i, j) {
  axis jo = dense_fixed(j)
  axis io = dense_fixed(i)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
  mask held
}
format tiles over (i, j) {
  axis io = dense_fixed(ceildiv(i, 2))
  axis go = dense_fixed(io, ceildiv(j, 2))
  list jo = sparse_fixed(go, 2, 2)
  axis ii = dense_fixed(go, 2)
  axis q = dense_fixed(ii, jo)
  map (i, j) -> (i / 2, j / 2, j % 2, i % 2, position(jo))
  inverse (io, go, ii, q) -> (io * 2 + ii, go * 2 + jo[q])
}
format columns over (r, c) {
  axis e = dense_fixed(c)
  axis t = sparse_variable(e, r)
  map (r, c) -> (c, r)
  inverse (e, t) -> (t, e)
}
${['dense_fixed(n)', 'sparse_variable(i, n)']
  .map(
    (j, k) => `kernel k${k}(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = ${j}
  axis d = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer X: f32[d] in
  buffer C: f32[i] out
  buffer e: f32[i] out
  iterate io [i, j] as SR { C[i] += A[i, j] * X[j] }
  iterate jo [i, j] as SR { e[i] += A[i, j] }
}`,
  )
  .join('\n')}`)
const FORMATS = [
  'transposed',
  'ordered',
  'kept',
  'tiles',
  'columns',
  'band(9, 9)',
  'csr',
  'csc',
  'coo',
  'bsr(2)',
  'bsr_masked(2)',
  'sell(2, 2)',
  'panels(2, 2)',
  'panels_masked(2, 2)',
  'tiles where (i < 1) + columns',
  'ell(1) where (i < 0) + csr',
]
const device = await devices.cpu()
const compiled = await Promise.all(
  ['k0', 'k1'].flatMap((kernel) =>
    FORMATS.map(async (format) => ({
      kernel,
      format,
      made: await program.kernel(kernel).as('A', format).build(device, { auto: false }),
    })),
  ),
)

const matrices = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 })).chain(([m, n]) =>
  fc.record({
    m: fc.constant(m),
    n: fc.constant(n),
    values: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 9 })), {
      minLength: m * n,
      maxLength: m * n,
    }),
  }),
)

test('every format, with name clashes between kernel and format', async () => {
  for (const { kernel, format, made } of compiled)
    await fc
      .assert(
        fc.asyncProperty(matrices, fc.boolean(), async ({ m, n, values }, bare) => {
          const of = (times: number) =>
            dense(
              [m, n],
              Float32Array.from(values, (x) => x * times),
            )
          const partsOf = (times: number) => program.format(format).convert(of(times)).parts
          const X = dense(
            [n],
            Float32Array.from({ length: n }, (_, j) => 10 ** j),
          )
          const tensors: Record<string, Tensor> = { X }
          const parts = partsOf(1)
          for (const p of parts) {
            tensors[p.label ? `A_${p.label}` : 'A'] = p.tensor
            for (const [name, t] of Object.entries(p.tables)) tensors[name] = dense([t.length], t)
          }
          const bound = await made.bind({ ...tensors, m, n })
          const check = async (times: number): Promise<void> => {
            await bound.run()
            const sums = (f: (j: number) => number) =>
              Array.from({ length: m }, (_, i) =>
                values.slice(i * n, (i + 1) * n).reduce((s, x, j) => s + x * times * f(j), 0),
              )
            expect([...(await bound.get('C')).values!]).toEqual(sums((j) => 10 ** j))
            expect([...(await bound.get('e')).values!]).toEqual(sums(() => 1))
            expect((await bound.verify()).problems).toEqual([])
          }
          await check(1)
          if (parts.length === 1) {
            const [{ tensor }] = partsOf(2) as [(typeof parts)[0]]
            await bound.set('A', bare ? tensor.values! : tensor)
            await check(2)
          }
          const at = values.flatMap((x, e) => (x === 0 ? [] : [e]))
          const columns = [at.map((e) => Math.floor(e / n)), at.map((e) => e % n)]
          await bound.set(
            'A',
            coords(
              [m, n],
              columns,
              Float32Array.from(at, (e) => values[e]! * 3),
            ),
          )
          await check(3)
          bound.free()
        }),
        { numRuns: runs(3) },
      )
      .catch((e: unknown) => {
        throw new Error(`${kernel}, ${format}: ${e instanceof Error ? `${e.message} ${e.cause}` : e}`)
      })
})

const A = dense([2, 2], Float32Array.of(1, 2, 0, 3))
const X = dense([2], Float32Array.of(1, 10))
const transposed = program.format('transposed').convert(A).parts[0]!.tensor
const flat = stored([2, 2], {}, transposed.values)
const preparedBy = async (kernel: string, format: string, of: Tensor) => {
  const { made } = compiled.find((c) => c.kernel === kernel && c.format === format)!
  return await made.bind({ A: of, X, m: 2, n: 2 })
}
const said = (of: () => Promise<unknown>) =>
  of().then(
    () => 'nothing',
    (e: SptError) => e.message,
  )

test('unnamed arrays belong to the only format without names', async () => {
  const bound = await preparedBy('k1', 'transposed', flat)
  await bound.run()
  expect([...(await bound.get('C')).values!]).toEqual([21, 30])
  bound.free()
  const rows = await preparedBy('k0', 'csr', stored([2, 2], {}, A.values))
  await rows.run()
  expect([...(await rows.get('C')).values!]).toEqual([21, 30])
  rows.free()
})

test('unidentifiable arrays are rejected', async () => {
  expect(await said(() => preparedBy('k0', 'transposed', flat))).toContain(
    'bind/part: the arrays that are bound to A can be over the declared axes, and over [jo_2, io_2] of its format',
  )
})

test('written values go to the elements', async () => {
  const bound = await preparedBy('k0', 'transposed', A)
  expect(await said(() => bound.set('A', transposed))).toContain(
    'bind/part: A is given ready-made arrays, and was bound by its coordinates',
  )
  bound.free()
  const ready = await preparedBy('k0', 'transposed', transposed)
  expect(await said(() => ready.set('A', Float32Array.of(1, 1, 1, 1)))).toContain(
    'bind/absent-coordinate: position 1 of the new values of A holds no element',
  )
  ready.free()
})

test('a fully ready-made format converts nothing, not even an empty tensor', async () => {
  const padded = await load(`format last over (i, j) {
  axis go = dense_fixed(ceildiv(j, 3))
  list jo = sparse_fixed(go, 3, 3) padded with last
  axis io = dense_fixed(go, i)
  axis q = dense_fixed(io, jo)
  map (i, j) -> (j / 3, j % 3, i, position(jo))
  inverse (go, io, q) -> (io, go * 3 + jo[q])
}
${ROW_SUMS}`)
  const A = coords([2, 3], [Int32Array.of(0, 1), Int32Array.of(0, 1)], Float32Array.of(1, 2))
  const [part] = padded.format('last').convert(A).parts
  const made = await padded.kernel().as('A', 'last').build(device, { auto: false })
  const { C } = await made({ A: part!.tensor, ...part!.tables, m: 2, n: 3 })
  expect([...C!.values!]).toEqual([1, 2])
})

test('one part of several is not accepted as the whole', async () => {
  for (const text of [
    'transposed where (i < 2) + csr',
    'csr where (i < 2) + coo',
    'bsr(2) where (i < 2) + csr',
  ]) {
    const A = coords([3, 3], [Int32Array.of(0, 1, 2), Int32Array.of(1, 2, 0)], Float32Array.of(1, 2, 4))
    const made = await program.kernel('k1').as('A', text).build(device, { auto: false })
    for (const part of program.format(text).convert(A).parts) {
      const tensors = { A: part.tensor, X: dense([3], new Float32Array(3)), ...part.tables }
      const e = await made.bind({ ...tensors, m: 3, n: 3 }).then(
        () => null,
        (x: SptError) => x.diagnostics[0]!.code,
      )
      expect(e, `${text}, only ${part.label}`).toMatch(/^bind\//)
    }
  }
})

test('lists are bound under any name: their own, others, and each other’s', () => {
  const A = coords([3, 3], [Int32Array.of(0, 1, 2), Int32Array.of(0, 2, 1)], Float32Array.of(1, 2, 3))
  const [rows, columns] = [Int32Array.of(0, 2, 3), Int32Array.of(0, 1, 2, 3)]
  const arraysOf = (r: string, c: string) =>
    program
      .format(`vbr(${r}, ${c})`)
      .convert(A, { [r]: rows, [c]: columns })
      .parts.map((p) => p.tensor)
  const own = arraysOf('rows', 'cols')
  expect(arraysOf('r', 'c')).toEqual(own)
  expect(arraysOf('cols', 'rows')).toEqual(own)
})

test('an unknown name: bindable names are listed, as programs call them', () => {
  const kernel = program.kernel('k1')
  const beside = { ordered: ['row'], kept: ['held'], tiles: ['jo'], transposed: [], columns: [] } as const
  for (const [name, own] of Object.entries(beside)) {
    const { kernel: k } = kernel.as('A', name).compilation
    const refused = refusal(() => bindingOf(k, 'nothing_has_it'))
    expect(refused.code).toBe('bind/unknown-name')
    const listed = refused.lookup!.candidates
    expect(refused.expected).toBe(`one of ${listed.join(', ')}`)
    expect(listed).toEqual(expect.arrayContaining(['A', ...own]))
    expect(new Set(listed).size).toBe(listed.length)
    for (const x of listed) expect(bindingIn(k, x), x).not.toBeNull()
    // The places of a table have no name; what is dense alone has no structure that one would bring.
    const axes = allAxesOf(k)
    const brings = (a: string): boolean => isStored(axes.get(a)!) && isStructured(axes, a)
    for (const a of axes.keys()) if (listed.includes(a)) expect(brings(a), a).toBe(true)
    for (const a of axes.keys()) if (brings(a) && !listed.includes(a)) expect(bindingIn(k, a), a).toBeNull()
    const unnamed = k.axes.filter((a) => bindingIn(k, a.name) === null)
    expect(unnamed.length).toBe(name === 'ordered' || name === 'tiles' ? 1 : 0)
  }
})
