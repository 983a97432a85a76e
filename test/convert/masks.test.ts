/** Formats that keep a mask: which positions hold elements survives, zeros among them, on the host, on devices and ready-made. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import { packFields, unpackFields } from '../../src/ir/values/packed-fields.ts'
import { coords, dense, devices } from '../../src/node.ts'
import { conversionPlan } from '../../src/storage/engines/device/index.ts'
import { convertTensor, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import type { CoordTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrices, written } from '../formats/user-formats.ts'
import { FORMATS, KERNELS } from '../properties/masked-formats.ts'
import { runs, sample } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { refusal } from '../support/refusal.ts'
import { DEVICES, opened } from './devices.ts'

const formatText = (name: string): string =>
  `${FORMATS.slice(FORMATS.indexOf(`format ${name}`)).split(/\n\}\n/)[0]!}\n}\n`
const TEXTS: readonly { readonly name: string; readonly args: readonly number[] }[] = [
  { name: 'bsr_masked', args: [2] },
  { name: 'bsr_masked', args: [3] },
  { name: 'blocked_masked', args: [2, 3] },
  { name: 'ell_masked', args: [] },
  { name: 'ell_at_masked', args: [0] },
  { name: 'sell_masked', args: [2, 4] },
  { name: 'panels_masked', args: [2, 3] },
  { name: 'all_masked', args: [] },
]
const ROWS = formatText('csr')

/** Each coordinate once, some elements 0. */
function withZeros(t: CoordTensor): CoordTensor {
  const seen = new Map(Array.from(t.coords[0]!, (i, e) => [`${i} ${t.coords[1]![e]}`, e] as const))
  const own = [...seen.values()].sort((x, y) => x - y)
  return {
    ...t,
    coords: t.coords.map((c) => Int32Array.from(own, (e) => c[e]!)),
    values: Int32Array.from(own, (_, k) => (k % 3) - 1),
    dtype: 'i32',
  }
}

const entries = (t: CoordTensor): string[] =>
  Array.from(t.values!, (v, e) => `${t.coords.map((c) => c[e]).join(' ')}: ${v}`).sort()

test.each(TEXTS)('$name $args keeps its elements', ({ name, args }) => {
  const to = written(formatText(name), ...args)
  fc.assert(
    fc.property(matrices, (drawn) => {
      const A = withZeros(drawn)
      const made = convertTensor(A, to, givenFor(A.shape))
      expect(entries(partsToCoords(made))).toEqual(entries(A))
      const [part] = made.parts
      const bits = unpackFields(part!.tables.get('held')!, 1, part!.storage.size)
      expect(bits.reduce((n, x) => n + x, 0)).toBe(A.values!.length)
      const rows = convertTensor(made, written(ROWS), givenFor(A.shape))
      expect(arraysOf(rows)).toEqual(arraysOf(convertTensor(A, written(ROWS), givenFor(A.shape))))
    }),
    { numRuns: runs(10) },
  )
})

