/**
 * Packed index arrays: a format with `packed` stores what it stores without it, each coordinate as a field; hosts and devices
 * make the same arrays, ready-made ones are bound as they are, and kernels compute what the reference does.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { dense, packIndices, unpackIndices } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { runLaunches, runLoops } from '../../src/api/stages/stage-check.ts'
import type { Kernel2, Kernel3 } from '../../src/ir/statements/loops.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { conversionPlan, uploadResident } from '../../src/storage/engines/device/index.ts'
import { convertTensor, partsToCoords } from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { CoordTensor, StoredTensor } from '../../src/storage/tensor.ts'
import { DEVICES } from '../convert/devices.ts'
import { givenFor, matrices, written } from '../formats/user-formats.ts'
import { costly } from '../support/cases.ts'
import { arraysOf } from '../support/packaged-schedules.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice, compare } from './agree.ts'

const WIDTHS = [1, 2, 4, 8, 16]

/** What is stored, the packed axis, and how many numbers its fields tell apart. */
const FORMATS = [
  {
    name: 'columns of a panel',
    axis: 'ji',
    codes: 3,
    text: `
  axis io = dense_fixed(i)
  axis po = dense_fixed(io, ceildiv(j, 3))
  axis ji = sparse_variable(po, 3) PACKED
  map (i, j) -> (i, j / 3, j % 3)
  inverse (io, po, ji) -> (io, po * 3 + ji)`,
  },
  {
    name: 'padding that is no coordinate',
    axis: 'ji',
    codes: 4,
    text: `
  axis io = dense_fixed(i)
  axis po = dense_fixed(io, ceildiv(j, 3))
  axis ji = sparse_fixed(po, 3, 3) PACKED
  map (i, j) -> (i, j / 3, j % 3)
  inverse (io, po, ji) -> (io, po * 3 + ji)`,
  },
  {
    name: 'padding that is a coordinate',
    axis: 'ji',
    codes: 4,
    text: `
  axis io = dense_fixed(i)
  axis po = dense_fixed(io, ceildiv(j, 4))
  axis ji = sparse_fixed(po, 4, 4) padded with 0 PACKED
  map (i, j) -> (i, j / 4, j % 4)
  inverse (io, po, ji) -> (io, po * 4 + ji)`,
  },
  {
    name: 'no padding, above blocks',
    axis: 'ji',
    codes: 32,
    text: `
  axis io = sparse_variable(ceildiv(i, 2)) nonunique
  axis ji = sparse_fixed(io, min(j, 32), 1) compact PACKED
  axis ii = dense_fixed(ji, 2)
  map (i, j) -> (i / 2, j, i % 2)
  inverse (io, ji, ii) -> (io * 2 + ii, ji)`,
  },
  {
    name: 'a root',
    axis: 'io',
    codes: 16,
    text: `
  axis io = sparse_variable(min(ceildiv(i, 2), 16)) PACKED
  axis jo = sparse_variable(io, j)
  axis ii = dense_fixed(jo, 2)
  map (i, j) -> (i / 2, j, i % 2)
  inverse (io, jo, ii) -> (io * 2 + ii, jo)`,
  },
] as const

const format = (text: string, packed: string): string =>
  `format f over (i, j) {${text.replace(' PACKED', packed)}\n}\n`

/** Visits what is stored; looks coordinates up that are, or are not. */
const KERNEL = `
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jm = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer M: i32[i, jm] in
  buffer x: i32[jd] in
  buffer y: i32[i] out
  buffer z: i32[i] inout
  iterate sum [i, j] as SR { y[i] += A[i, j] * x[j] }
  LOOKUP iterate both [i, jm] as SR { z[i] += M[i, jm] * A[i, jm] }
}
`
const compilations = new Map<string, Compilation>()
function compiled(text: string, packed: string): Compilation {
  // Among several entries of one coordinate nothing can be looked up.
  const kernel = text.includes('nonunique') ? KERNEL.replace(/LOOKUP.*/, '') : KERNEL.replace('LOOKUP ', '')
  const source = `${kernel}${format(text, packed)}schedule k.s { A as f }`
  const known = compilations.get(source) ?? parseProgram(source).kernel('k').schedule('s').compilation
  compilations.set(source, known)
  return known
}

