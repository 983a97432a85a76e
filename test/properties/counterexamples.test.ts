/** What the properties have found, each at its smallest. */

import { describe, expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import type { Dtype } from '../../src/ir/values/dtype.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'
import { FORMATS } from '../support/program-parts.ts'
import { refusal } from '../support/refusal.ts'
import { agreeOnAll } from './agree.ts'

const kernel = (text: string): Kernel => parseProgram(`${FORMATS}\n${text}`).kernel()

const agree = (k: Kernel, inputs: Inputs): Promise<void> => agreeOnAll(k.compilation, inputs)

const sums = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis c = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer x: f32[c] in
  buffer y: f32[i] out
  iterate sum [i, j] as SR { if (j > 1) { y[i] += A[i, j] * x[j] } else { y[i] += x[j] } }
}`
const sparse = coords(
  [3, 4],
  [
    [0, 0, 2, 2, 2],
    [0, 3, 1, 2, 3],
  ],
  [1, 2, 3, 4, 5],
)
const sumInputs: Inputs = { tensors: { A: sparse, x: dense([4], [1, -2, 3, 4]) } }

test('attached axes are entered by coordinate where their parent is a sparse root', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = sparse_variable(m)
      axis j = sparse_variable(i, n)
      axis r = dense_fixed(m)
      axis at = attached(j, r)
      axis c = dense_fixed(n)
      buffer A: f32[i, j] in
      buffer y: f32[c] out
      iterate sum [r, at] as RR { y[at] += A[r, at] }
    }`),
    { tensors: { A: sparse } },
  ))

test('casts of floats to integers saturate', () =>
  agree(
    kernel(`kernel k(m: size) {
      axis i = dense_fixed(m)
      buffer x: f32[i] in
      buffer a: u32[i] out
      buffer b: i8[i] out
      iterate all [i] as S { a[i] = u32(x[i])  b[i] = i8(x[i]) }
    }`),
    { tensors: { x: dense([5], [-3.5, 300, 5e9, Number.NaN, 7.9]) } },
  ))

test('an inout target of a tuple is not reset', () =>
  agree(
    parseProgram(`monoid two(s: i32, m: i32) {
        identity (0, -2147483647)
        combine (a, b) = (a.s + b.s, max(a.m, b.m))
      }
      kernel k(m: size, n: size) {
        axis i = dense_fixed(m)
        axis f = dense_fixed(n)
        buffer x: i32[i] in
        buffer s: i32[f] inout
        buffer t: i32[f] out
        iterate sum [f, i] as SR { (s[f], t[f]) two= (x[i], x[i]) }
      }`).kernel(),
    { tensors: { x: dense([3], Int32Array.of(1, 2, 3)), s: dense([2], Int32Array.of(10, 20)) } },
  ))

test('an empty reduction in a wider type gives the identity of the buffer', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis f = dense_fixed(n)
      buffer x: i8[i] in
      buffer y: i8[f] out accumulate i32
      iterate sum [f, i] as SR { y[f] max= x[i] }
    }`),
    { tensors: { x: dense([0], new Int8Array(0)) }, params: { n: 2 } },
  ))

test('cross-thread reductions: two into one element, at the top, on a strip', () =>
  agree(kernel(sums).split('j', 2, ['jo', 'ji']).bind({ ji: 'thread.x' }), sumInputs))

test('threads that access the same elements in different iterations synchronise', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_fixed(i, n, 4)
      axis c = dense_fixed(n)
      buffer A: f32[i, j] in
      buffer y: f32[c] out
      iterate sum [i, j] as RS { y[j] += A[i, j] }
    }`)
      .split('j', 2, ['jo', 'ji'])
      .bind({ ji: 'thread.x' }),
    { tensors: { A: sparse } },
  ))

test('a shared copy of one element is made by one thread in every iteration', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis f = dense_fixed(n)
      buffer x: f32[f] in
      buffer y: f32[i, f] out
      iterate all [i, f] as SS { y[i, f] = x[f] }
    }`)
      .split('i', 4, ['io', 'ii'])
      .bind({ io: 'block.x', ii: 'thread.x' })
      .cacheRead('x', 'f', 'shared'),
    { tensors: { x: dense([3], [1, 2, 3]) }, params: { m: 6 } },
  ))

test('a copy that depends on some threads is distributed over the others, within range', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis f = dense_fixed(n)
      buffer x: f32[f] in
      buffer y: f32[i, f] out
      iterate all [i, f] as SS { y[i, f] = x[f] }
    }`)
      .split('i', 2, ['io', 'ii'])
      .bind({ io: 'block.x', ii: 'thread.y' })
      .split('f', 2, ['fo', 'fi'])
      .bind({ fi: 'thread.x' })
      .cacheRead('x', 'fi', 'shared'),
    { tensors: { x: dense([7], [1, 2, 3, 4, 5, 6, 7]) }, params: { m: 3 } },
  ))