describe.each(DEVICES)('on $name', ({ name: device, kind, open }) => {
  const on = opened(open)

  // All on the device that is fastest to test; of each other some, in each run others.
  test.each(device === 'cpu' ? TEXTS : sample(TEXTS, kind === 'cpu' ? TEXTS.length : 1))(
    '$name $args',
    async ({ name, args }) => {
      const to = written(formatText(name), ...args)
      const plan = conversionPlan(on.device, to)
      const back = conversionPlan(on.device, written(ROWS))
      const as = `${name}${args.length > 0 ? `(${args.join(', ')})` : ''}`
      const text = `${FORMATS}${KERNELS}schedule extremes.s { A as ${as} }\nschedule product.s { A as ${as} }`
      const program = parseProgram(text)
      const compiled = await program.kernel('extremes').schedule('s').build(on.device)
      const product = await program.kernel('product').schedule('s').build(on.device)
      await fc.assert(
        fc.asyncProperty(matrices, async (drawn) => {
          const A = withZeros(drawn)
          const given = givenFor(A.shape)
          const from = await upload(on.device, A)
          const made = await plan.run(from, given)
          expect(arraysOf(await made.download())).toEqual(arraysOf(convertTensor(A, to, given)))
          const rows = await back.run(made, given)
          expect(arraysOf(await rows.download())).toEqual(arraysOf(convertTensor(A, rows.instance, given)))
          const own = await convertForKernel(compiled, 'A', from)
          const prepared = await bindResident(compiled, { A: own })
          await prepared.run()
          expect(await prepared.verify()).toMatchObject({ ok: true, problems: [] })
          // It does not ask the mask, and what is bound has one all the same.
          const x = dense(
            [A.shape[1]!],
            Int32Array.from({ length: A.shape[1]! }, (_, k) => k + 1),
          )
          const idle = await convertForKernel(product, 'A', from)
          const summed = await bindResident(product, { A: idle, x })
          await summed.run()
          expect(await summed.verify()).toMatchObject({ ok: true, problems: [] })
          for (const r of [prepared, summed, from, made, rows, own, idle]) r.free()
        }),
        { numRuns: runs(kind === 'webgpu' ? 1 : 6) },
      )
    },
  )
})

// Ready-made ---------------------------------------------------------------------------------------------------------

/** Two 2 × 2 blocks of a 3 × 4 matrix with the elements (0, 0), (1, 1) = 0, (2, 3): NaN wherever there is none. */
const X = Number.NaN
const blocks = Float32Array.of(-5, X, X, 0, X, -7, X, X)
const bits = Int32Array.of(0b00101001)
const jo = { indptr: Int32Array.of(0, 1, 2), indices: Int32Array.of(0, 1) }
const ready = (held: Int32Array | null) => ({
  A: { kind: 'stored' as const, shape: [2, 2, 2, 2], arrays: { jo }, values: blocks, dtype: 'f32' as const },
  ...(held && { held: dense([held.length], held) }),
})
const PROGRAM = `${FORMATS}
kernel both(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[jd] in
  buffer H: f32[i] out
  buffer y: f32[i] out
  buffer P: f32[i, j] out
  iterate high [i, j] as SR { H[i] max= A[i, j] }
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
  iterate one [i, j] as SS { P[i, j] = A[i, j] + 1 }
}
format moved over (a, b, c, d) {
  axis k = dense_fixed(a)
  axis l = sparse_variable(k, b)
  axis q = dense_fixed(c)
  axis p = dense_fixed(d)
  map (a, b, c, d) -> (a, b, c, d)
  inverse (k, l, q, p) -> (k, l, q, p)
}
schedule both.s { A as bsr_masked(2) }
schedule both.twice {
  A as bsr_masked(2)
  A as moved
}
`
const x = dense([4], Float32Array.of(1, 2, 3, 4))
const bothOf = async (name: string) =>
  await parseProgram(PROGRAM)
    .kernel('both')
    .schedule(name)
    .build(await devices.cpu())

test('padding of ready-made blocks has no effect, and zeros with a mask bit are elements', async () => {
  const prepared = await (await bothOf('s')).bind({ ...ready(bits), x, m: 3, n: 4 })
  await prepared.run()
  expect([...(await prepared.get('H')).values!]).toEqual([-5, 0, -7])
  expect([...(await prepared.get('y')).values!]).toEqual([-5, 0, -28])
  expect(entries((await prepared.get('P')) as CoordTensor)).toEqual(['0 0: -4', '1 1: 1', '2 3: -6'])
  expect(await prepared.verify()).toMatchObject({ ok: true })
})

