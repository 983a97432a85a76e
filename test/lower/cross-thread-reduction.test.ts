/** Reductions over neighbouring threads: by exchange of registers, as far as a target can. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { verifyPass } from '../../src/api/stages/stage-verifier.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { type Kernel, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { runPlan, statementsOf } from '../support/plans.ts'

/** Sums of a thread: of a power of two of them, lanes exchange halves. */
const SUMS = [2, 3, 4, 8, 16, 64] as const

const TEXT = `
kernel rows(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer y: f32[i] out
  iterate sum [i, k] as SR { y[i] += X[i, k] }
}
schedule rows.lanes(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes -> (ko, kl)
  bind o to block.x, t to thread.y, kl to thread.x
}
schedule rows.across(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes * 4 -> (ko, ki)
  split ki by lanes -> (ky, kl)
  bind o to block.x, t to thread.z, ky to thread.y, kl to thread.x
}
monoid peak(v: f32, n: i32) {
  identity (-inf, 0)
  combine (a, b) = (max(a.v, b.v), select(a.v > b.v, a.n, select(a.v < b.v, b.n, a.n + b.n)))
}
kernel peaks(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer v: f32[i] out
  buffer n: i32[i] out
  iterate find [i, k] as SR { (v[i], n[i]) peak= (X[i, k], 1) }
}
schedule peaks.lanes(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes -> (ko, kl)
  bind o to block.x, t to thread.y, kl to thread.x
}
${SUMS.map(
  (c) => `
kernel products${c}(m: size, d: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(${c})
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer W: f32[k, c] in
  buffer y: f32[i, c] out
  iterate sum [i, c, k] as SSR { y[i, c] += X[i, k] * W[k, c] }
}
schedule products${c}.lanes(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes -> (ko, kl)
  reorder (o, t, ko, kl, c)
  unroll c
  bind o to block.x, t to thread.y, kl to thread.x
}
`,
).join('')}kernel outer(m: size, d: size) {
  axis i = dense_fixed(m)
  axis c = dense_fixed(4)
  axis k = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer W: f32[k, c] in
  buffer y: f32[i, c] local
  buffer Z: f32[i, k, c] out
  iterate row [i] as S {
    iterate sum [c, k] as SR { y[i, c] += X[i, k] * W[k, c] }
    iterate apply [k, c] as SS { Z[i, k, c] = X[i, k] * y[i, c] }
  }
}
schedule outer.lanes(lanes) {
  split sum.k by lanes -> (ko, kl)
  split apply.k by lanes -> (ao, al)
  reorder (sum.ko, sum.kl, sum.c)
  bind row.i to block.x, sum.kl to thread.x, apply.al to thread.x
  cache_write y at row.i in register
}
kernel sampled(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis k = dense_fixed(d)
  axis jd = dense_fixed(n)
  buffer X: f32[i, k] in
  buffer Y: f32[jd, k] in
  buffer C: f32[i, j] out
  iterate dot [i, j, k] as SSR { C[i, j] += X[i, k] * Y[j, k] }
}
schedule sampled.lanes(rows, lanes) {
  split i by rows -> (o, t)
  split k by lanes -> (ko, kl)
  bind o to block.x, t to thread.y, kl to thread.x
}
kernel both(m: size, d: size) {
  axis i = dense_fixed(m)
  axis k = dense_fixed(d)
  axis l = dense_fixed(d)
  buffer X: f32[i, k] in
  buffer y: f32[i] out
  buffer Z: f32[i, l] out
  iterate outer [i] as S {
    iterate sum [k] as R { y[i] += X[i, k] }
    iterate copy [l] as S { Z[i, l] = 2 * X[i, l] }
  }
}
schedule both.lanes(others, lanes) {
  split sum.k by lanes -> (ko, kl)
  rfactor sum.ko
  cache_write y_partial at sum.ko in register
  split copy.l by others -> (lo, lt)
  bind outer.i to block.x, sum.kl to thread.x, copy.lt to thread.y
}`

const program = await load(TEXT)
const scheduled = (kernel: string, schedule: string, ...args: number[]): Kernel =>
  program.kernel(kernel).schedule(schedule, ...args)

const count = (plan: Kernel3, holds: (s: Stmt) => boolean): number => statementsOf(plan, holds).length
const barriers = (p: Kernel3): number => count(p, (s) => s.kind === 'barrier')
const shared = (p: Kernel3): number => count(p, (s) => s.kind === 'alloc' && s.buffer.scope === 'shared')
const exchanges = (p: Kernel3): number => count(p, (s) => s.kind === 'let' && s.lane !== undefined)