test('a format applied after formats keeps their names separate', () =>
  agree(
    kernel(sums.replace('else { y[i] += x[j] } ', '')).as('A', 'csr').as('A', 'csr').as('A', 'ell'),
    sumInputs,
  ))

test('a nest with one statement over all rows is split', async () => {
  const nested = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: f32[i, j] in
    buffer y: f32[i] out
    buffer z: f32[i] out
    iterate rows [i] as S {
      iterate sum [j] as R { y[i] += A[i, j] }
      z[i] = 1
    }
  }`)
  for (const format of ['dcsr', 'csc']) await agree(nested.as('A', format), { tensors: { A: sparse } })
})

test('formats that would lose or repeat coordinates are rejected', () => {
  const written = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis f = dense_fixed(n)
    buffer y: f32[i, f] out
    iterate all [i, f] as SS { y[i, f] = 1 }
  }`)
  expect(refusal(() => written.as('y', 'csr')).code).toBe('schedule/format-output')
  const ragged = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_variable(i, n)
    buffer A: f32[i, j] in
    buffer y: f32[i] out
    iterate sum [i, j] as SR { y[i] += A[i, j] + 1 }
  }`)
  expect(refusal(() => ragged.as('A', 'csr')).code).toBe('schedule/format-padding')
})

test('searches stay inside the conditions that make their bounds valid', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_fixed(i, n, 4)
      buffer A: f32[i, j] in
      buffer y: f32[i] out
      iterate all [i] as S { y[i] = A[i, n - 1 - i] }
    }`).split('i', 2, ['io', 'ii']),
    { tensors: { A: sparse } },
  ))

test('an attached iterator keeps its name, and the kernel can be read back', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    axis p = dense_fixed(n)
    axis v = sparse_variable(p, m)
    buffer A: f32[i, j] in
    buffer H: f32[p, v] in
    buffer y: f32[i] out
    iterate hop [i, j, p, v] as SRRR { if (p == j) { y[i] += A[i, j] * H[p, v] } }
  }`).attach('v', 'j')
  expect(parseProgram(k.show(1)).kernel().show(1)).toBe(k.show(1))
  return agree(k, {
    tensors: {
      A: sparse,
      H: coords(
        [4, 3],
        [
          [0, 3, 3],
          [1, 0, 2],
        ],
        [1, 2, 3],
      ),
    },
  })
})

test('names of surrounding declarations may be reused', () =>
  agree(
    kernel(`kernel linear(groups: size) {
      axis thread = dense_fixed(groups)
      buffer waiting: f32[thread] in
      buffer old_word: f32[thread] out
      iterate main [thread] as S { old_word[thread] = waiting[thread] }
    }`),
    { tensors: { waiting: dense([3], [1, 2, 3]) } },
  ))

test('elements under unordered duplicates cannot be looked up', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = sparse_variable(m) unordered nonunique
    axis j = sparse_variable(i, n)
    axis r = dense_fixed(m)
    buffer A: f32[i, j] in
    buffer y: f32[r] out
    iterate all [r] as S { y[r] = A[r, 0] }
  }`)
  expect(refusal(() => k.show(2)).code).toBe('lower/unordered-lookup')
  // How it was made can be told, and undone.
  expect([k.trace, k.undo().trace]).toEqual([[], []])
})

test('a lookup under a nonunique axis searches every entry of the coordinate', () =>
  agree(
    kernel(`kernel k(m: size, n: size, p: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n) nonunique
      axis k = sparse_variable(j, p)
      axis q = dense_fixed(p)
      buffer A: i32[i, j, k] in
      buffer y: i32[q] out
      iterate sum [q, i, j] as SRR { y[q] += A[i, j, q] }
    }`),
    {
      tensors: {
        A: coords(
          [2, 2, 3],
          [
            [0, 0, 0, 1],
            [1, 1, 0, 0],
            [0, 2, 1, 1],
          ],
          Int32Array.of(1, 2, 3, 4),
        ),
      },
    },
  ))