/** Values at equal coordinates added up; none is 0, which blocks would not tell from nothing. */
function summed(t: CoordTensor): CoordTensor {
  const seen = new Map([...t.coords[0]!].map((i, e) => [`${i} ${t.coords[1]![e]}`, e]))
  const kept = [...seen.values()]
  return {
    ...t,
    coords: t.coords.map((c) => Int32Array.from(kept, (e) => c[e]!)),
    values: Int32Array.from(kept, (_, k) => 1 + (k % 7)),
    dtype: 'i32',
  }
}
const lines = (t: CoordTensor): string[] =>
  [...t.values!].map((x, e) => `${t.coords.map((c) => c[e]).join(' ')}: ${x}`).sort()

const drawn = (codes: number) =>
  fc.record({ A: matrices.map(summed), bits: fc.constantFrom(...WIDTHS.filter((b) => codes <= 2 ** b)) })

test.each(FORMATS)(
  '$name: arrays, round trips, ready-made arrays and kernels',
  async ({ text, axis, codes }) => {
    const plain = written(format(text, ''))
    await fc.assert(
      fc.asyncProperty(drawn(codes), matrices.map(summed), async ({ A, bits }, M) => {
        const to = written(format(text, ` packed ${bits}`))
        const given = givenFor(A.shape)
        const stored = convertTensor(A, to, given)
        const [part] = stored.parts
        const [wide] = convertTensor(A, plain, given).parts
        const level = part!.storage.levels.get(axis)!
        const own = wide!.storage.levels.get(axis)!
        expect(level.positions).toBe(own.positions)
        expect(unpackIndices(level.indices!, bits, level.positions)).toEqual(own.indices)
        expect(level.indices).toEqual(packIndices(own.indices!, bits))
        expect(level.indices!.length).toBe(Math.ceil((own.positions * bits) / 32))
        expect(part!.values).toEqual(wide!.values)
        expect(lines(partsToCoords(stored))).toEqual(lines(A))
        const arrays: StoredTensor['arrays'] = Object.fromEntries(
          [...part!.storage.levels].map(([name, { indptr, indices }]) => [
            name,
            { ...(indptr && { indptr }), ...(indices && { indices }) },
          ]),
        )
        const tensor: StoredTensor = {
          kind: 'stored',
          shape: part!.storage.axes.map((a) => part!.storage.levels.get(a.name)!.extent),
          arrays,
          values: part!.values,
          dtype: 'i32',
        }
        const ready = partsFromArrays(to, [{ tensor, tables: new Map() }], given)
        expect(ready.parts[0]!.storage.levels.get(axis)!.indices).toBe(level.indices)
        expect(lines(partsToCoords(ready))).toEqual(lines(A))
        const [m, n] = A.shape as [number, number]
        const x = Int32Array.from({ length: n }, (_, k) => 1 + k)
        const inside = [...M.values!.keys()].filter((e) => M.coords[0]![e]! < m && M.coords[1]![e]! < n)
        const kept = {
          ...M,
          shape: A.shape,
          coords: M.coords.map((c) => Int32Array.from(inside, (e) => c[e]!)),
        }
        const tensors = {
          M: { ...kept, values: Int32Array.from(inside, (e) => M.values![e]!) },
          x: { kind: 'dense', shape: [n], values: x, dtype: 'i32' } as const,
          z: { kind: 'dense', shape: [m], values: new Int32Array(m), dtype: 'i32' } as const,
        }
        const c = compiled(text, ` packed ${bits}`)
        for (const bound of [{ A }, { [c.kernel.buffers[0]!.name]: tensor }])
          await agreeOnAll(c, { tensors: { ...tensors, ...bound }, params: { m, n } })
      }),
      { numRuns: costly(8) },
    )
  },
)

test.each(DEVICES)('$name builds the arrays of the host, and round-trips', async ({ kind, open }) => {
  const device = await open()
  const rows = written(
    'format csr over (i, j) {\n axis io = dense_fixed(i)\n axis jo = sparse_variable(io, j)\n map (i, j) -> (i, j)\n inverse (io, jo) -> (io, jo)\n}',
  )
  const back = conversionPlan(device, rows)
  for (const { text, codes } of kind === 'webgpu' ? FORMATS.slice(2, 3) : FORMATS) {
    const plans = WIDTHS.filter((b) => codes <= 2 ** b)
      .slice(0, kind === 'webgpu' ? 1 : 5)
      .map((b) => written(format(text, ` packed ${b}`)))
      .map((to) => ({ to, plan: conversionPlan(device, to) }))
    await fc.assert(
      fc.asyncProperty(matrices.map(summed), fc.constantFrom(...plans), async (A, { to, plan }) => {
        const given = givenFor(A.shape)
        const from = await uploadResident(device, A)
        const made = await plan.run(from, given)
        expect(arraysOf(await made.download())).toEqual(arraysOf(convertTensor(A, to, given)))
        const again = await back.run(made, given)
        expect(arraysOf(await again.download())).toEqual(arraysOf(convertTensor(A, rows, given)))
        for (const r of [from, made, again]) r.free()
      }),
      { numRuns: costly(kind === 'webgpu' ? 3 : 10) },
    )
  }
  await device.dispose()
})