const sizes = fc.record({
  m: fc.integer({ min: 0, max: 5 }),
  d: fc.integer({ min: 0, max: 40 }),
  seed: fc.nat(),
})
const numbers = (n: number, seed: number): number[] =>
  Array.from({ length: n }, (_, k) => (Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7)
const lanes = fc.constantFrom(1, 2, 4, 8, 32)
const rows = fc.constantFrom(1, 2, 3)
const width = fc.constantFrom(1, 2, 3, 4, 6, 8, 16, 24, 32, 64)

describe('the result does not depend on the number of lanes', () => {
  for (const schedule of ['lanes', 'across'])
    test(`sums, ${schedule}`, () => {
      fc.assert(
        fc.property(sizes, lanes, rows, width, ({ m, d, seed }, l, r, w) => {
          if (schedule === 'across' && r * w * 4 > 256) return
          const X = numbers(m * d, seed)
          const y = Array.from({ length: m }, (_, i) =>
            X.slice(i * d, (i + 1) * d).reduce((a, b) => a + b, 0),
          )
          const plan = scheduled('rows', schedule, r, w).compilation.planFor({ lanes: l })
          expect(runPlan(plan, { m, d }, { X, y: y.map(() => Number.NaN) }).y).toEqual(y)
        }),
        { numRuns: runs(15) },
      )
    })

  test('tuples', () => {
    fc.assert(
      fc.property(sizes, lanes, rows, width, ({ m, d, seed }, l, r, w) => {
        const X = numbers(m * d, seed)
        const row = (i: number): number[] => X.slice(i * d, (i + 1) * d)
        const v = Array.from({ length: m }, (_, i) => Math.max(...row(i)))
        const n = v.map((x, i) => row(i).filter((e) => e === x).length)
        const plan = scheduled('peaks', 'lanes', r, w).compilation.planFor({ lanes: l })
        const out = runPlan(plan, { m, d }, { X, v: v.map(() => Number.NaN), n: n.map(() => -1) })
        expect({ v: out.v, n: out.n }).toEqual({ v, n })
      }),
      { numRuns: runs(10) },
    )
  })

  test('sums beside a loop over other threads', () => {
    fc.assert(
      fc.property(sizes, lanes, rows, width, fc.boolean(), ({ m, d, seed }, l, r, w, together) => {
        const X = numbers(m * d, seed)
        const y = Array.from({ length: m }, (_, i) => X.slice(i * d, (i + 1) * d).reduce((a, b) => a + b, 0))
        const size = m * Math.ceil(d / w)
        const plan = scheduled('both', 'lanes', r, w).compilation.observe(verifyPass, { lanes: l, together })
        const out = runPlan(
          plan,
          { m, d },
          {
            X,
            y: y.map(() => Number.NaN),
            y_partial: new Array<number>(size).fill(Number.NaN),
            Z: X.map(() => Number.NaN),
          },
        )
        expect([out.y, out.Z]).toEqual([y, X.map((x) => 2 * x)])
      }),
      { numRuns: runs(15) },
    )
  })

  test('several sums of a thread', () => {
    fc.assert(
      fc.property(sizes, lanes, rows, width, fc.constantFrom(...SUMS), ({ m, d, seed }, l, r, w, c) => {
        const X = numbers(m * d, seed)
        const W = numbers(d * c, seed + 1)
        const y = Array.from({ length: m * c }, (_, at) =>
          Array.from({ length: d }, (_, k) => X[Math.floor(at / c) * d + k]! * W[k * c + (at % c)]!).reduce(
            (a, b) => a + b,
            0,
          ),
        )
        const plan = scheduled(`products${c}`, 'lanes', r, w).compilation.observe(verifyPass, { lanes: l })
        expect(runPlan(plan, { m, d }, { X, W, y: y.map(() => Number.NaN) }).y).toEqual(y)
      }),
      { numRuns: runs(20) },
    )
  })
})

test('sums in registers of each thread stay in all lanes', () => {
  const [m, d] = [2, 6]
  const [X, W] = [numbers(m * d, 1), numbers(d * 4, 2)]
  const y = (i: number, c: number): number =>
    Array.from({ length: d }, (_, k) => X[i * d + k]! * W[k * 4 + c]!).reduce((a, b) => a + b, 0)
  const Z = Array.from(
    { length: m * d * 4 },
    (_, at) => X[Math.floor(at / 4)]! * y(Math.floor(at / (4 * d)), at % 4),
  )
  for (const w of [4, 8]) {
    const plan = scheduled('outer', 'lanes', w).compilation.planFor({ lanes: 32 })
    expect(runPlan(plan, { m, d }, { X, W, Z: Z.map(() => Number.NaN) }).Z).toEqual(Z)
  }
})

test('rows of different lengths: lanes of a row synchronise separately', () => {
  const j_indptr = [0, 3, 3, 4, 9, 9]
  const j_indices = [0, 2, 3, 1, 0, 1, 2, 3, 4]
  const [m, n, d] = [5, 5, 7]
  const X = numbers(m * d, 3)
  const Y = numbers(n * d, 4)
  const rowOf = (p: number): number => j_indptr.findLastIndex((start) => start <= p)
  const C = j_indices.map((j, p) =>
    Array.from({ length: d }, (_, k) => X[rowOf(p) * d + k]! * Y[j * d + k]!).reduce((a, b) => a + b, 0),
  )
  for (const w of [2, 4, 8, 32]) {
    const plan = scheduled('sampled', 'lanes', 4, w).compilation.planFor({ lanes: 32 })
    expect(barriers(plan)).toBe(0)
    const exchanged = statementsOf(plan, (s) => s.kind === 'let' && s.lane !== undefined)
    expect(new Set(exchanged.map((s) => s.kind === 'let' && s.lane?.among))).toEqual(new Set([w]))
    const arrays = { X, Y, C: C.map(() => Number.NaN), j_indptr, j_indices }
    expect(runPlan(plan, { m, n, d, j_count: 9 }, arrays).C).toEqual(C)
  }
  // Fewer lanes than the row has threads: the rest would meet at a barrier, which rows reach a different number of times.
  expect(() => scheduled('sampled', 'lanes', 4, 32).compilation.planFor({ lanes: 8 })).toThrow(
    'divergent-barrier',
  )
})

describe('the minimum number of barriers', () => {
  const plan = (w: number, l: number): Kernel3 =>
    scheduled('rows', 'lanes', 2, w).compilation.planFor({ lanes: l })
  test('lanes of a warp need no shared memory and no barrier', () => {
    for (const w of [2, 4, 8, 16, 32]) {
      const p = plan(w, 32)
      expect([shared(p), barriers(p), exchanges(p)]).toEqual([0, 0, Math.log2(w)])
    }
  })
  test('several warps need one barrier', () => {
    for (const w of [64, 128, 512]) {
      const p = plan(w, 32)
      expect([shared(p), barriers(p), exchanges(p)]).toEqual([1, 1, Math.log2(w)])
    }
  })
  test('without lanes, half of the threads after each barrier', () => {
    const p = plan(16, 1)
    expect([shared(p), barriers(p), exchanges(p)]).toEqual([1, 5, 0])
  })
  test('lanes with several sums send half of them at each step', () => {
    const sums = (c: number, w: number): number =>
      exchanges(scheduled(`products${c}`, 'lanes', 2, w).compilation.planFor({ lanes: 32 }))
    expect([sums(8, 4), sums(8, 8), sums(8, 32), sums(4, 8), sums(16, 8)]).toEqual([6, 7, 9, 4, 14])
    // Not a power of two, and too few lanes: one sum after the other.
    expect([sums(3, 8), sums(8, 2)]).toEqual([9, 8])
  })
  test('groups of lanes do not cross rows of the block', () => {
    const p = plan(24, 32)
    expect([shared(p), exchanges(p)]).toEqual([1, 3])
  })
})

test('CUDA: a full warp uses the full mask, without a shift by its width', () => {
  const { text } = scheduled('rows', 'lanes', 1, 256).emit('cuda')[0]!
  expect(text).toMatch(/__shfl_xor_sync\(0xffffffffu, /)
  expect(text).not.toContain('lanes<32>')
})

test.skipIf(noNvcc)('nvcc compiles it', () => {
  const texts = [
    scheduled('rows', 'lanes', 4, 32),
    scheduled('rows', 'lanes', 1, 256),
    scheduled('peaks', 'lanes', 8, 8),
    scheduled('products8', 'lanes', 4, 16),
    scheduled('sampled', 'lanes', 8, 8),
  ].map((k) =>
    k
      .emit('cuda')
      .map((t) => t.text)
      .join('\n'),
  )
  for (const text of [texts[0]!, texts[2]!, texts[3]!, texts[4]!])
    expect(text).not.toMatch(/__shared__|__syncthreads/)
  expect(texts[4]).toContain('lanes<8>()')
  expect(compileTogether(texts)).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
