/** Parts that never have a row in common, merged: each row is stored by the one that has it, empty ones included. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print3 } from '../../src/ir/print/print-stage2.ts'
import { type Device, devices, type Kernel } from '../../src/node.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'

const TEXT = `
format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format sorted over (i, j) {
  sort i by -count(j by i) -> (place, row)
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (place[i], j)
  inverse (io, jo) -> (row[io], jo)
}
format even(w: size) over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_fixed(io, j, w)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format slices over (i, j) {
  axis so = dense_fixed(ceildiv(i, 2))
  axis k  = dense_variable(so, j)
  axis ii = dense_fixed(k, 2)
  axis jo = sparse_fixed(ii, j, 1)
  map (i, j) -> (i / 2, rank(j by i), i % 2, j)
  inverse (so, k, ii, jo) -> (so * 2 + ii, jo)
}
format listed over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format columns over (i, j) {
  axis jo = dense_fixed(j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
format listed_columns over (i, j) {
  axis jo = sparse_variable(j)
  axis io = sparse_variable(jo, i)
  map (i, j) -> (j, i)
  inverse (jo, io) -> (io, jo)
}
format by_rows(s) over (i, j) {
  part short = rows where (count(j by i) <= s)
  part long = listed
}
format by_sorted(s) over (i, j) {
  part short = sorted where (count(j by i) <= s)
  part long = listed
}
format by_even(s) over (i, j) {
  part short = even where (count(j by i) <= s)
  part long = listed
}
format by_slices(s) over (i, j) {
  part short = slices where (count(j by i) <= s)
  part long = listed
}
format by_three(s) over (i, j) {
  part short = rows where (count(j by i) <= s)
  part long = listed where (count(j by i) > 2 * s)
  part middle = listed
}
format by_number(s) over (i, j) {
  part short = rows where (i % 3 < s)
  part long = listed
}
format by_column(s) over (i, j) {
  part short = columns where (count(i by j) <= s)
  part long = listed_columns
}
format dense_rows over (i, j, k) {
  axis io = dense_fixed(i)
  axis jo = dense_fixed(io, j)
  axis ko = sparse_variable(jo, k)
  map (i, j, k) -> (i, j, k)
  inverse (io, jo, ko) -> (io, jo, ko)
}
format listed_rows over (i, j, k) {
  axis io = sparse_variable(i)
  axis jo = dense_fixed(io, j)
  axis ko = sparse_variable(jo, k)
  map (i, j, k) -> (i, j, k)
  inverse (io, jo, ko) -> (io, jo, ko)
}
format by_second over (i, j, k) {
  part short = dense_rows where (j < 2)
  part long = listed_rows
}
kernel product(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(3)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
kernel highest(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer C: f32[i] out
  iterate sum [i, j] as SR { C[i] max= A[i, j] }
}
kernel several(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer L: f32[i] out
  buffer C: f32[i] out
  buffer Q: f32[i] out
  iterate sum [i, j] as SR { L[i] min= A[i, j]; C[i] += A[i, j]; Q[i] max= A[i, j] * 2 }
}
kernel down(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer C: f32[jd] out
  iterate sum [i, j] as RS { C[j] += A[i, j] }
}
kernel later(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(3)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS where (i > 1) { C[i, f] += A[i, j] * B[j, f] }
}
kernel cube(m: size, n: size, p: size) {
  axis i = dense_fixed(m)
  axis j = dense_fixed(i, n)
  axis jd = dense_fixed(n)
  axis k = sparse_variable(j, p)
  buffer A: f32[i, j, k] in
  buffer C: f32[i, jd] out
  iterate sum [i, j, k] as SSR { C[i, j] += A[i, j, k] }
}`

interface Names {
  /** The loops over rows and over what is in one, of the part that has them all and of one that lists them. */
  readonly all: string
  readonly held: string
  readonly listed: string
  readonly long: string
}