test('every pass preserves the result', () => {
  const c = compiled(FORMATS[0].text, ' packed 2')
  const results: [string, Kernel2 | Kernel3][] = []
  c.observe((pass, result) => results.push([pass, result]))
  expect(results.map(([pass]) => pass)).toContain('packed-load-expansion')
  fc.assert(
    fc.property(matrices.map(summed), (A) => {
      const [m, n] = A.shape as [number, number]
      const x = dense(
        [n],
        Int32Array.from({ length: n }, (_, k) => k),
      )
      const z = dense([m], new Int32Array(m))
      const bound = bindInputs(c.kernel, { tensors: { A, M: A, x, z }, params: { m, n } })
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      for (const [pass, result] of results) {
        const memory = result.stage === 2 ? runLoops(result, bound, 'forward') : runLaunches(result, bound)
        compare(pass, bound, memory, expected)
      }
    }),
    { numRuns: costly(5) },
  )
})

/** What schedules do to arrays of coordinates, packed ones are used by. */
const SCHEDULES = {
  'copied to registers': `
  cache_read jo_indices at gb in register
  cache_read A at gb in register`,
  'copied to shared memory, ahead of its use': `
  split f by 4 -> (fa, fb)
  reorder (io, fa, fb, ga, gb)
  bind io to block.x
  bind fb to thread.x
  cache_read jo_indices at ga in shared
  pipeline ga by 2`,
  'names what is copied': `
  split f by 4 -> (fa, fb)
  reorder (io, fa, fb, ga, gb)
  bind io to block.x
  bind fb to thread.x
  cache_read B at ga in shared
  pipeline ga by 2`,
  'beside vectors': `
  split f by 4 -> (fa, fb)
  vectorize fb
  bind io to block.x`,
} as const
const PRODUCT = `
format groups(w) over (i, j) {
  axis io = dense_fixed(i)
  axis go = dense_fixed(io, ceildiv(j, 4))
  axis jo = sparse_fixed(go, 4, 4) padded with 0 packed w
  map (i, j) -> (i, j / 4, j % 4)
  inverse (io, go, jo) -> (io, go * 4 + jo)
}
kernel spmm(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis f = dense_fixed(d)
  axis k = dense_fixed(n)
  buffer A: i32[i, j] in
  buffer B: i32[k, f] in
  buffer C: i32[i, f] out
  iterate s [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
instr copy4(D: i32[4] in shared, S: i32[4] in global) {
  iterate each [i] as S { D[i] = S[i] }
  js \`x\`
}
`
const scheduled = (bits: number, steps: string): Compilation =>
  parseProgram(`${PRODUCT}schedule spmm.s {
  A as groups(${bits})
  require n % 8 == 0
  require d % 4 == 0
  split go by 2 -> (ga, gb)${steps}
}`)
    .kernel('spmm')
    .schedule('s').compilation

test.each(Object.entries(SCHEDULES))('under schedules, %s', async (_, steps) => {
  const ways = [2, 4, 8, 16].map((bits) => scheduled(bits, steps))
  await fc.assert(
    fc.asyncProperty(
      matrices.map(summed),
      fc.constantFrom(...ways),
      fc.constantFrom(0, 4, 8),
      async (of, c, d) => {
        const [m, n] = [of.shape[0]!, Math.ceil(of.shape[1]! / 8) * 8]
        const A = { ...of, shape: [m, n] }
        const B = dense(
          [n, d],
          Int32Array.from({ length: n * d }, (_, k) => k % 5),
        )
        await agreeOnAll(c, { tensors: { A, B }, params: { m, n, d } })
      },
    ),
    { numRuns: costly(8) },
  )
})