test('conditions on reduction loops are kept if partial results are completed', () =>
  agree(
    kernel(`kernel k(l: size) {
      axis g = dense_fixed(l)
      buffer x: i32[g] in
      buffer y: i32[] out
      iterate sum [g] as R { y[] += x[g] }
    }`)
      .split('g', 2, ['a', 'b'])
      .split('a', 2, ['c', 'e'])
      .rfactor('e')
      .split('c', 2, ['h', 't'])
      .bind({ t: 'thread.x' }),
    {
      tensors: {
        x: dense(
          [11],
          Int32Array.from({ length: 11 }, (_, k) => k),
        ),
      },
    },
  ))

test('rows under duplicates of one coordinate cannot be looked up', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = sparse_variable(m) nonunique
    axis j = dense_variable(i, n)
    axis r = dense_fixed(m)
    buffer A: f32[i, j] in
    buffer y: f32[r] out
    iterate all [r] as S { y[r] = A[r, 1] }
  }`)
  expect(refusal(() => k.show(2)).code).toBe('lower/unordered-lookup')
})

test.each(['sparse_variable(j, p)', 'bitmap(j, 8)', 'dense_variable(j, p)'])(
  'elements two levels under duplicates of one coordinate cannot be looked up: %s',
  (under) => {
    for (const middle of [
      'sparse_variable(i, n)',
      'sparse_fixed(i, n, 2)',
      'sparse_variable(i, n) nonunique',
    ]) {
      const k = kernel(`kernel k(m: size, n: size, p: size) {
      axis i = sparse_variable(m) nonunique
      axis j = ${middle}
      axis k = ${under}
      axis r = dense_fixed(m)
      buffer A: f32[i, j, k] in
      buffer y: f32[r] out
      iterate all [r] as S { y[r] = A[r, 1, 0] }
    }`)
      expect(refusal(() => k.show(2)).code).toBe('lower/unordered-lookup')
    }
  },
)

test('cooperatively completed elements are updated within range', () =>
  agree(
    kernel(`kernel k(l: size) {
      axis g = dense_fixed(l)
      buffer x: i32[g] in
      buffer y: i32[] out
      iterate sum [g] as R { y[] += x[g] }
    }`)
      .split('g', 6, ['a', 'b'])
      .rfactor('b')
      .split('sum.b', 4, ['c', 't'])
      .bind({ 'sum.t': 'thread.x' })
      .split('sum.a', 2, ['h', 'u'])
      .bind({ 'sum.u': 'thread.y' }),
    {
      tensors: {
        x: dense(
          [31],
          Int32Array.from({ length: 31 }, (_, k) => k),
        ),
      },
    },
  ))

test('searches stay inside the other bounds of their loop: its end, and the list that names a row', () =>
  agree(
    parseProgram(`kernel k(m: size, n: size, l: size) {
        axis i = dense_fixed(n)
        axis j = sparse_variable(i, m)
        axis p = dense_fixed(n)
        axis q = dense_fixed(l)
        axis g = gathered(p, L)
        buffer B: i32[i, j] in
        buffer L: i32[q] in
        buffer Y: i32[] out
        iterate sum [g] as R where (B[(g - 1) / 2, 2 * g - 1] >= 0) { Y[] += B[g, (g - 3) % 2] }
      }
      schedule k.s { split g by 3 -> (go, gi); split gi by 4 -> (gm, gk) }`)
      .kernel()
      .schedule('s'),
    {
      tensors: {
        B: coords(
          [5, 4],
          [
            [2, 2, 2, 2],
            [0, 1, 2, 3],
          ],
          Int32Array.of(2, 1, 0, -3),
        ),
        L: dense([4], Int32Array.of(4, 2, 0, 0)),
      },
    },
  ))

test.each([
  'split r by 2 -> (ro, ri) bind ro to block.x, ri to thread.x',
  'split r by 2 -> (ro, ri) bind ri to thread.x',
  'split r by 2 -> (ro, ri) split c by 2 -> (co, ci) bind ri to thread.y, ci to thread.x',
])('threads that scatter through a copied index array update their own elements: %s', (steps) =>
  agree(
    parseProgram(`kernel k(m: size, n: size) {
      axis r = sparse_variable(m)
      axis c = dense_fixed(r, n)
      axis i = dense_fixed(m)
      buffer R: f32[r, c] in
      buffer Y: f32[i] out
      iterate listed [r, c] as RR { Y[r] += R[r, c] }
    }
    schedule k.s {
      atomic Y
      cache_read r_indices at c in register
      ${steps}
    }`)
      .kernel()
      .schedule('s'),
    {
      tensors: {
        R: coords(
          [4, 2],
          [
            [0, 0, 2, 2, 3, 3],
            [0, 1, 0, 1, 0, 1],
          ],
          [1, 2, 3, 4, 5, 6],
        ),
      },
    },
  ),
)

test.each([
  ['r / 2', 5],
  ['r / 2', 4],
  ['r / 3', 5],
  ['r / 2 / 2', 5],
  ['r / 1', 5],
])('combined by %s, rows end with their segments', async (at, m) => {
  const text = `kernel k(m: size, n: size, p: size) {
    axis r = dense_fixed(m)
    axis c = sparse_variable(r, n)
    axis o = dense_fixed(p)
    buffer R: i32[r, c] in
    buffer Y: i32[o] out
    axis f = fused(r, c)
    iterate all [f] as R { Y[${at}] += R[r, c] }
  }
  schedule k.s { combine Y }`
  const cells = Array.from({ length: m * 2 }, (_, k) => k)
  const R = coords([m, 2], [cells.map((k) => k >> 1), cells.map((k) => k % 2)], cells)
  for (const p of [m, m + 4])
    await agree(parseProgram(text).kernel().schedule('s'), { tensors: { R }, params: { p } })
})

test('divisions by possibly zero values stay inside their condition', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis c = dense_fixed(2)
      buffer B: i32[i] in
      buffer O: i32[i] out
      buffer P: i32[i, c] out
      iterate one [i] as S {
        O[i] = i / (2 % B[i])
        iterate two [c] as S { P[i, c] = i % (2 % B[i]) + (i + c) / B[i] + (n - 2) / (n - 1) }
      }
    }`),
    { tensors: { B: dense([4], [0, -3, 2, 1], 'i32') }, params: { n: 1 } },
  ))

