/**
 * Blocks that are held whole, claimed `full` or chosen by their density, take statements under which a fill would show: max and
 * exp compute what the reference does, at the matrix's edges too; a tensor that breaks the claim is refused with the coordinate.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import type { Tensor } from '../../src/storage/tensor.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll, agreeOnDevice, agreeOnStages, verifiedOn } from './agree.ts'
import { parameters } from './property-cases.ts'

const AXES = `axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in`
const text = (as: string): string => `
kernel peak(m: size, n: size) {
  ${AXES}
  buffer C: f32[i] out
  buffer Z: f32[i] out
  iterate highest [i, j] as SR { C[i] max= A[i, j] }
  iterate positive [i, j] as SR { Z[i] += select(exp(A[i, j]) > 0.5, 1, 0) }
}
kernel softmax(m: size, n: size) {
  ${AXES}
  buffer M: f32[i] local
  buffer Z: f32[i] local
  buffer P: f32[i, j] out
  iterate normalise [i] as S {
    iterate highest [j] as R { M[i] max= A[i, j] }
    iterate total [j] as R { Z[i] += exp(A[i, j] - max(M[i], -3.4e+38)) }
    iterate scale [j] as S { P[i, j] = exp(A[i, j] - max(M[i], -3.4e+38)) / Z[i] }
  }
}
format bsr(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b)
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format bsr_full(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b) full
  axis ji = dense_fixed(b) full
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format sorted_full(b) over (i, j) {
  sort i by -count(j by i / b) -> (place, row)
  axis jo = sparse_variable(ceildiv(j, b))
  axis io = sparse_variable(jo, ceildiv(i, b))
  axis ji = dense_fixed(io, b) full
  axis ii = dense_fixed(ji, b) full
  map (i, j) -> (j / b, place[i] / b, j % b, place[i] % b)
  inverse (jo, io, ji, ii) -> (row[io * b + ii], jo * b + ji)
}
format columns_full(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, j)
  axis ii = dense_fixed(jo, b) full
  map (i, j) -> (i / b, j, i % b)
  inverse (io, jo, ii) -> (io * b + ii, jo)
}
format rows_full(b) over (i, j) {
  axis io = dense_fixed(ceildiv(i, b))
  axis jo = sparse_variable(io, ceildiv(j, b))
  axis ii = dense_fixed(b)
  axis ji = dense_fixed(b) full
  map (i, j) -> (i / b, j / b, i % b, j % b)
  inverse (io, jo, ii, ji) -> (io * b + ii, jo * b + ji)
}
format csr over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format moved over (a, b, c, d) {
  axis k = dense_fixed(a)
  axis l = sparse_variable(k, b)
  axis q = dense_fixed(c)
  axis p = dense_fixed(d)
  map (a, b, c, d) -> (a, b, c, d)
  inverse (k, l, q, p) -> (k, l, q, p)
}
schedule peak.s { A as ${as} }
schedule softmax.s { A as ${as} }
schedule peak.twice {
  A as bsr_full(4)
  A as moved
}
`
const CLAIMED = ['bsr_full', 'sorted_full', 'columns_full'] as const

let webgpu: Device
beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(() => webgpu.dispose())

interface Blocked {
  readonly m: number
  readonly n: number
  readonly b: number
  readonly held: readonly (readonly [number, number])[]
  /** An element of a block whose others are held. */
  readonly without: readonly [number, number] | null
}

/** Some blocks, whole as far as they lie in the matrix; of one an element may be missing. */
function blocked(c: Choices, rows: boolean): Blocked {
  const [m, n, b] = [1 + c.below(9), 1 + c.below(9), c.pick([4, 2, 3])]
  const wide = rows ? 1 : b
  const blocks: (readonly [number, number])[][] = []
  for (let io = 0; io * b < m; io++)
    for (let jo = 0; jo * wide < n; jo++) {
      if (!c.chance(45)) continue
      const block: (readonly [number, number])[] = []
      for (let i = io * b; i < Math.min(m, io * b + b); i++)
        for (let j = jo * wide; j < Math.min(n, jo * wide + wide); j++) block.push([i, j])
      blocks.push(block)
    }
  const broken = blocks.filter((block) => block.length > 1)
  const without = broken.length > 0 && c.chance(30) ? c.pick(c.pick(broken)) : null
  const held = blocks
    .flat()
    .filter((e) => e !== without)
    .sort((x, y) => x[0] - y[0] || x[1] - y[1])
  return { m, n, b, held, without }
}

const tensorOf = (c: Choices, { m, n, held }: Blocked): Tensor => ({
  kind: 'coords',
  shape: [m, n],
  coords: [Int32Array.from(held, ([i]) => i), Int32Array.from(held, ([, j]) => j)],
  // Below the fill, so that one that is visited shows; some equal to it.
  values: Float32Array.from(held, () => c.pick([-3, -2, -1, -4, 0, 2])),
  dtype: 'f32',
})

/** Each is made, and its stages verified, once. */
const compiled = new Map<string, Compilation>()

function compile(as: string, kernel: string): Compilation {
  const key = `${kernel} ${as}`
  const made = compiled.get(key) ?? parseProgram(text(as)).kernel(kernel).schedule('s').compilation
  compiled.set(key, made)
  return made
}

