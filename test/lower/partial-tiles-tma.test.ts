/**
 * Boxes at the edges of matrices: they arrive whole, with zeros beyond the last row and column, so tiles need not divide
 * sizes. Whenever copies end, the result is that of the dense product.
 */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { protectedRead } from '../../src/analysis/instructions/zero-fill.ts'
import { add, type Expr, int, load as loadOf, lt, mul, variable } from '../../src/ir/expressions/expr.ts'
import { coords, dense, type Kernel, load } from '../../src/node.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { runs, sample } from '../support/cases.ts'
import { interpreted } from '../support/interpreted.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { refusal } from '../support/refusal.ts'
import { copiesOf, KINDS, scheduledBy } from './tma-products.ts'

const integers = (length: number, seed: number): number[] =>
  Array.from({ length }, (_, e) => ((e * 31 + seed) % 9) - 4)

interface Edges {
  readonly ordered: boolean
  readonly stages: number
  /** C on its way out: straight, through shared memory, or as boxes from there where computing is ordered. */
  readonly through: 'no' | 'shared' | 'boxes'
}
const hasBoxes = ({ ordered, through }: Edges): boolean => ordered && through === 'boxes'

/** Tiles of 4 × 8 of C for a block of 2 × 4 threads, 8 deep in a round; only rows of matrices are aligned. */
const tiled = ({ ordered, stages, through }: Edges): string => `
    require n % 4 == 0
    require k % 4 == 0
    split i by 4 -> (io, ii)
    split ii by 2 -> (wi, ir)
    split j by 8 -> (jo, ji)
    split ji by 4 -> (jt, jr)
    split p by 8 -> (po, ph)
    split ph by 4 -> (pm, pr)
    reorder (io, jo, wi, ${ordered ? '' : 'jr, '}po, pm, jt, ir, ${ordered ? 'jr, ' : ''}pr)
    bind io to block.y, jo to block.x, wi to thread.y${ordered ? '' : ', jr to thread.x'}
    cache_write C at ${ordered ? 'wi' : 'jr'} in ${ordered ? 'acc' : 'register'} -> Cr
    cache_read A at po in tile padded 0 -> As
    cache_read B at po in tile padded 0 -> Bs
    split As.wi by 2 -> (ac, ar)
    split As.pm by 4 -> (aq, av)
    reorder (ac, aq, ar, av)
    tensorize ar with bulk
    split Bs.pm by 2 -> (br, bh)
    split Bs.jt by 4 -> (bc, bv)
    reorder (br, bc, bh, bv)
    tensorize bh with bulk
    ${ordered ? 'tensorize sum.ir with multiply' : ''}
    ${through === 'shared' ? 'cache_write C at wi in shared -> Cs' : ''}
    ${hasBoxes({ ordered, stages, through }) ? 'cache_write C at jo in tile -> Cs\ntensorize Cs.ir with leave' : ''}
    ${stages > 0 ? `pipeline po by ${stages}` : ''}`

const product = (m: number, n: number, k: number, seed: number) => {
  const [A, B] = [integers(m * k, seed), integers(k * n, seed + 5)]
  const C = Array.from({ length: m * n }, (_, e) => {
    let sum = 0
    for (let p = 0; p < k; p++) sum += A[Math.floor(e / n) * k + p]! * B[p * n + (e % n)]!
    return sum
  })
  const inputs: Inputs = {
    tensors: { A: dense([m, k], Float32Array.from(A)), B: dense([k, n], Float32Array.from(B)) },
    params: { m, n, k },
  }
  return { inputs, C }
}

const kernels = new Map<string, Kernel>()
/** Schedules are made once. */
const made = (kernel: string, steps: string, declared?: string): Kernel => {
  const known = kernels.get(steps) ?? scheduledBy(kernel, steps, declared)
  kernels.set(steps, known)
  return known
}

const edges = fc.record<Edges>({
  ordered: fc.boolean(),
  stages: fc.constantFrom(0, 2, 3),
  through: fc.constantFrom('no', 'shared', 'boxes'),
})

test('a product whose tiles do not divide rows, columns or the reduction', () => {
  fc.assert(
    fc.property(edges, fc.nat(9), fc.nat(5), fc.nat(5), fc.nat(1000), (e, m, columns, deep, seed) => {
      const [n, k] = [columns * 4, deep * 4]
      const { inputs, C } = product(m, n, k, seed)
      const copies = copiesOf(made('product', tiled(e)), inputs, C, seed)
      // A round has 4 boxes of A and 8 of B, a tile 4 of C, whatever of them is there.
      const tiles = Math.ceil(m / 4) * Math.ceil(n / 8)
      expect(copies).toBe(tiles * (Math.ceil(k / 8) * 12 + (hasBoxes(e) ? 4 : 0)))
    }),
    { numRuns: runs(5) },
  )
})

