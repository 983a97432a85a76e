/** Sums in registers for as long as the element stays the same, and searches that go on from where they were. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { type Kernel, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { interpretedPlan } from '../support/interpreted.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { runPlan, statementsOf } from '../support/plans.ts'

const TEXT = `
kernel product(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
schedule product.shares(rows, share, lanes, each) {
  fuse (i, j) -> ij
  atomic C
  split ij by share -> (o, s)
  split o by rows -> (b, t)
  split f by lanes * each -> (fo, fi)
  split fi by lanes -> (fr, fl)
  reorder (b, fo, t, fl, s, fr)
  bind b to block.x, fo to block.y, t to thread.y, fl to thread.x
}
schedule product.one(rows = 2, share = 8) {
  use shares(rows, share, 4, 2)
  accumulate C over s
  unroll fr
}
schedule product.exact {
  use one
  require d % 8 == 0
}
schedule product.batched(rows = 2, share = 8, by = 4) {
  use shares(rows, share, 4, 2)
  accumulate C over s by by
  unroll fr
}
kernel vector(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  buffer A: f32[i, j] in
  buffer y: f32[i] out
  buffer z: f32[i] out
  iterate sum [i, j] as SR { y[i] += A[i, j] }
  iterate most [i, j] as SR { z[i] max= A[i, j] }
}
schedule vector.one(share = 3) {
  fuse (sum.i, sum.j) -> e
  fuse (most.i, most.j) -> g
  atomic y
  atomic z
  split e by share -> (eo, es)
  split g by share -> (go, gs)
  accumulate y over es
  accumulate z over gs
  bind eo to block.x, go to block.x
}
schedule vector.whole {
  fuse (sum.i, sum.j) -> e
  accumulate y over e
}
kernel sampled(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer x: f32[i] in
  buffer w: f32[jd] in
  buffer C: f32[i, j] out
  iterate dot [i, j] as SS { C[i, j] = x[i] * w[j] }
}
schedule sampled.shares(share = 4) {
  fuse (i, j) -> e
  split e by share -> (o, s)
  bind o to block.x
}`

const program = await load(TEXT)
const scheduled = (kernel: string, schedule: string, ...args: number[]): Kernel =>
  program.kernel(kernel).schedule(schedule, ...args)

interface Matrix {
  readonly m: number
  readonly n: number
  readonly j_indptr: readonly number[]
  readonly j_indices: readonly number[]
}
const matrices: fc.Arbitrary<Matrix> = fc
  .record({
    n: fc.integer({ min: 1, max: 9 }),
    lengths: fc.array(fc.oneof({ weight: 2, arbitrary: fc.constant(0) }, fc.nat(9)), { maxLength: 8 }),
  })
  .map(({ n, lengths }) => {
    const j_indptr = [0]
    for (const l of lengths) j_indptr.push(j_indptr.at(-1)! + Math.min(l, n))
    const j_indices = lengths.flatMap((l) => Array.from({ length: Math.min(l, n) }, (_, k) => k))
    return { m: lengths.length, n, j_indptr, j_indices }
  })
const numbers = (n: number, seed: number): number[] =>
  Array.from({ length: n }, (_, k) => ((Math.imul(seed + 1, 2654435761 + 40503 * k) >>> 9) % 7) - 3)
const rowsOf = ({ j_indptr, j_indices }: Matrix): number[] =>
  j_indices.map((_, p) => j_indptr.findLastIndex((start) => start <= p))

const count = (plan: Kernel3, holds: (s: Stmt) => boolean): number => statementsOf(plan, holds).length

describe('sums over chunks of nonzeros', () => {
  test('of a product', () => {
    fc.assert(
      fc.property(
        matrices,
        fc.integer({ min: 1, max: 10 }),
        fc.constantFrom(1, 2, 3),
        fc.constantFrom(4, 8, 12),
        fc.constantFrom(1, 2, 4),
        fc.nat(),
        (matrix, d, rows, share, by, seed) => {
          const { m, n, j_indptr, j_indices } = matrix
          const A = numbers(j_indices.length, seed)
          const B = numbers(n * d, seed + 1)
          const C = new Array<number>(m * d).fill(0)
          rowsOf(matrix).forEach((i, p) => {
            for (let f = 0; f < d; f++) C[i * d + f]! += A[p]! * B[j_indices[p]! * d + f]!
          })
          const kernel =
            by === 1
              ? scheduled('product', 'one', rows, share)
              : scheduled('product', 'batched', rows, share, by)
          const params = { m, n, d, j_count: j_indices.length }
          const arrays = { A, B, C: C.map(() => Number.NaN), j_indptr, j_indices }
          expect(
            runPlan(kernel.compilation.planFor({ lanes: 32 }), params, arrays).C!.map((x) => x + 0),
          ).toEqual(C.map((x) => x + 0))
        },
      ),
      { numRuns: runs(10) },
    )
  })

  test('of a vector, by two reducers, in parallel and in one nest', () => {
    fc.assert(
      fc.property(
        matrices,
        fc.constantFrom(1, 2, 3, 7),
        fc.boolean(),
        fc.nat(),
        (matrix, share, whole, seed) => {
          const { m, n, j_indptr, j_indices } = matrix
          const A = numbers(j_indices.length, seed)
          const y = new Array<number>(m).fill(0)
          const z = new Array<number>(m).fill(Number.NEGATIVE_INFINITY)
          rowsOf(matrix).forEach((i, p) => {
            y[i]! += A[p]!
            z[i] = Math.max(z[i]!, A[p]!)
          })
          const kernel = whole ? scheduled('vector', 'whole') : scheduled('vector', 'one', share)
          const nothing = y.map(() => Number.NaN)
          const arrays = { A, y: nothing, z: nothing, j_indptr, j_indices }
          const out = runPlan(kernel.compilation.plan, { m, n, j_count: j_indices.length }, arrays)
          expect([out.y!.map((x) => x + 0), out.z!.map((x) => x + 0)]).toEqual([
            y.map((x) => x + 0),
            z.map((x) => x + 0),
          ])
        },
      ),
      { numRuns: runs(10) },
    )
  })

  test('rows are searched where they are read', () => {
    fc.assert(
      fc.property(matrices, fc.constantFrom(1, 2, 4), fc.nat(), (matrix, share, seed) => {
        const { m, n, j_indptr, j_indices } = matrix
        const x = numbers(m, seed)
        const w = numbers(n, seed + 1)
        const C = rowsOf(matrix).map((i, p) => x[i]! * w[j_indices[p]!]! + 0)
        const plan = scheduled('sampled', 'shares', share).compilation.plan
        const arrays = { x, w, C: C.map(() => Number.NaN), j_indptr, j_indices }
        const out = runPlan(plan, { m, n, j_count: j_indices.length }, arrays)
        expect(out.C!.map((v) => v + 0)).toEqual(C)
      }),
    )
  })
})

describe('the remaining work', () => {
  test('one bisection per chunk', () => {
    const whiles = (k: Kernel): number => count(k.compilation.plan, (s) => s.kind === 'while')
    // A bisection, and the steps from there.
    expect(whiles(scheduled('product', 'exact'))).toBe(2)
    expect(whiles(scheduled('sampled', 'shares'))).toBe(2)
  })

  test('an update at each row change, and one at the end', () => {
    const updates = (k: Kernel): number => count(k.compilation.plan, (s) => s.kind === 'reduce' && s.atomic)
    // Two features of a thread.
    expect(updates(scheduled('product', 'exact'))).toBe(4)
  })

  test('the printed loop has its mode', () => {
    const text = print2(scheduled('product', 'batched').compilation.loops, { bodyOnly: true })
    expect(text).toContain('for s in 0..8  reduce  @accumulate(4)')
  })
})

test('later copies are outside of the sequential reduction', async () => {
  const steps = 'split f by 4 -> (fo, fi) accumulate Y over fi by 2 cache_write Y at fi in register'
  const k = parseProgram(`kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  buffer x: i32[i] in
  buffer Y: i32[i, f] out
  iterate s [i, f] as SS where (m > 1) { Y[i, f] += x[i] }
}
schedule k.s { ${steps} }`).kernel()
  const x = { kind: 'dense' as const, shape: [2], values: Int32Array.of(5, 7), dtype: 'i32' as const }
  const out = interpretedPlan(k.schedule('s'), { tensors: { x }, params: { n: 3 } })
  expect(out.get('Y')).toEqual([5, 5, 5, 7, 7, 7])
})

describe('is rejected', () => {
  const refused = (steps: string): (() => unknown) => {
    const text = `${TEXT}\nschedule product.wrong { ${steps} }`
    return async () => (await load(text)).kernel('product').schedule('wrong')
  }
  const FUSED = 'fuse (i, j) -> ij; atomic C; split ij by 8 -> (o, s); '
  test.each([
    ['the element stays', 'cache_write C at f in register; accumulate C over j', 'changes with it'],
    ['rows', 'accumulate C over j', 'changes with it'],
    [
      'bound inside',
      `${FUSED} split f by 4 -> (fo, fi); reorder (fo, o, s, fi); bind fi to thread.x; accumulate C over s`,
      'bound to thread.x',
    ],
    ['many', `${FUSED} split f by 128 -> (fo, fi); reorder (fo, o, s, fi); accumulate C over s`, 'registers'],
    ['not constant', `${FUSED} accumulate C over s`, 'constant extent'],
    [
      'batches',
      `${FUSED} split f by 4 -> (fo, fi); reorder (fo, o, s, fi); accumulate C over s by 3`,
      'divide',
    ],
    [
      'another buffer',
      `${FUSED} split f by 4 -> (fo, fi); reorder (fo, o, s, fi); accumulate A over s`,
      'not into A',
    ],
    [
      'twice',
      `${FUSED} split f by 4 -> (fo, fi); reorder (fo, o, s, fi); accumulate C over s; unroll s`,
      'accumulated',
    ],
  ])('%s', async (_, steps, message) => {
    await expect(refused(steps)()).rejects.toThrow(message)
  })
})

test.skipIf(noNvcc)('nvcc compiles it', () => {
  const texts = [
    scheduled('product', 'one'),
    scheduled('product', 'batched', 4, 16, 4),
    scheduled('vector', 'one'),
  ].map((k) =>
    k
      .emit('cuda')
      .map((t) => t.text)
      .join('\n'),
  )
  expect(compileTogether(texts)).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
