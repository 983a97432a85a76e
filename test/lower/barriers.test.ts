/** Where threads meet, and where nobody has to. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print3 } from '../../src/ir/print/print-stage2.ts'

test('a block of one thread has no barriers', () => {
  const program = parseProgram(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer M: i32[i, j] in
    buffer D: i32[i] inout
    iterate row [i] as S where (1 - D[i] > D[i]) {
      iterate least [j] as R { D[i] min= M[i, j] }
    }
  }
  schedule k.one {
    split row.i by 1 -> (io, ii)
    bind io to block.x, ii to thread.x
    cache_read M at least.j in shared
  }`)
  for (const target of ['wgsl', 'cuda'] as const) {
    const { text } = program.kernel().schedule('one').emit(target)[0]!
    expect(text).toContain('M_shared')
    expect(text).not.toMatch(/Barrier\(|__sync/)
  }
})

test('atomic updates by different reducers are in order', () => {
  const { compilation } = parseProgram(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer M: i32[i, j] in
    buffer D: i32[i, j] inout
    iterate row [i] as S {
      iterate most [j] as S { D[i, j] max= M[i, j] }
      iterate more [j] as S { D[i, j] += M[i, j] }
      iterate again [j] as S { D[i, j] += 1 }
    }
  }
  schedule k.s {
    atomic D
    split most.j by 4 -> (jo, ji)
    bind row.i to block.x, ji to thread.x
  }`)
    .kernel()
    .schedule('s')
  const body = print3(compilation.plan)
  expect(body.match(/barrier/g)).toHaveLength(1)
})

test.each([
  [1, 1],
  [3, 2],
])('iterations of a loop end with a barrier if another follows: of %i', (rounds, barriers) => {
  const program = parseProgram(`kernel k(m: size) {
    axis i = dense_fixed(m)
    axis t = dense_fixed(${rounds})
    axis j = dense_fixed(8)
    buffer X: f32[t, j] in
    buffer Y: f32[i] out
    iterate row [i, t, j] as SRR { Y[i] += X[t, j] }
  }
  schedule k.s {
    split i by 8 -> (io, ii)
    bind io to block.x, ii to thread.x
    cache_read X at t in shared
  }`)
  const { text } = program.kernel().schedule('s').emit('wgsl').at(-1)!
  expect(text.match(/Barrier\(/g)).toHaveLength(barriers)
})