async function agree(as: string, A: Tensor, { m, n }: Blocked, onWebGpu: boolean): Promise<void> {
  const inputs = { tensors: { A }, params: { m, n } }
  const peak = compile(as, 'peak')
  const bound = bindInputs(peak.kernel, inputs)
  const expected = reference(peak.source, referenceInputs(peak.source, bound)).buffers
  agreeOnStages(peak, bound, expected)
  const devices = onWebGpu ? [createCpuDevice(), webgpu] : [createCpuDevice()]
  for (const device of devices) {
    await agreeOnDevice(device, peak, bound, expected)
    const softmax = compile(as, 'softmax')
    await verifiedOn(device, softmax, bindInputs(softmax.kernel, inputs))
  }
}

test('formats that declare `full`', async () => {
  let refused = 0
  await fc.assert(
    fc.asyncProperty(fc.noBias(choiceNumbers(200)), async (choices) => {
      const c = new Choices(choices)
      const format = c.pick(CLAIMED)
      const data = blocked(c, format === 'columns_full')
      const A = tensorOf(c, data)
      const as = `${format}(${data.b})`
      // Sorting by blocks keeps them together only where they are of equal length.
      if (format === 'sorted_full' && data.m % data.b > 0) return
      if (!data.without) return agree(as, A, data, c.chance(15))
      const { m, n, without } = data
      for (const kernel of ['peak', 'softmax'])
        expect(
          refusal(() => bindInputs(compile(as, kernel).kernel, { tensors: { A }, params: { m, n } })),
        ).toMatchObject({
          code: 'format/claim',
          message: expect.stringMatching(
            `claimed full, but the tensor does not hold \\(i, j\\) = \\(${without.join(', ')}\\)$`,
          ),
        })
      refused++
    }),
    parameters(120),
  )
  expect(refused).toBeGreaterThan(0)
})

test('blocks that are selected by fill ratio 1', async () => {
  await fc.assert(
    fc.asyncProperty(fc.noBias(choiceNumbers(200)), async (choices) => {
      const c = new Choices(choices)
      const data = blocked(c, false)
      const { b } = data
      const where = c.pick([
        `density(${b}) >= 1`,
        `count(i, j by i / ${b}, j / ${b}) == ${b * b}`,
        `density(${b}) >= 1 and count(j by i / ${b}, j / ${b}) > 1`,
      ])
      await agree(`bsr(${b}) where (${where}) + csr`, tensorOf(c, data), data, c.chance(15))
    }),
    parameters(20),
  )
})

test.each([
  'bsr(4) where (density(4) >= 0.9) + csr',
  'bsr(4) where (density(2) >= 1) + csr',
  'bsr(4) where (density(4) >= 1 and j > 2) + csr',
  'bsr(4) where (count(i by i / 4, j / 4) >= 16) + csr',
  'bsr(4) where (count(i, j by i / 4) >= 16) + csr',
  'rows_full(4)',
])('%s may store part of a block', (as) => {
  expect(refusal(() => compile(as, 'peak')).code).toBe('schedule/format-padding')
})

const edges = [0, 1, 2, 3, 4].flatMap((i) => [0, 1, 2, 3, 4].map((j) => [i, j] as const))

/** All of a 5 × 5 matrix in the blocks' order; beyond its edges NaN. */
const blocks = new Float32Array(64).fill(Number.NaN)
for (const [i, j] of edges)
  blocks[((i >> 2) * 2 + (j >> 2)) * 16 + (i & 3) * 4 + (j & 3)] = i === j ? 0 : -1 - i - j
const jo = { indptr: Int32Array.of(0, 2, 4), indices: Int32Array.of(0, 1, 0, 1) }

const readyMade = (schedule: string, axis: string) => {
  const c = parseProgram(text('bsr_full(4)')).kernel('peak').schedule(schedule).compilation
  const A: Tensor = {
    kind: 'stored',
    shape: [2, 2, 4, 4],
    arrays: { [axis]: jo },
    values: blocks,
    dtype: 'f32',
  }
  return { c, inputs: { tensors: { A }, params: { m: 5, n: 5 } } }
}

test('zeros in ready-made blocks are elements, and values beyond the edge are ignored', async () => {
  const { c, inputs } = readyMade('s', 'jo')
  await agreeOnAll(c, inputs)
  const { C } = reference(c.source, referenceInputs(c.source, bindInputs(c.kernel, inputs))).buffers
  expect([...C!.values]).toEqual([0, 0, 0, 0, 0])
})

const lacking = 'axes ii, ji of bsr_full(4) are claimed full, but the tensor does not hold (i, j) = (0, 0)'

test('ready-made blocks of a later format without the claim omit zeros', () => {
  const { c, inputs } = readyMade('twice', 'l')
  expect(refusal(() => bindInputs(c.kernel, inputs)).message).toBe(lacking)
})

test('a later format keeps the claim for its tensor', () => {
  const A: Tensor = {
    kind: 'coords',
    shape: [5, 5],
    coords: [0, 1].map((d) => Int32Array.from(edges.slice(1), (e) => e[d]!)),
    values: null,
    dtype: 'f32',
  }
  const { kernel } = parseProgram(text('csr')).kernel('peak').schedule('twice').compilation
  expect(refusal(() => bindInputs(kernel, { tensors: { A }, params: { m: 5, n: 5 } })).message).toBe(lacking)
})