const formats = readFileSync(new URL('../../kernels/formats.spt', import.meta.url), 'utf8')
const SPARSE = `${KINDS}${formats}
kernel sparse(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}`

/** Blocks of 4 × 4; columns of B and C are cut off. */
const blocked = (stages: number): string => `
    A as bsr(4)
    require m % 4 == 0
    require n % 4 == 0
    require d % 4 == 0
    split f by 8 -> (fo, fi)
    split fi by 4 -> (ft, fr)
    split ii by 2 -> (wi, ir)
    reorder (io, fo, wi, jo, ft, ir, fr, ji)
    bind io to block.y, fo to block.x, wi to thread.y
    cache_write C at wi in acc -> Cr
    cache_read A at jo in tile padded 0 -> As
    cache_read B at jo in tile padded 0 -> Bs
    split As.wi by 2 -> (ac, ar)
    tensorize ar with bulk
    split Bs.ji by 2 -> (br, bh)
    split Bs.ft by 4 -> (bc, bv)
    reorder (br, bc, bh, bv)
    tensorize bh with bulk
    tensorize sum.ir with multiply
    ${stages > 0 ? `pipeline jo by ${stages}` : ''}`

test('a block product whose tiles do not divide the columns of the other operand', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(0, 2, 3),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(1000),
      (stages, rows, deep, columns, seed) => {
        const [m, n, d] = [rows * 4, deep * 4, columns * 4]
        const at: [number[], number[]] = [[], []]
        for (let i = 0; i < m; i++)
          for (let j = (i + seed) % 3; j < n; j += 3) {
            at[0].push(i)
            at[1].push(j)
          }
        const [A, B] = [integers(at[0].length, seed), integers(n * d, seed + 5)]
        const C = new Array<number>(m * d).fill(0)
        for (const [e, i] of at[0].entries())
          for (let f = 0; f < d; f++) C[i * d + f]! += A[e]! * B[at[1][e]! * d + f]!
        const inputs: Inputs = {
          tensors: {
            A: coords([m, n], at, Float32Array.from(A)),
            B: dense([n, d], Float32Array.from(B)),
          },
          params: { m, n, d },
        }
        copiesOf(made('sparse', blocked(stages), SPARSE), inputs, C, seed)
      },
    ),
    { numRuns: runs(4) },
  )
})

/** Of the tests below, for one start of the compiler. */
const cudaTexts: string[] = []

const blockSparse = (await load('kernels/block-sparse-f16.spt')).kernel()

/** Rows of blocks of different lengths, one of them empty. */
const CUT = [
  ['columns_first', [64, 64, 3, 8], 64, [72]],
  ['columns_first', [64, 128, 3, 8], 64, [8, 200]],
  ['serpentine', [64, 128, 3, 2, 8], 64, [136]],
  ['bulk', [64, 128, 2, 8], 64, [24]],
  ['narrow', [32, 64, 3, 8], 32, [8, 24, 72, 136, 200]],
  ['narrow', [16, 128, 3, 8], 16, [8, 24, 72, 136, 200]],
] as const
test.each(sample(CUT, 6))(
  '%s(%j) of block_spmm_f16 computes partial column tiles',
  (schedule, args, b, widths) => {
    const k = blockSparse.schedule(schedule, ...args)
    const [m, n] = [3 * b, 2 * b]
    const at: [number[], number[]] = [[], []]
    for (let i = 0; i < m; i++)
      for (let j = i % 7; j < n; j += 7) {
        const [row, column] = [Math.floor(i / b), Math.floor(j / b)]
        if (row === 1 || (row === 2 && column === 0)) continue
        at[0].push(i)
        at[1].push(j)
      }
    const A = integers(at[0].length, 1)
    for (const d of sample(widths, 2)) {
      const B = integers(n * d, 2)
      const C = new Array<number>(m * d).fill(0)
      for (const [e, i] of at[0].entries())
        for (let f = 0; f < d; f++) C[i * d + f]! += A[e]! * B[at[1][e]! * d + f]!
      const inputs: Inputs = {
        tensors: { A: coords([m, n], at, Float32Array.from(A)), B: dense([n, d], Float32Array.from(B)) },
        params: { m, n, d },
      }
      expect(interpreted(k, inputs).get('C'), `d = ${d}`).toEqual(C)
    }
    cudaTexts.push(...k.emit('cuda').map((t) => t.text))
  },
)

