/** Steps that meet in one nest, in an order that only works where each leaves the other enough. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { devices } from '../../src/node.ts'
import { replay } from '../../src/schedule/state/state.ts'
import { columnSplit } from '../support/stage2-samples.ts'

test('partial results of a split row are in registers only, with the tail', () => {
  const { kernel } = replay(columnSplit, [
    { kind: 'rfactor', loop: 'ji', into: 'yp' },
    { kind: 'cache_write', buffer: 'yp', at: 'i', scope: 'register', into: 'own' },
  ])
  expect(printBody(kernel.body)).toBe(`\
for i in 0..m
  alloc own: f32[32] register
  for jo in 0..ceildiv(j_indptr[i + 1] - j_indptr[i], 32)  reduce
    for ji in 0..32  where jo * 32 + ji < j_indptr[i + 1] - j_indptr[i]
      own[ji] += A[j_indptr[i] + (jo * 32 + ji)]  init
  for ji_2 (yp.ji) in 0..32  reduce
    y[i] += own[ji_2]  init`)
  expect(kernel.buffers.map((b) => b.name)).not.toContain('yp')
})

test('a loop that is unrolled stays unrolled where its partial results are added', () => {
  const text = (mode: string) => `kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    axis f = dense_fixed(4)
    buffer X: f32[i, j, f] in
    buffer y: f32[i, f] out
    iterate s [i, j, f] as SRS { y[i, f] += X[i, j, f] }
  }
  schedule k.s { ${mode} f  split j by 4 -> (jo, ji)  rfactor ji }`
  const loops = (mode: string) =>
    printBody(parseProgram(text(mode)).kernel().schedule('s').compilation.loops.body)
  expect(loops('unroll')).toContain('for f_2 (y_partial.f) in 0..4  @unroll')
  expect(() => loops('vectorize')).toThrow('the vector loop f has to stay innermost')
})

test('elements of neighbouring rows are copied cooperatively, row by row', () => {
  const { loops } = parseProgram(`kernel rows(m: size) {
    axis i = dense_fixed(m)
    axis r = dense_fixed(4)
    axis f = dense_fixed(8)
    buffer X: i32[i, f] in
    buffer y: i32[i, r] out
    iterate sum [i, r, f] as SSR { y[i, r] += X[i, f] }
  }
  schedule rows.tiles {
    split i by 8 -> (io, it)
    bind io to block.x, it to thread.x
    cache_read X at it in shared -> Xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`    for it_2 (Xs.it) in 0..8  where io * 8 + it_2 < m
      for f_2 (Xs.f) in 0..8
        Xs[it_2, f_2] = X[io * 8 + it_2, f_2]
`)
})

test('only the condition that padding covers is removed', () => {
  const { loops } = parseProgram(`kernel twice(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis c = dense_fixed(n)
    axis f = dense_fixed(d)
    buffer x: i32[c] in
    buffer y: i32[i] out
    iterate sum [i, c, f] as SRR { y[i] += x[c] }
  }
  schedule twice.tiles {
    split c by 3 -> (co, ci)
    split f by 3 -> (fo, fi)
    reorder (i, co, fo, ci, fi)
    cache_write y at i in register -> own
    cache_read x at fo in shared padded 0 -> xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`      for ci in 0..3  reduce
        for fi in 0..3  reduce  where fo * 3 + fi < d
          own[0] += xs[ci]  init`)
})

test('padding covers the elements of a tile, not values stored next to their sums', () => {
  const { loops } = parseProgram(`kernel sums(m: size) {
    axis i = dense_fixed(m)
    axis c = dense_fixed(5)
    buffer x: i32[i, c] in
    buffer y: i32[i] out
    iterate sum [i, c] as SR { y[i] += x[i, c] }
  }
  schedule sums.tiles {
    split i by 4 -> (io, ii)
    cache_write y at ii in register -> own
    cache_read x at io in shared padded 0 -> xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain('for ii in 0..4  where io * 4 + ii < m\n')
})

test('elements that are copied together are tested once, before the first of them', () => {
  const { loops } = parseProgram(`kernel rows(m: size, n: size) {
    axis i = dense_fixed(m)
    axis f = dense_fixed(n)
    buffer X: i32[i, f] in
    buffer y: i32[i] out
    iterate sum [i, f] as SR { y[i] += X[i, f] }
  }
  schedule rows.tiles {
    require n % 4 == 0
    split f by 8 -> (fo, fi)
    cache_read X at fo in shared by 4 -> Xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`\
    for fi_4 (Xs.fi) in 0..2  where fo * 8 + fi_4 * 4 < n
      for fi_3 (Xs.fi) in 0..4  @vectorize
        Xs[fi_4 * 4 + fi_3] = X[i, fo * 8 + (fi_4 * 4 + fi_3)]
`)
})

test('a thread with its own bound copies alone', () => {
  const { loops } = parseProgram(`kernel rows(m: size) {
    axis i = dense_fixed(m)
    axis f = dense_fixed(4)
    buffer Q: i32[i] in
    buffer P: i32[i] local
    buffer X: i32[i, f] in
    buffer y: i32[i] out
    iterate each [i] as S {
      P[i] = 3 - Q[i]
      iterate sum [f] as R where (f < P[i]) { y[i] += X[i, f] }
    }
  }
  schedule rows.tiles {
    split each.i by 8 -> (io, ii)
    bind io to block.x, ii to thread.x
    cache_read X at ii in shared -> Xs
  }`)
    .kernel()
    .schedule('tiles').compilation
  expect(printBody(loops.body)).toContain(`    P[io * 8 + ii] = 3 - Q[io * 8 + ii]
    alloc Xs: i32[8, 4] shared
    for f_2 (Xs.f) in 0..4  reduce  where f_2 < P[io * 8 + ii]
      Xs[ii, f_2] = X[io * 8 + ii, f_2]
`)
})

test('an element without indices is cached at a loop', async () => {
  const text = `kernel total(n: size) {
    axis i = dense_fixed(n)
    axis j = dense_fixed(8)
    buffer X: f32[i, j] in
    buffer y: f32[] out
    iterate add [i, j] as RR { y[] += X[i, j] }
  }
  schedule total.outer { cache_write y at i in register }
  schedule total.inner { split i by 4 -> (io, ii); cache_write y at io in register }`
  const program = parseProgram(text)
  const cpu = await devices.cpu()
  for (const name of ['outer', 'inner']) {
    const built = await program.kernel().schedule(name).build(cpu)
    const binding = await built.bind({ n: 13 }, { seed: 1 })
    expect((await binding.verify()).verdict).toBe('agrees')
    expect((await binding.get('y')).values![0]).not.toBe(0)
  }
})