test('conversion to a later format keeps the mask', async () => {
  const A = coords(
    [3, 4],
    [
      [0, 1, 2],
      [0, 1, 3],
    ],
    Float32Array.of(-5, 0, -7),
  )
  const prepared = await (await bothOf('twice')).bind({ A, x })
  await prepared.run()
  expect([...(await prepared.get('H')).values!]).toEqual([-5, 0, -7])
  expect(await prepared.verify()).toMatchObject({ ok: true })
  const tensors = { ...ready(bits), x }
  const own = { ...tensors.A, arrays: { l: jo } }
  const again = await (await bothOf('twice')).bind({ ...tensors, A: own, m: 3, n: 4 })
  await again.run()
  expect([...(await again.get('H')).values!]).toEqual([-5, 0, -7])
})

test('a mask comes with ready-made parts, a bit for each position', async () => {
  const refused = async (held: Int32Array | null) =>
    (await bothOf('s')).bind({ ...ready(held), x, m: 3, n: 4 }).then(
      () => undefined,
      (e: Error) => e.message,
    )
  expect(await refused(null)).toMatch(
    /bind\/missing-table: .*the mask that goes with them, held, is not bound/,
  )
  expect(await refused(Int32Array.of(1, 1))).toMatch(/bind\/table: held has 2 words/)
  const format = parseProgram(PROGRAM).format('bsr_masked(2)')
  const A = coords(
    [3, 4],
    [
      [0, 1, 2],
      [0, 1, 3],
    ],
    Float32Array.of(-5, 0, -7),
  )
  const made = format.convert(A)
  const [part] = made.parts
  expect(part!.tables).toEqual({ held: bits })
  expect(entries(format.fromParts([3, 4], made.parts).toCoords())).toEqual(entries(A))
  const { tensor } = part!
  expect(refusal(() => format.fromParts([3, 4], [{ tensor, tables: {} }])).code).toBe('bind/missing-table')
  expect(made.describe().parts[0]).toMatchObject({ tableBytes: 4, stored: 3, padding: 5 })
})

test('the mask is read only if the fill value would change the result', async () => {
  const text = `${FORMATS}${KERNELS}
    schedule product.s { A as bsr_masked(4) }
    schedule extremes.s { A as bsr_masked(4) }`
  const program = parseProgram(text)
  expect(program.kernel('product').schedule('s').show(2)).not.toContain('held')
  const asking = program.kernel('extremes').schedule('s')
  expect(asking.show(2)).toContain('held: i32[jo_count, 4, 4] in  packed 1')
  const A = coords(
    [8, 8],
    [
      [0, 5],
      [0, 6],
    ],
    Int32Array.of(1, 2),
  )
  const prepared = await (await asking.build(await devices.cpu())).bind({ A })
  const { launches } = await prepared.explain({ time: false })
  expect(JSON.stringify(launches)).toContain('held')
  expect(packFields([1, 0, 1], 1)).toEqual(Int32Array.of(5))
})

test('a mask has the axes of its format; values may have more', async () => {
  const text = `${FORMATS}
    kernel several(m: size, n: size, h: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis b = dense_fixed(h)
      axis a = dense_fixed(h)
      axis jd = dense_fixed(n)
      buffer A: f32[b, i, j, a] in
      buffer x: f32[jd] in
      buffer H: f32[b, i, a] out
      buffer y: f32[i] out
      iterate high [b, i, j, a] as SSRS { H[b, i, a] max= A[b, i, j, a] }
      iterate sum [b, i, j, a] as RSRR { y[i] += A[b, i, j, a] * x[j] }
    }
    schedule several.s { A as bsr_masked(2) }`
  const compiled = await parseProgram(text)
    .kernel('several')
    .schedule('s')
    .build(await devices.cpu())
  // b, blocks, ii, ji, a
  const values = new Float32Array(2 * 2 * 2 * 2 * 2)
  for (let p = 0; p < values.length; p++)
    values[p] = ((bits[0]! >> ((p >> 1) % 8)) & 1) === 1 ? -1 - p : Number.NaN
  const { A } = ready(null)
  const tensors = { A: { ...A, shape: [2, 2, 2, 2, 2, 2], values }, held: dense([1], bits), x }
  const prepared = await compiled.bind({ ...tensors, m: 3, n: 4, h: 2 })
  await prepared.run()
  expect([...(await prepared.get('H')).values!]).toEqual([
    -1, -2, -7, -8, -11, -12, -17, -18, -23, -24, -27, -28,
  ])
  expect(await prepared.verify()).toMatchObject({ ok: true, problems: [] })
})