test('a separately named division tests its divisor, since its condition comes later', () => {
  const text = `kernel k(m: size, n: size, d: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, m)
    axis k = sparse_variable(j, n)
    axis bi = dense_fixed(n)
    axis bj = bitmap(bi, 1)
    axis r = dense_fixed(d)
    buffer C: i8[i, j, k] in
    buffer B: i8[bi, bj] in
    buffer x: i8[bi] in
    buffer Y: i8[i] out
    iterate first [r, i, j, k] as RRSR {
      if (i8(B[k, k + 1] / i8(i)) < C[(r - 3) % 2, 2 * j - 1, (i - 3) % 2]) { Y[j] += i8(-(x[k])) }
    }
  }
  schedule k.s { B as dcsr() }`
  const C = coords(
    [3, 3, 2],
    [
      [0, 0],
      [0, 0],
      [0, 1],
    ],
    [1, 1],
    'i8',
  )
  const B = coords([2, 1], [[0], [0]], [1], 'i8')
  const tensors = { C, B, x: dense([2], [-2, 2], 'i8') }
  return agree(kernel(text).schedule('s'), { tensors, params: { m: 3, n: 2, d: 3 } })
})

const listed = `kernel k(m: size) {
  axis N = sparse_variable(m) nonunique
  axis q = dense_fixed(m)
  buffer A: i32[N] in
  buffer x: i32[q] in
  buffer Y: i32[] out
  iterate first [N] as R { Y[] += x[N] }
}
schedule k.nested {
  split first.N by 3 -> (Na, Nb)
  bind first.Nb to thread.z
  cache_read x at first.Nb in shared
  split x_shared.Nb by 2 -> (c, d)
  cache_read x at x_shared.c in shared
}`

test('a tile that is filled while another is filled is block-uniform', () => {
  const A = coords([5], [[0, 1, 1, 3, 4]], [1, 1, 1, 1, 1], 'i32')
  const x = dense([5], [1, 20, 300, 4000, 50000], 'i32')
  return agree(kernel(listed).schedule('nested'), { tensors: { A, x } })
})

test('a tile is not shared by threads with private values in registers', () => {
  const text = `kernel k(m: size) {
    axis i = dense_fixed(m)
    buffer Y: i32[i] in
    buffer O: i32[i] out
    iterate last [i] as S { O[i] = Y[i] + 1 }
  }
  schedule k.s {
    cache_read Y at last.i in register
    cache_write O at last.i in shared
    split last.i by 3 -> (ia, ib)
    bind last.ib to thread.x
  }`
  expect(refusal(() => kernel(text).schedule('s')).code).toBe('schedule/shared-by-threads')
})

test('dense values under duplicate coordinates are not looked up in the first one', () => {
  const text = `kernel k(m: size, n: size) {
    axis i = sparse_variable(n) nonunique
    axis j = dense_fixed(i, m)
    axis r = dense_fixed(n)
    buffer A: i32[i, j] in
    buffer O: i32[r] out
    iterate it [r] as S { O[r] = A[r, 1] }
  }`
  expect(refusal(() => kernel(text).compilation.loops).code).toBe('lower/unordered-lookup')
})