/** Loops of both parts on blocks and threads, sums in registers, over threads, or as they come. */
const WAYS: Readonly<Record<string, (names: Names) => string>> = {
  plain: ({ all, listed }) => `bind ${all} to block.x, ${listed} to block.x`,
  cached: ({ all, listed }) => `
    split ${all} by 2 -> (so, si); bind so to block.x, si to thread.y; cache_write C at si in register
    bind ${listed} to block.x`,
  threads: ({ all, held, listed, long }) => `
    split ${all} by 2 -> (so, si); split ${held} by 2 -> (sq, sl); reorder (so, si, sl, sq)
    bind so to block.x, si to thread.y, sl to thread.x
    split ${long} by 4 -> (lq, ll); reorder (${listed}, ll, lq); bind ${listed} to block.x, ll to thread.x`,
  rest: ({ all, listed }) => `
    split ${all} by 2 -> (so, si); bind so to block.x, si to thread.x
    split ${listed} by 2 -> (lo, li); bind lo to block.x, li to thread.x`,
}

/** The parts `short`, which has all rows, and `long` and `more`, which list theirs, in one launch. */
function merged(
  kernel: string,
  format: string,
  s: number,
  way: string,
  more: readonly string[] = [],
): Kernel {
  const [row, inner] = kernel === 'down' ? ['jo', 'io'] : ['io', 'jo']
  const names: Names = {
    all: format === 'by_slices' ? 'so_short' : `${row}_short`,
    held: `${inner}_short`,
    listed: `${row}_long`,
    long: `${inner}_long`,
  }
  const others = more.map((p) => `bind ${row}_${p} to block.x`).join('; ')
  const nests = ['long', ...more, 'short'].map((p) => `sum_${p}`).join(', ')
  const use = format === 'by_second' ? format : `${format}(${s})`
  const steps = `A as ${use}; ${others}\n${WAYS[way]!(names)}\nmerge (${nests})`
  return parseProgram(`${TEXT}\nschedule ${kernel}.run { ${steps} }`).kernel(kernel).schedule('run')
}

const numbers = (n: number, seed: number): Float32Array =>
  Float32Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)

function inputsFor(kernel: string, rows: readonly number[], seed: number): Inputs {
  const n = Math.max(1, ...rows)
  const i = rows.flatMap((l, r) => Array<number>(l).fill(r))
  const j = rows.flatMap((l) => Array.from({ length: l }, (_, k) => (k * 3) % n))
  const distinct = new Set<number>()
  const kept = i.map((r, k) => !distinct.has(r * n + j[k]!) && distinct.add(r * n + j[k]!))
  const [at, of] = [i.filter((_, k) => kept[k]), j.filter((_, k) => kept[k])]
  const A = coords([rows.length, n], [at, of], numbers(at.length, seed))
  if (kernel === 'cube') {
    const third = at.map((r, k) => (r + k) % 3)
    return { tensors: { A: coords([rows.length, n, 3], [at, of, third], numbers(at.length, seed)) } }
  }
  if (kernel !== 'product' && kernel !== 'later') return { tensors: { A } }
  return { tensors: { A, B: dense([n, 3], numbers(3 * n, seed + 1)) } }
}

const fills = (k: Kernel): number => k.compilation.loops.body.filter((s) => s.kind === 'fill').length
const launches = (k: Kernel): number => k.compilation.plan.steps.filter((s) => s.kind === 'launch').length

/** Kernels and formats of which every way stores each row once. */
const CASES: readonly (readonly [string, string, ...string[]])[] = [
  ['product', 'by_rows'],
  ['product', 'by_sorted'],
  ['product', 'by_even'],
  ['product', 'by_number'],
  ['highest', 'by_rows'],
  ['highest', 'by_sorted'],
  ['several', 'by_rows'],
  ['several', 'by_sorted'],
  ['several', 'by_number'],
  ['down', 'by_column'],
]

const rowLengths = fc.array(fc.oneof(fc.constant(0), fc.nat(3), fc.integer({ min: 4, max: 9 })), {
  minLength: 1,
  maxLength: 9,
})

