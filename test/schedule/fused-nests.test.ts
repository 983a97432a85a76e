/** Nests over formats of several parts: whole where rows are in one part each, else one iteration after the other. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { coords, type Device, devices } from '../../src/node.ts'
import { integers } from '../support/kernels.ts'
import { standard } from '../support/packaged-formats.ts'

const text = (extra = ''): string => `
format rows over (i, j) {
  axis io = dense_fixed(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format listed over (i, j) {
  axis io = sparse_variable(i)
  axis jo = sparse_variable(io, j)
  map (i, j) -> (i, j)
  inverse (io, jo) -> (io, jo)
}
format by_rows(s) over (i, j) {
  part few = rows where (count(j by i) <= s)
  part many = listed
}
format by_columns(s) over (i, j) {
  part left = rows where (j < s)
  part right = listed
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer M: f32[i] local
  buffer P: f32[i, j] out
  ${extra && 'buffer y: f32[i] out'}
  iterate each [i] as S {
    iterate peak [j] as R { M[i] max= A[i, j] }
    iterate less [j] as S { P[i, j] = A[i, j] - M[i] }
  }
  ${extra}
}
schedule k.rows { A as by_rows(2) }
schedule k.columns { A as by_columns(3) }
schedule k.threads {
  A as by_rows(2)
  split peak_few.jo_few by 4 -> (po, pt)
  split less_few.jo_few by 4 -> (lo, lt)
  cache_write M_few at io_few in register
  bind io_few to block.x, pt to thread.x, lt to thread.x
  split peak_many.jo_many by 4 -> (qo, qt)
  split less_many.jo_many by 4 -> (no, nt)
  cache_write M_many at io_many in register
  bind io_many to block.x, qt to thread.x, nt to thread.x
  merge (each_many, each_few)
}
`
const plain = parseProgram(text(), 'k.spt').kernel()
const shared = parseProgram(text('iterate last [i] as S { y[i] = M[i] }'), 'k.spt').kernel()
const locals = (kernel: typeof plain): string[] =>
  kernel.compilation.kernel.buffers.filter((b) => b.role === 'local').map((b) => b.name)
const launches = (kernel: typeof plain): number =>
  kernel.compilation.plan.steps.filter((s) => s.kind === 'launch').length

test('rows in one part each: a nest and locals for each part', () => {
  expect(locals(plain.schedule('rows'))).toEqual(['M_few', 'M_many'])
  expect(launches(plain.schedule('rows'))).toBe(2)
  expect(launches(plain.schedule('threads'))).toBe(1)
})

test('rows in several parts, or a shared local: one iteration after the other', () => {
  expect(locals(plain.schedule('columns'))).toEqual(['M'])
  expect(launches(plain.schedule('columns'))).toBe(4)
  expect(locals(shared.schedule('rows'))).toEqual(['M'])
  const pieces = parseProgram(`${standard('rows_ell')}
  format by_pieces(s) over (i, j) {
    part few = rows where (count(j by i) <= s)
    part many = rows_ell(2)
  }
  ${text()}`)
  expect(locals(pieces.kernel().as('A', 'by_pieces', 1))).toEqual(['M'])
})

test('rows of a permutation are visited once: a nest over rows equals one over a format', () => {
  const row = parseProgram(`${standard('by_length')}
  kernel row(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: f32[i, j] in
    buffer y: f32[i] out
    iterate each [i] as S {
      y[i] = 1
      iterate sum [j] as R { y[i] += A[i, j] }
    }
  }`)
  const loops = row.kernel().as('A', 'by_length').compilation.loops
  expect(print2(loops, { bodyOnly: true }).split('\n').slice(0, 2)).toEqual([
    'for io in 0..m',
    '  y[row[io]] = 1',
  ])
})

test('a nest without accesses to a format keeps its loops, within one with accesses', () => {
  const kernel = parseProgram(`${standard('dcsr')}
  kernel beside(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis f = dense_fixed(d)
    buffer A: f32[i, j] in
    buffer y: f32[i, f] out
    buffer z: f32[i, f] out
    iterate outer [f] as S {
      iterate one [i] as S { z[i, f] = 1 }
      iterate sum [i, j] as SR { y[i, f] += A[i, j] }
    }
  }`).kernel()
  expect(print2(kernel.as('A', 'dcsr').compilation.loops, { bodyOnly: true })).toBe(`\
fill y = 0
for f in 0..d
  for i in 0..m
    z[i, f] = 1
  for io in 0..io_count
    for jo in 0..jo_indptr[io + 1] - jo_indptr[io]  reduce
      y[io_indices[io], f] += A[jo_indptr[io] + jo]`)
})

describe.each(['cpu', 'webgpu'] as const)('on %s', (kind) => {
  let device: Device
  beforeAll(async () => {
    device = await devices[kind]()
  })
  afterAll(() => device.dispose())

  test.each([
    ['rows', plain],
    ['columns', plain],
    ['threads', plain],
    ['rows', shared],
    ['columns', shared],
  ] as const)('%s is correct', async (schedule, kernel) => {
    const lengths = [0, 1, 2, 3, 9, 0, 4, 2, 11]
    const rows = lengths.flatMap((l, i) => Array<number>(l).fill(i))
    const columns = lengths.flatMap((l) => Array.from({ length: l }, (_, k) => k))
    const A = coords([lengths.length, 12], [rows, columns], integers(rows.length, 1))
    const compiled = await kernel.schedule(schedule).build(device)
    const v = await (await compiled.bind({ A })).verify()
    expect(v.problems).toEqual([])
    expect(v.maxAbsoluteError).toBe(0)
    compiled.release()
  })
})