test('reads of a buffer with a wider accumulator give values of the buffer type', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = dense_fixed(n)
      buffer A: i8[i, j] in
      buffer Y: i8[j] out accumulate i32
      buffer Z: i32[j] out
      iterate first [i, j] as RS { Y[j] += A[i, j] }
      iterate second [j] as S { Z[j] = select(Y[j] > i8(0), Y[j], i8(-1)) }
    }`),
    { tensors: { A: dense([2, 2], Int8Array.of(100, 1, 28, 2), 'i8') } },
  ))

test('lost writes are compared in the stored type: sums of values wrap', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer L: i32[i] in
    buffer a: i32[j] in
    buffer y: i32[j, i] out
    iterate s [i, j] as RS { y[j, L[i]] += a[j] * a[j] % 5 }
  }`)
  const [lost] = k.compilation
    .texts('cuda')
    .flatMap(({ text }) => text.split('\n').filter((line) => line.includes('if (') && line.includes('!= 0')))
  expect(lost).toContain('(unsigned)')
})

test.each(['', 'axis f = dense_fixed(p)'])(
  'entries over several trees have one position: %s',
  async (first) => {
    const k = kernel(`kernel k(m: size, n: size, p: size) {
    ${first}
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n) nonunique
    axis c = sparse_fixed(j, n, 1)
    ${first ? '' : 'axis f = dense_fixed(p)'}
    buffer A: i32[i, j, c] in
    buffer B: i32[i, j, c, f] in
    buffer y: i32[] out
    buffer z: i32[] out
    iterate count [i, j, c] as RRR { y[] += 1 }
    iterate sum [i, j, c, f] as RRRR { z[] += A[i, j, c] * B[i, j, c, f] }
  }`)
    const B = coords(
      [2, 3, 3, 2],
      [
        [0, 0, 1],
        [2, 2, 0],
        [1, 1, 2],
        [0, 1, 1],
      ],
      [3, 5, 7],
      'i32',
    )
    for (const twice of [[2], [2, 2]]) {
      const A = coords([2, 3, 3], [twice.map(() => 0), twice, twice.map(() => 1)], twice, 'i32')
      await agree(k, { tensors: { A, B } })
      const out = await (await k.build(createCpuDevice()))({ A, B })
      expect([...out.y!.values!, ...out.z!.values!]).toEqual([twice.length + 1, 16])
    }
  },
)

test('a division by a constant expression stays inside the condition on its divisor', () =>
  agree(
    kernel(`kernel k(m: size) {
      axis i = dense_fixed(m)
      axis j = bitmap(i, 3)
      axis c = dense_fixed(3)
      buffer A: i32[i, j] in
      buffer x: i32[c] in
      buffer Y: i32[i, j] out
      iterate all [i, j] as SS { Y[i, j] = A[i, j] / x[j] }
    }`).unroll('j'),
    {
      tensors: {
        A: coords(
          [2, 3],
          [
            [0, 0, 1],
            [0, 2, 1],
          ],
          [5, -6, 7],
          'i32',
        ),
        x: dense([3], [0, 4, 0], 'i32'),
      },
    },
  ))

test('operators printed without a cast or call have the right precedence', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = dense_variable(i, n)
      buffer A: f64[i, j] in
      buffer u: u32[i] in
      buffer y: f64[i] out
      buffer z: u32[i] out
      iterate sum [i, j] as SR { y[i] += f64(2) * f64(i) + A[i, j] }
      iterate each [i] as S { z[i] = u32(2) * abs(u[i] - u32(3)) }
    }`).fuse(['sum.i', 'sum.j'], 'ij'),
    {
      tensors: {
        A: coords(
          [2, 2],
          [
            [0, 1, 1],
            [0, 0, 1],
          ],
          [1, 2, 3],
          'f64',
        ),
        u: dense([2], [7, 9], 'u32'),
      },
    },
  ))

test('partial results do not inherit conditions on copies', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer W: i32[j] in
    buffer Y: i32[j] out
    iterate first [j] as S { Y[j] += 1 }
    iterate it [j, i] as SR { if (W[j] != 0) { Y[j] += i } }
  }`).cacheRead('W', 'it.j', 'register')
  expect(refusal(() => k.combine('Y')).code).toBe('schedule/condition-inside')
})

