/**
 * Positions that stand for no element because the index of a list, or of a sort's table, lies before its beginning or past its
 * end: maps are shifted, turned round and padded on both sides. Whatever ready-made arrays have there, it takes no part, and what
 * it alone would be multiplied by is not looked at.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { convertTensor, partsToCoords, type StoredPart } from '../../src/storage/entries/stored-parts.ts'
import { partsFromArrays } from '../../src/storage/ready/ready-parts.ts'
import type { CoordTensor, StoredTensor } from '../../src/storage/tensor.ts'
import { givenFor, matrices, written } from '../formats/user-formats.ts'
import { costly } from '../support/cases.ts'
import { agreeOnDevice, agreeOnStages, type Expected } from './agree.ts'

const KERNELS = `
kernel rows(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[x] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] += A[i, j] * B[j] }
}
kernel columns(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(m)
  axis y = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[x] in
  buffer C: f32[y] out
  iterate sum [i, j] as RS { C[j] += A[i, j] * B[i] }
}
kernel most(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[x] in
  buffer C: f32[i] out
  iterate most [i, j] as SR { C[i] max= A[i, j] * B[j] }
}
kernel scaled(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis x = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[x] in
  buffer D: f32[i, j] out
  iterate each [i, j] as SS { D[i, j] = A[i, j] * B[j] }
}
`

/** Slots before the first position and after the last, and whether positions run backwards. */
interface Shift {
  readonly before: number
  readonly after: number
  readonly turned: boolean
  readonly mask: boolean
}

const WIDTH = 2

/** A position in a list of `WIDTH`, and the index that goes back. */
const inList = ({ before, after, turned }: Shift, position: string, q: string) =>
  turned
    ? { to: `${WIDTH - 1 + after} - ${position}`, back: `${WIDTH - 1 + after} - ${q}` }
    : { to: `${position} + ${before}`, back: `${q} - ${before}` }

/** The parts of a place in blocks of two, and the index that goes back. */
const inBlocks = ({ before, turned }: Shift, place: string, outer: string, inner: string) => {
  const at = `(${place} + ${before})`
  return turned
    ? { to: [`${at} / 2`, `1 - ${at} % 2`], back: `${outer} * 2 + 1 - ${inner} - ${before}` }
    : { to: [`${at} / 2`, `${at} % 2`], back: `${outer} * 2 + ${inner} - ${before}` }
}