describe('if levels determine the padding, the mask agrees', () => {
  const rows = 'axis io = dense_fixed(i)'
  const plain = ['map (i, j) -> (i, j)', 'inverse (io, e) -> (io, e)']
  const AXES = {
    variable: [rows, 'axis e = sparse_variable(io, j)', ...plain],
    fixed: [rows, 'axis e = sparse_fixed(io, j, 3)', ...plain],
    bits: [
      rows,
      'axis jo = sparse_variable(io, ceildiv(j, 2))',
      'axis e = bitmap(jo, 2)',
      'map (i, j) -> (i, j / 2, j % 2)',
      'inverse (io, jo, e) -> (io, jo * 2 + e)',
    ],
    full: [
      rows,
      'axis jo = sparse_variable(io, j)',
      'axis e = dense_fixed(jo, 1) full',
      'map (i, j) -> (i, j, 0)',
      'inverse (io, jo, e) -> (io, jo)',
    ],
    last: ['axis io = sparse_variable(i)', 'axis e = sparse_fixed(io, j, 3) padded with last', ...plain],
    dense: [rows, 'axis e = dense_fixed(io, j)', ...plain],
  }
  const program = parseProgram(`${Object.entries(AXES)
    .map(([name, lines]) => `format ${name} over (i, j) {\n${lines.join('\n')}\nmask held\n}`)
    .join('\n')}
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer A: i32[i, j] in
      buffer N: i32[i] out
      buffer L: i32[i] out
      iterate count [i, j] as SR { N[i] += 1 }
      iterate least [i, j] as SR { L[i] min= A[i, j] }
    }`)

  test.each(Object.keys(AXES))('%s', async (name) => {
    const compiled = await program
      .kernel('k')
      .as('A', name)
      .build(await devices.cpu())
    const told = name !== 'last' && name !== 'dense'
    let refused = 0
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(8), { minLength: 1, maxLength: 9 }),
        fc.nat(8),
        async (at, which) => {
          const sorted = at.toSorted((x, y) => x - y)
          const A = coords(
            [3, 4],
            [sorted.map((x) => Math.floor(x / 3)), sorted.map((x) => x % 3)],
            Int32Array.from(sorted, (x) => x - 4),
          )
          const [part] = program.format(name).convert(A).parts
          const { tensor, tables } = part!
          const bits = unpackFields(tables.held!, 1, tensor.values!.length)
          const elements = [...bits.keys()].filter((p) => bits[p] === 1)
          const gone = elements[which % elements.length]!
          const held = packFields(
            [...bits].map((b, p) => (p === gone ? 0 : b)),
            1,
          )
          const prepare = (mask: Int32Array) =>
            compiled.bind({ A: tensor, held: dense([mask.length], mask), m: 3, n: 4 })
          const back = () => program.format(name).fromParts([3, 4], [{ tensor, tables: { held } }])
          if (told) {
            refused++
            await expect(prepare(held)).rejects.toThrow(
              `bind/table: held has no bit for (${Math.floor(sorted[which % elements.length]! / 3)}, `,
            )
            expect(refusal(back).code).toBe('bind/table')
          } else expect(back().toCoords().values).toHaveLength(elements.length - 1)
          for (const mask of told ? [tables.held!] : [tables.held!, held]) {
            const prepared = await prepare(mask)
            await prepared.run()
            expect(await prepared.verify()).toMatchObject({ problems: [] })
            prepared.free()
          }
        },
      ),
      { numRuns: runs(10) },
    )
    expect(refused > 0).toBe(told)
  })
})