const sums2 = `kernel k(m: size, p: size, d: size) {
  axis i = sparse_variable(m)
  axis j = sparse_variable(i, p)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer P: i32[f] in
  buffer Y: f32[i, j] out
  iterate first [i, j, f] as SSR { Y[i, j] min= A[i, j] - f32(P[f]) }
}`

test('the start of a reduction is not read from a copy made within it', () => {
  const inner = kernel(sums2)
  expect(refusal(() => inner.cacheRead('j_indptr', 'first.f', 'shared').show(2)).code).toBe(
    'schedule/start-outside',
  )
  return agree(inner.cacheRead('j_indptr', 'first.j', 'register'), {
    tensors: {
      A: coords(
        [3, 4],
        [
          [0, 0, 2],
          [1, 2, 0],
        ],
        [3, 1, 2],
      ),
      P: dense([3], [4, -1, 2], 'i32'),
    },
  })
})

test.each([
  ['sparse_variable(i, n)', 'A[0, i + 0]'],
  ['sparse_variable(i, n)', 'A[j / 2, i + 1]'],
  ['bitmap(i, 4)', 'A[(j - 3) % 2, i + 1]'],
])('padding of %s stores only fill values: %s', (axis, other) => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = ${axis}
    axis c = dense_fixed(4)
    buffer A: f32[i, j] in
    buffer Y: f32[c] out
    iterate all [i, j] as RS { let t = ${other} Y[j] += t }
  }`)
  expect(refusal(() => k.as('A', 'bsr(2)').show(1)).code).toBe('schedule/format-padding')
})

test('a fill value divided by a coordinate is NaN at coordinate 0', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer A: f32[i, j] in
    buffer y: f32[i] out
    iterate sum [i, j] as SR { y[i] += A[i, j] / f32(j) }
  }`)
  expect(refusal(() => k.as('A', 'csr').show(1)).code).toBe('schedule/format-padding')
})

