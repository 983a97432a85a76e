/**
 * Boxes at the edges of matrices: they arrive whole, with zeros beyond the last row and column, so tiles need not divide
 * sizes. Whenever copies end, the result is that of the dense product.
 */
import { readFileSync } from 'node:fs'
import { fc } from '@fast-check/vitest'
import { expect, test } from 'vitest'
import type { Inputs } from '../../src/bind/index.ts'
import { coords, dense, type Kernel } from '../../src/node.ts'
import { copiesOf, KINDS, scheduledBy } from './counted-products.ts'

const integers = (length: number, seed: number): number[] =>
  Array.from({ length }, (_, e) => ((e * 31 + seed) % 9) - 4)

interface Edges {
  readonly ordered: boolean
  readonly stages: number
  /** Of the copies of A, of B, and C on its way out: through shared memory or straight. */
  readonly through: boolean
}

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
    ${through ? 'cache_write C at wi in shared -> Cs' : ''}
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
  through: fc.boolean(),
})

test('a product whose tiles divide neither rows, columns nor what is summed over', () => {
  fc.assert(
    fc.property(edges, fc.nat(9), fc.nat(5), fc.nat(5), fc.nat(1000), (e, m, columns, deep, seed) => {
      const [n, k] = [columns * 4, deep * 4]
      const { inputs, C } = product(m, n, k, seed)
      const copies = copiesOf(made('product', tiled(e)), inputs, C, seed)
      // A round has 4 boxes of A and 8 of B, whatever of them is there.
      const rounds = Math.ceil(m / 4) * Math.ceil(n / 8) * Math.ceil(k / 8)
      expect(copies).toBe(rounds * 12)
    }),
    { numRuns: Number(process.env.RUNS ?? 60) },
  )
}, 300_000)

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

test('a product with blocks, whose tiles do not divide the columns of what they meet', () => {
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
    { numRuns: Number(process.env.RUNS ?? 40) },
  )
}, 300_000)