const gemm = (await load('kernels/gemm-f16.spt')).kernel('gemm<f16>')

test('bulk of gemm<f16> computes partial tiles', () => {
  const k = gemm.schedule('bulk', 64, 64, 3, 1, 8, 8)
  for (const [m, n, deep] of [
    [3, 8, 8],
    [70, 72, 24],
    [64, 16, 72],
  ] as const) {
    const { inputs, C } = product(m, n, deep, 3)
    expect(interpreted(k, inputs).get('C')).toEqual(C)
  }
  cudaTexts.push(...k.emit('cuda').map((t) => t.text))
})

test.skipIf(noNvcc !== null)('nvcc compiles these kernels', () => {
  expect(compileTogether(cudaTexts)).toBe('')
})

describe('a TMA box across the edge', () => {
  const steps = (more: string): string => `
    require n % 4 == 0
    require k % 4 == 0
    split i by 2 -> (io, ir)
    split j by 4 -> (jo, jr)
    split p by 4 -> (po, pr)
    reorder (io, jo, po, ir, jr, pr)
    bind io to block.y, jo to block.x
    cache_write C at jo in register -> Cr
    ${more}`
  const refused = (kernel: string, text: string, declared?: string) => {
    const { code, message, expected } = refusal(() => scheduledBy(kernel, text, declared))
    return [code, message.replace(/ \(step.*/s, ''), expected]
  }

  test('is filled with zeros there', () => {
    expect(
      refused('product', steps('cache_read A at po in tile padded 1 -> As\ntensorize As.ir with bulk')),
    ).toEqual([
      'schedule/not-matching',
      'bulk: inside of pr stands not one statement that assigns',
      'loops of 2 (i), 4 (j), directly inside of each other',
    ])
  })

  test('is copied entirely under any condition: without padding the remainder would be stale', () => {
    expect(refused('product', steps('cache_read A at po in tile -> As\ntensorize As.ir with bulk'))).toEqual([
      'schedule/guarded',
      'bulk: not all iterations of ir run: io * 2 + ir_3 < m',
      'loops without conditions',
    ])
  })

  test('continues in the next matrix of several', () => {
    const batch = `${KINDS}
kernel batch(g: size, m: size, k: size) {
  axis b = dense_fixed(g)
  axis i = dense_fixed(m)
  axis p = dense_fixed(k)
  buffer A: f32[b, i, p] in
  buffer C: f32[b, i] out
  iterate sum [b, i, p] as SSR { C[b, i] += A[b, i, p] }
}`
    const text = `
      require k % 4 == 0
      split i by 2 -> (io, ir)
      split p by 4 -> (po, pr)
      reorder (b, io, po, ir, pr)
      bind b to block.y, io to block.x
      cache_write C at io in register
      cache_read A at po in tile padded 0 -> As
      tensorize As.ir with bulk`
    expect(refused('batch', text, batch)).toEqual([
      'schedule/guarded',
      'bulk: io * 2 + ir_3 < m decides which elements are copied, and is not an edge of A, beyond which boxes have zeros',
      'b < g or po * 4 + pr_2 < k',
    ])
  })

  test('is not part of a copy by other instructions', () => {
    const later = steps('cache_read B at po in shared padded 0 -> Bs\ntensorize Bs.jr with later')
    expect(refused('product', later.replace('split p by 4', 'split p by 8'))).toEqual([
      'schedule/guarded',
      'later: not all elements are copied, only where po * 8 + pr_2 < k',
      'a copy without conditions, of a box of a matrix, which is zero outside the matrix, or by an instruction with a filled text',
    ])
  })

  test('has a start that no condition protects', () => {
    const [i, j, n] = [variable('i'), variable('j'), variable('n')]
    const first = loadOf('first', [i], 'i32')
    const limit = (e: Expr): Expr => lt(e, n)
    expect(protectedRead([add(first, j), i], [limit(add(mul(i, int(2)), j))])).toBe(first)
    // Whoever asks whether it is within the limits has read it.
    expect(protectedRead([add(first, j), i], [limit(add(first, j))])).toBeUndefined()
    expect(protectedRead([add(first, j), i], [limit(j)])).toBeUndefined()
    expect(protectedRead([add(first, j), i], [limit(add(first, j)), limit(i)])).toBe(first)
  })
})