const FORMATS: Readonly<Record<string, (s: Shift) => string>> = {
  'a list for each row': (s) => {
    const p = inList(s, 'position(jo)', 'q')
    return `
  axis io = dense_fixed(i)
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, ${WIDTH})
  axis q = dense_fixed(go, jo + ${s.before + s.after})
  map (i, j) -> (i, rank(j by i) / ${WIDTH}, j, ${p.to})
  inverse (io, go, q) -> (io, jo[${p.back}])`
  },
  'lists of panels, in blocks': (s) => {
    const p = inList(s, 'position(jo)', 'q')
    return `
  axis io = dense_fixed(ceildiv(i, 2))
  axis go = sparse_variable(io, ceildiv(j, 3))
  list jo = sparse_fixed(go, 3, 3)
  axis q = dense_fixed(go, jo + ${s.before + s.after + 1})
  axis ii = dense_fixed(q, 2)
  map (i, j) -> (i / 2, j / 3, j % 3, ${s.turned ? `${p.to} + 1` : p.to}, i % 2)
  inverse (io, go, q, ii) -> (io * 2 + ii, go * 3 + jo[${s.turned ? `${p.back} + 1` : p.back}])`
  },
  'blocks of sorted rows': (s) => {
    const p = inBlocks(s, 'place[i]', 'io', 'ii')
    return `
  sort i by i % 3 -> (place, row)
  axis io = dense_fixed(ceildiv(i + ${s.before + s.after}, 2))
  axis jo = sparse_variable(io, j)
  axis ii = dense_fixed(2)
  map (i, j) -> (${p.to[0]}, j, ${p.to[1]})
  inverse (io, jo, ii) -> (row[${p.back}], jo)`
  },
  'blocks of sorted columns': (s) => {
    const p = inBlocks(s, 'place[j]', 'jo', 'jj')
    return `
  sort j by -count(i by j) -> (place, col)
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, ceildiv(j + ${s.before + s.after}, 2))
  axis jj = dense_fixed(jo, 2)
  map (i, j) -> (i, ${p.to[0]}, ${p.to[1]})
  inverse (io, jo, jj) -> (io, col[${p.back}])`
  },
  'sorted tiles of sorted columns': (s) => `
  sort j by -count(i by j) -> (place, col)
  axis to = dense_fixed(ceildiv(j, 2) + ${s.before + s.after})
  sort to by to % 2 -> (tp, tc)
  axis io = dense_fixed(to, i)
  axis ji = dense_fixed(io, 2)
  map (i, j) -> (tp[place[j] / 2 + ${s.before}], i, place[j] % 2)
  inverse (to, io, ji) -> (io, col[(tc[to] - ${s.before}) * 2 + ji])`,
  'sorted rows with lists': (s) => {
    const p = inList(s, 'position(jo)', 'q')
    const b = inBlocks(s, 'place[i]', 'io', 'ii')
    return `
  sort i by -count(j by i) -> (place, row)
  axis io = dense_fixed(ceildiv(i + ${s.before + s.after}, 2))
  axis go = dense_variable(io, j)
  list jo = sparse_fixed(go, j, ${WIDTH})
  axis ii = dense_fixed(go, 2)
  axis q = dense_fixed(ii, jo + ${s.before + s.after})
  map (i, j) -> (${b.to[0]}, rank(j by ${b.to[0]}) / ${WIDTH}, j, ${b.to[1]}, ${p.to})
  inverse (io, go, ii, q) -> (row[${b.back}], jo[${p.back}])`
  },
}

const shifts: fc.Arbitrary<Shift> = fc.record({
  before: fc.integer({ min: 0, max: 2 }),
  after: fc.integer({ min: 0, max: 2 }),
  turned: fc.boolean(),
  mask: fc.boolean(),
})

const textOf = (format: string, s: Shift): string =>
  `format shifted over (i, j) {${FORMATS[format]!(s)}${s.mask ? '\n  mask held' : ''}\n}\n`

const arraysOf = ({ storage }: StoredPart, values: Float32Array): StoredTensor => ({
  kind: 'stored',
  shape: storage.axes.map((a) => storage.levels.get(a.name)!.extent),
  arrays: Object.fromEntries(
    [...storage.levels].map(([name, { indptr, indices }]) => [
      name,
      { ...(indptr && { indptr }), ...(indices && { indices }) },
    ]),
  ),
  values,
  dtype: 'f32',
})

/** Each coordinate once; none is 0. */
function once(t: CoordTensor): CoordTensor {
  const n = t.coords[0]!.length
  const kept = [...new Map(Array.from({ length: n }, (_, e) => [`${t.coords.map((c) => c[e])}`, e])).values()]
  return {
    ...t,
    coords: t.coords.map((c) => Int32Array.from(kept, (e) => c[e]!)),
    values: Float32Array.from(kept, (_, k) => 1 + (k % 7)),
    dtype: 'f32',
  }
}

interface Case {
  readonly c: Compilation
  readonly inputs: Inputs
  /** Slots that stand for no coordinate. */
  readonly none: number
}