function onStages(k: Kernel, inputs: Inputs): void {
  const c = k.compilation
  const bound = bindInputs(c.kernel, inputs)
  agreeOnStages(c, bound, reference(c.source, referenceInputs(c.source, bound)).buffers)
}

describe('every stage agrees with the reference, on NaN-filled memory', () => {
  test('one launch without zero-fill', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...CASES),
        fc.constantFrom('plain', 'cached', 'threads', 'rest'),
        fc.constantFrom(0, 1, 2, 3),
        rowLengths,
        fc.nat(),
        ([kernel, format], way, s, rows, seed) => {
          const k = merged(kernel, format, s, way)
          expect([fills(k), launches(k)]).toEqual([0, 1])
          onStages(k, inputsFor(kernel, rows, seed))
        },
      ),
      { numRuns: runs(6) },
    )
  })

  test('three parts, two with row lists', () => {
    fc.assert(
      fc.property(
        fc.constantFrom('product', 'highest'),
        fc.constantFrom('plain', 'cached', 'rest'),
        fc.constantFrom(1, 2),
        rowLengths,
        fc.nat(),
        (kernel, way, s, rows, seed) => {
          const k = merged(kernel, 'by_three', s, way, ['middle'])
          expect([fills(k), launches(k)]).toEqual([0, 1])
          onStages(k, inputsFor(kernel, rows, seed))
        },
      ),
      { numRuns: runs(6) },
    )
  })

  // Slices hold rows of which some are empty; rows that the kernel leaves out nobody stores; a row of the cube may be in
  // both parts, by column.
  test.each([
    ['product', 'by_slices', 'plain'],
    ['later', 'by_rows', 'plain'],
    ['later', 'by_sorted', 'rest'],
    ['cube', 'by_second', 'plain'],
  ])('rows of unknown parts are zero-filled first: %s as %s', (kernel, format, way) => {
    fc.assert(
      fc.property(rowLengths, fc.nat(), (rows, seed) =>
        onStages(merged(kernel, format, 2, way), inputsFor(kernel, rows, seed)),
      ),
      { numRuns: runs(3) },
    )
  })
})

test('zero-fill if a row may be in both parts, or in none', () => {
  expect(fills(merged('cube', 'by_second', 2, 'plain'))).toBe(1)
  expect(fills(merged('later', 'by_rows', 2, 'plain'))).toBe(1)
})

test('the row of a reduction over lanes is loaded before the loop, not after the exchange', () => {
  const { compilation } = merged('highest', 'by_sorted', 2, 'threads')
  const lines = print3(compilation.planFor({ lanes: 32, together: true })).split('\n')
  const places = ['= row_short[', 'for sq in', 'C[row_short_at[0]] = C_share'].map((text) =>
    lines.findIndex((l) => l.includes(text)),
  )
  expect(places[0]).toBeGreaterThan(0)
  expect(places).toEqual([...places].sort((a, b) => a - b))
})

describe('devices', () => {
  const present: Device[] = []
  beforeAll(async () => void present.push(await devices.cpu(), await devices.webgpu()))
  afterAll(async () => {
    for (const d of present) await d.dispose()
  })

  test.each([0, 1])('agree with the reference (%i)', async (device) => {
    for (const [kernel, format, way] of [
      ['product', 'by_sorted', 'threads'],
      ['product', 'by_sorted', 'cached'],
      ['highest', 'by_rows', 'threads'],
      ['down', 'by_column', 'rest'],
    ] as const) {
      const c = merged(kernel, format, 2, way).compilation
      for (const rows of [
        [0, 0],
        [5, 0, 1, 9, 0, 2, 2, 3],
        [1, 1, 1],
        [8, 8, 0],
      ]) {
        const bound = bindInputs(c.kernel, inputsFor(kernel, rows, rows.length))
        const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
        await agreeOnDevice(present[device]!, c, bound, expected)
      }
    }
  })
})