test('an instruction rejects packed coordinates as numbers', () => {
  const steps = `
  reorder (io, f, ga, gb, jo)
  cache_read jo_indices at gb in shared -> held
  tensorize held.jo with copy4`
  expect(refusal(() => scheduled(8, steps).loops)).toMatchObject({
    code: 'schedule/wrong-type',
    message: expect.stringContaining('jo_indices holds coordinates of 8 bits, and operand S of copy4 is i32'),
  })
})

test('a GPU reads packed fields as the cpu does', async () => {
  const device = await createNodeWebGpu()
  const [{ text }] = FORMATS
  const c = compiled(text, ' packed 2')
  await fc.assert(
    fc.asyncProperty(matrices.map(summed), async (A) => {
      const [m, n] = A.shape as [number, number]
      const x = {
        kind: 'dense',
        shape: [n],
        values: Int32Array.from({ length: n }, (_, k) => k),
        dtype: 'i32',
      } as const
      const z = { ...x, shape: [m], values: new Int32Array(m) }
      const bound = bindInputs(c.kernel, { tensors: { A, M: A, x, z }, params: { m, n } })
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      await agreeOnDevice(device, c, bound, expected)
    }),
    { numRuns: costly(3) },
  )
  await device.dispose()
})

test('values beyond the field width are rejected', () => {
  const [, padded, , , root] = FORMATS
  const build = (text: string, packed: string, A: CoordTensor) =>
    refusal(() => convertTensor(A, written(format(text, packed)), givenFor(A.shape)))
  const one = (m: number, n: number): CoordTensor => ({
    kind: 'coords',
    shape: [m, n],
    coords: [Int32Array.of(0), Int32Array.of(0)],
    values: Int32Array.of(1),
    dtype: 'i32',
  })
  const four = padded.text.replaceAll('3', '4')
  expect(build(four, ' packed 2', one(1, 4))).toMatchObject({
    code: 'format/packed',
    message:
      'axis ji packs coordinates into 2 bits, and its extent is 4, with one number more for positions that hold nothing',
  })
  // Two of four columns are held where all are claimed.
  expect(
    build(four.replace('ji = sparse_fixed(po, 4, 4)', '$& compact'), ' packed 2', one(1, 4)),
  ).toMatchObject({
    code: 'format/claim',
  })
  expect(build(root.text, ' packed 1', one(9, 1))).toMatchObject({
    code: 'format/packed',
    message: 'axis io packs coordinates into 1 bits, and its extent is 5',
  })
  expect(refusal(() => written(format(root.text, ' packed 3')))).toMatchObject({
    code: 'format/packed',
    expected: '1, 2, 4, 8 or 16 bits',
  })
  const axes = (j: string): string => `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = ${j}
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  iterate s [i, j] as SR { y[i] += A[i, j] }
}`
  expect(refusal(() => parseProgram(axes('sparse_variable(i, n) packed n')))).toMatchObject({
    code: 'check/packed',
    message: 'the coordinates of j are packed into fields of no constant size',
  })
  expect(refusal(() => parseProgram(axes('sparse_variable(i, n) packed 5')))).toMatchObject({
    code: 'check/packed',
    message: 'the coordinates of j are packed into 5 bits',
  })
  expect(refusal(() => parseProgram(axes('dense_variable(i, n) packed 8')))).toMatchObject({
    code: 'parse/packed',
  })
  expect(refusal(() => packIndices([0, 4], 2)).message).toMatch(/position 1/)
})

test('ready-made words must match the number of positions, with values in range', () => {
  const [panels] = FORMATS
  const to = written(format(panels.text, ' packed 2'))
  const from = (indices: Int32Array) =>
    partsFromArrays(
      to,
      [
        {
          tensor: {
            kind: 'stored',
            shape: [1, 1, 3],
            arrays: { ji: { indptr: Int32Array.of(0, 2), indices } },
            values: Int32Array.of(5, 6),
            dtype: 'i32',
          },
          tables: new Map(),
        },
      ],
      givenFor([1, 3]),
    )
  expect(lines(partsToCoords(from(packIndices([0, 2], 2))))).toEqual(['0 0: 5', '0 2: 6'])
  expect(refusal(() => from(Int32Array.of(0, 2))).code).toBe('bind/indices-length')
  expect(refusal(() => from(packIndices([0, 3], 2)))).toMatchObject({ code: 'bind/index-range' })
  expect(refusal(() => from(packIndices([2, 0], 2)))).toMatchObject({ code: 'bind/unsorted' })
})