test('pointers to data that threads exchange are not restricted', () => {
  const k = kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis c = dense_fixed(n)
    buffer A: i32[c, i] in
    buffer Y: i32[c] local
    buffer Z: i32[c] out
    iterate first [c, i] as SR { Y[c] += A[c, i] }
    iterate second [c] as S { Z[c] = Y[c] + 1 }
  }`)
    .split('first.i', 3, ['a', 'b'])
    .rfactor('b')
    .bind({ 'first.b': 'thread.y' })
    .computeAt('first', 'second.c')
  const [text] = k.compilation.texts('cuda').map((t) => t.text)
  expect(text).toMatch(/int\* __restrict__ Z,/)
  expect(text).toMatch(/int\* Y,/)
})

test('an axis under a replaced axis is rejected', () => {
  const k = kernel(`kernel t(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      axis k = sparse_variable(i, n)
      buffer A: f32[i, j] in
      buffer H: f32[i, k] in
      buffer Y: f32[i] out
      iterate s [i, j, k] as SRR { Y[i] += A[i, j] }
    }
    format rows over (i, j) {
      axis io = dense_fixed(size(i))
      axis jo = sparse_variable(io, size(j))
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }`)
  expect(refusal(() => k.as('A', 'rows')).code).toBe('schedule/format-children')
})

test('reads of a loop condition are evaluated unconditionally', () =>
  agree(
    kernel(`kernel k(m: size, d: size) {
      axis i = dense_fixed(m)
      axis f = dense_fixed(d)
      buffer A: i8[i] in
      buffer Y: i32[i] out
      iterate it [i, f] as SR where (f < i32(A[i])) { Y[i] += f + 1 }
    }`).cacheRead('A', 'it.i', 'shared'),
    { tensors: { A: dense([4], Int8Array.of(2, -1, 0, 9)) }, params: { d: 3 } },
  ))

test('excluded threads do not hold indices that determine a barrier', () => {
  const k = kernel(`kernel k(m: size, n: size, a: i32) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    axis s = sparse_variable(i, n)
    axis f = fused(i, s)
    buffer X: f32[i] in
    buffer U: u8[i] in
    buffer M: i32[i, j] in
    buffer A: i32[i, s] in
    buffer Y: i32[i] out
    iterate it1 [f] as R where (a == bit_xor(i32(U[i]), M[i, s])) { Y[i] min= bit_xor(i32(X[i]), n) }
  }
  schedule k.s {
    split it1.f by 4 -> (f_a, f_b)
    cache_read X at it1.f_a in shared
    split X_shared.f_b by 4 -> (a, b)
    reorder (X_shared.b, X_shared.a)
    tile (X_shared.a) by (3)
    split X_shared.ao by 2 -> (c, e)
    bind X_shared.e to thread.y
    split X_shared.ai by 4 -> (g, h)
    cache_read X at X_shared.g in shared
    cache_read X at X_shared_2.h in shared
  }`).schedule('s')
  expect(() => verify3(k.compilation.plan)).not.toThrow()
})

test.each(['bind it.v to thread.z', 'bind it.a to block.x\nbind it.v to thread.x\nreorder (it.c, it.v)'])(
  'threads of a loop without iterations do nothing: %s',
  (steps) =>
    agree(
      kernel(`kernel k(m: size, p: size) {
        axis a = dense_fixed(p)
        axis v = dense_fixed(m)
        axis c = dense_fixed(3)
        buffer Y: i32[a] out
        iterate it [a, v, c] as SRR { Y[a] += 2 }
      }
      schedule k.s { require m == 0\n${steps} }`).schedule('s'),
      { params: { m: 0, p: 3 } },
    ),
)

test('the bound of a remainder is its dividend, not twice its dividend', () =>
  agree(
    kernel(`kernel k(m: size) {
      axis i = dense_fixed(m)
      buffer a: i32[i] in
      buffer w: i32[i] in
      buffer Y: i32[i] out
      iterate s [i] as S { Y[i] = select(a[i] % 1500000000 > 0, 1, 2) + w[a[i] % 2147483647] }
    }`),
    {
      tensors: { a: dense([3], Int32Array.of(-7, 2147483647, 1)), w: dense([3], Int32Array.of(10, 20, 30)) },
    },
  ))

test('a search for a constant stays inside the check of its length', () =>
  agree(
    kernel(`kernel k(m: size, p: size, d: size) {
      axis i = sparse_variable(m)
      axis j = sparse_variable(i, p)
      axis e = fused(i, j)
      axis f = dense_fixed(d)
      axis q = dense_fixed(m)
      buffer A: f32[i, j] in
      buffer x: f32[q] in
      buffer Y: f32[i, j, f] out
      iterate it [e, f] as SS { Y[i, j, f] = x[i] }
    }
    schedule k.s {
      reorder (f, it.e)
      split it.e by 4 -> (a, b)
      cache_read x at a in shared
      pipeline a by 3
      serpentine x_shared.b by 4
    }`).schedule('s'),
    {
      tensors: {
        A: coords([7, 4], [[], []], [], 'f32'),
        x: dense([7], Float32Array.of(1, 2, 3, 4, 5, 6, 7)),
      },
      params: { d: 5 },
    },
  ))

describe.each(['u8', 'i8', 'f16', 'bf16'])(
  '%s: the type is exact in registers and shared memory too',
  (t) => {
    const x = [11, 47, 20, 15]
    const given = dense([4], x, t as Dtype)
    const A = coords([1, 4], [x.map(() => 0), [0, 1, 2, 3]], given.values, t as Dtype)
    test.each([
      [
        'in a buffer that is cached',
        'buffer L: T[i] local',
        'iterate a [i] as S { L[i] = T(x[i] * x[i]) }\niterate b [i] as S { z[i] = f32(L[i]) }',
        'compute_at b at a.i\ncache_write L at a.i in register',
      ],
      [
        'in shared memory',
        'buffer L: T[i] local',
        'iterate a [i] as S { L[i] = T(x[i] * x[i]) }\niterate b [i] as S { z[i] = f32(L[i]) }',
        'split a.i by 2 -> (o, s)\nbind s to thread.x\ncompute_at b at o\ncache_write L at o in shared',
      ],
      [
        'as a name that outlives what it reads',
        'buffer y: T[i] inout',
        'iterate a [i] as S { let u = T(x[i] * y[i])\ny[i] = u\nz[i] = f32(u) }',
        '',
      ],
      [
        'as it is combined',
        'axis r = dense_fixed(1)\naxis j = sparse_variable(r, m)\nbuffer A: T[r, j] in\nbuffer C: T[r] out',
        'iterate a [r, j] as SR { C[r] max= T(A[r, j] * x[j]) }\niterate b [i] as S { z[i] = 1 }',
        'fuse (a.r, a.j) -> e\nsplit e by 4 -> (o, s)\naccumulate C over s by 2',
      ],
      ['where it is cast to what it is', '', 'iterate a [i] as S { z[i] = f32(T(x[i] * x[i])) }', ''],
    ])('%s', (_name, buffer, body, steps) =>
      agree(
        kernel(
          `kernel k(m: size) {
          axis i = dense_fixed(m)
          buffer x: T[i] in
          buffer z: f32[i] out
          ${buffer}
          ${body}
        }
        schedule k.s { ${steps} }`.replaceAll(/\bT\b/g, t),
        ).schedule('s'),
        {
          tensors: {
            x: given,
            ...(buffer.includes('inout') ? { y: given } : {}),
            ...(buffer.includes('A:') ? { A } : {}),
          },
        },
      ),
    )
  },
)

test.each(['f16', 'bf16'])('results of %s are rounded when stored, not earlier', (t) => {
  const x = dense([2], [47, 3], t as Dtype)
  return agree(
    kernel(`kernel k(m: size) {
      axis i = dense_fixed(m)
      buffer x: ${t}[i] in
      buffer y: ${t}[i] inout
      buffer L: ${t}[i] local
      buffer z: f32[i] out
      buffer w: f32[i] out
      iterate a [i] as S {
        L[i] = x[i] * x[i]
      }
      iterate b [i] as S {
        let u = x[i] * y[i]
        y[i] = u
        w[i] = f32(L[i])
        z[i] = f32(u)
      }
    }
    schedule k.s {
      compute_at b at a.i
      cache_write L at a.i in register
    }`).schedule('s'),
    { tensors: { x, y: x } },
  )
})

const all = (statements: string): Kernel =>
  kernel(`kernel k(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = dense_fixed(n)
    buffer A: f32[i, j] in
    buffer y: f32[] out
    iterate sum [i, j] as RR { ${statements} }
  }`)
const fifteen: Inputs = {
  tensors: {
    A: dense(
      [3, 5],
      Float32Array.from({ length: 15 }, (_, k) => k + 1),
    ),
  },
}

test('a cross-thread reduction is initialised before other threads combine into it', () =>
  agree(all('y[] += A[i, j]').peel('j').split('sum.j', 2, ['a', 'b']).bind({ b: 'thread.x' }), fifteen))

test('a copy of a statement without loop variables is a separate statement', () =>
  agree(
    all('if (A[i, j] > 3) { y[] += 1 }').split('j', 2, ['a', 'b']).bind({ b: 'thread.x' }).peel('i'),
    fifteen,
  ))

// Columns 0 and 1 of row 0 are one place of `every_other`: only its condition tells them apart.
test('a part of a bucket is searched only for its coordinates', () =>
  agree(
    kernel(`format every_other over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_variable(io, ceildiv(j, 2))
      map (i, j) -> (i, j / 2)
      inverse (io, jo) -> (io, jo * 2 + io % 2)
      where ((i - j) % 2 == 0)
    }
    format halves over (i, j) {
      bucket j by length into 2, 16 as width {
        part every_other
        part csr
      }
    }
    kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = dense_variable(i, n)
      axis c = dense_fixed(n)
      buffer A: f32[i, j] in
      buffer y: f32[c] out
      iterate first [c] as S { y[c] = A[0, c] }
    }`).as('A', 'halves'),
    { tensors: { A: sparse } },
  ))

test('a live format does not move an iterator that opens the rows of another one', () => {
  const k = kernel(`
    format rows over (i, j) {
      axis io = dense_fixed(i)
      axis jo = sparse_variable(io, j)
      map (i, j) -> (i, j)
      inverse (io, jo) -> (io, jo)
    }
    kernel k(m: size, d: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, m)
      axis f = dense_fixed(d)
      axis r = dense_fixed(m)
      axis c = dense_fixed(m)
      buffer A: f32[i, j] in
      buffer W: f32[r, f] in
      buffer Y: f32[r, c] inout
      iterate sum [i, f, j] as SRS { Y[i, j] += W[i, f] }
    }
    schedule k.s { W as rows() live in place for sum }`)
  expect(() => k.schedule('s').compilation.loops).toThrow('schedule/live-tensor')
})

test('iterations can have the lists of a tensor of type bool', () =>
  agree(
    kernel(`kernel k(m: size, n: size) {
      axis i = dense_fixed(m)
      axis c = dense_fixed(n)
      buffer A: bool[i, c] in
      buffer x: f32[c] in
      buffer T: f32[i, c] local
      buffer y: f32[i] out
      iterate first [i, c] as SS { T[i, c] = x[c] }
      iterate sum [i, c] as SR { y[i] += select(A[i, c], T[i, c], 0.0) }
    }
    schedule k.s { A as csr live in place for first }`).schedule('s'),
    { tensors: { A: dense([2, 3], [1, 0, 1, 0, 0, 1]), x: dense([3], [1, -2, 3]) } },
  ))