/** What is ready-made, with `junk` in slots that stand for no coordinate, and NaN for what only these would be multiplied by. */
function casesOf(format: string, shift: Shift, A: CoordTensor, junk: number): readonly Case[] {
  const text = textOf(format, shift)
  const to = written(text)
  const given = givenFor(A.shape)
  const [part] = convertTensor(A, to, given).parts
  const numbered = Float32Array.from(part!.values, (_, q) => q + 1)
  const all = { ...part!, tables: new Map([...part!.tables].filter(([name]) => name !== 'held')) }
  const open = written(textOf(format, { ...shift, mask: false }))
  const standing = partsToCoords(
    partsFromArrays(open, [{ tensor: arraysOf(all, numbered), tables: all.tables }], given),
  )
  const own = new Set(Array.from(standing.values!, Number))
  const values = Float32Array.from(part!.values, (x, q) => (own.has(q + 1) ? Number(x) : junk))
  const tables = Object.fromEntries(
    [...part!.tables].map(([name, t]) => [
      name,
      { kind: 'dense', shape: [t.length], values: t, dtype: 'i32' } as const,
    ]),
  )
  const [m, n] = A.shape as [number, number]
  const parallel =
    format === 'blocks of sorted rows' && !shift.turned
      ? '\n  reorder (io, ii, jo)\n  bind io to block.x, ii to thread.x'
      : ''
  const kernels = shift.mask ? ['rows', 'columns', 'scaled', 'most'] : ['rows', 'columns', 'scaled']
  const program = parseProgram(
    `${KERNELS}${text}${kernels.map((k) => `schedule ${k}.s { A as shifted${k === 'rows' ? parallel : ''}\n}`).join('\n')}`,
  )
  return kernels.map((name) => {
    const dim = name === 'columns' ? 0 : 1
    const visited = new Set(standing.coords[dim])
    const factors = Float32Array.from({ length: [m, n][dim]! }, (_, k) =>
      visited.has(k) ? 1 + (k % 3) : Number.NaN,
    )
    const B = { kind: 'dense', shape: [factors.length], values: factors, dtype: 'f32' } as const
    return {
      c: program.kernel(name).schedule('s').compilation,
      inputs: { tensors: { A: arraysOf(part!, values), ...tables, B }, params: { m, n } },
      none: values.length - own.size,
    }
  })
}

async function agree(device: Device, { c, inputs }: Case, stages: boolean): Promise<void> {
  const bound = bindInputs(c.kernel, inputs)
  const expected: Expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  if (stages) agreeOnStages(c, bound, expected)
  await agreeOnDevice(device, c, bound, expected)
}

const drawn = fc.tuple(shifts, matrices.map(once), fc.constantFrom(7, Number.NaN, Number.POSITIVE_INFINITY))

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

describe.each(Object.keys(FORMATS))('%s', (format) => {
  test('elements are kept under any shift', () => {
    fc.assert(
      fc.property(drawn, ([shift, A]) => {
        const lines = (t: CoordTensor) =>
          [...t.values!].map((x, e) => `${t.coords.map((k) => k[e])}: ${x}`).sort()
        expect(
          lines(partsToCoords(convertTensor(A, written(textOf(format, shift)), givenFor(A.shape)))),
        ).toEqual(lines(A))
      }),
      { numRuns: costly(10) },
    )
  })

  test('padding slots have no effect: at all stages and on the cpu', async () => {
    const cpu = createCpuDevice()
    await fc.assert(
      fc.asyncProperty(drawn, async ([shift, A, junk]) => {
        for (const one of casesOf(format, shift, A, junk)) await agree(cpu, one, true)
      }),
      { numRuns: costly(6) },
    )
  })

  test('the same holds on WebGPU', async () => {
    await fc.assert(
      fc.asyncProperty(drawn, async ([shift, A, junk]) => {
        for (const one of casesOf(format, shift, A, junk)) await agree(webgpu, one, false)
      }),
      { numRuns: costly(2) },
    )
  })

  test('the test data have padding slots', () => {
    const cases = fc.sample(drawn, { numRuns: 20, seed: 5 })
    expect(cases.some(([shift, A, junk]) => casesOf(format, shift, A, junk)[0]!.none > 0)).toBe(true)
  })
})
