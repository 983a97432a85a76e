/** Rows of a block that meet by themselves, over shared memory that is theirs. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import { all, builtin, lt, type ThreadAxis } from '../../src/ir/expressions/expr.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { type Body, stmt } from '../../src/ir/statements/tree.ts'
import { varyingIn } from '../../src/lower/divergence/divergence-analysis.ts'
import { conditionsUnder } from '../../src/lower/divergence/divergent-conditions.ts'
import { load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { compileTogether, noNvcc } from '../support/nvcc.ts'
import { runPlan, statementsOf } from '../support/plans.ts'
import { at, expr, loop, reduce, store } from '../support/stage2-builders.ts'

const program = await load(`
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
schedule product.staged(rows, tile, lanes) {
  split i by rows -> (io, ii)
  split f by lanes -> (fo, fi)
  split j by tile -> (jo, ji)
  reorder (io, fo, ii, fi, jo, ji)
  bind io to block.x, fo to block.y, ii to thread.y, fi to thread.x
  cache_write C at fi in register
  cache_read A at jo in shared
}
schedule product.blocks(tile, lanes) {
  split f by lanes -> (fo, fi)
  split j by tile -> (jo, ji)
  reorder (i, fo, fi, jo, ji)
  bind i to block.x, fo to block.y, fi to thread.x
  cache_write C at fi in register
  cache_read A at jo in shared
}`)
const plan = (schedule: string, args: readonly number[], lanes: number, together = false): Kernel3 =>
  program
    .kernel()
    .schedule(schedule, ...args)
    .compilation.planFor({ lanes, together })

const barriers = (p: Kernel3): readonly Stmt[] => statementsOf(p, (s) => s.kind === 'barrier')

test('values exchanged by lanes of a row arrive', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(7), { maxLength: 6 }),
      fc.integer({ min: 1, max: 6 }),
      fc.constantFrom(1, 2, 3),
      fc.constantFrom(2, 3, 8),
      fc.constantFrom(2, 4, 8),
      fc.constantFrom(8, 32),
      (lengths, d, rows, tile, width, lanes) => {
        const [m, n] = [lengths.length, 7]
        const j_indptr = [0]
        for (const l of lengths) j_indptr.push(j_indptr.at(-1)! + l)
        const j_indices = lengths.flatMap((l) => Array.from({ length: l }, (_, k) => (k * 3 + l) % n))
        const A = j_indices.map((_, p) => (p % 5) + 1)
        const B = Array.from({ length: n * d }, (_, k) => (k % 7) - 3)
        const C = new Array<number>(m * d).fill(0)
        j_indices.forEach((j, p) => {
          const i = j_indptr.findLastIndex((start) => start <= p)
          for (let f = 0; f < d; f++) C[i * d + f]! += A[p]! * B[j * d + f]!
        })
        for (const p of [plan('staged', [rows, tile, width], lanes), plan('blocks', [tile, width], lanes)]) {
          const poison = new Array<number>(m * d).fill(Number.NaN)
          const sizes = { m, n, d, j_count: A.length }
          const out = runPlan(p, sizes, { A, B, j_indptr, j_indices, C: poison })
          expect(out.C!.map((x) => x + 0)).toEqual(C.map((x) => x + 0))
        }
      },
    ),
    { numRuns: runs(60) },
  )
})

test('rows within a warp synchronise separately, others as a block', () => {
  const staged = barriers(plan('staged', [4, 8, 8], 32))
  expect(staged.map((b) => b.kind === 'barrier' && b.lanes)).toEqual([
    { width: 8, among: 8 },
    { width: 8, among: 8 },
  ])
  // A block of one row: all rounds are the same for its lanes.
  const blocks = barriers(plan('blocks', [8, 32], 32))
  expect(blocks.map((b) => b.kind === 'barrier' && b.lanes)).toEqual([
    { width: 32, among: 32 },
    { width: 32, among: 32 },
  ])
  for (const wide of [24, 64])
    expect(barriers(plan('blocks', [8, wide], 32)).every((b) => b.kind === 'barrier' && !b.lanes)).toBe(true)
})

test('loops of different lengths are rejected if rows cannot synchronise separately', () => {
  expect(() => plan('staged', [4, 8, 64], 32)).toThrow('divergent-barrier')
  expect(() => plan('staged', [4, 8, 8], 1)).toThrow('divergent-barrier')
  expect(() => plan('staged', [4, 8, 8], 32, true)).toThrow('divergent-barrier')
})

describe('thread conditions around cooperative code', () => {
  const [x, y] = [builtin('thread.x'), builtin('thread.y')]
  const threads = new Map<ThreadAxis, number>([
    ['thread.x', 8],
    ['thread.y', 4],
  ])
  const conditions = conditionsUnder(varyingIn([], threads), new Names())
  const [inRow, ofRow] = [lt(x, expr('d')), lt(y, expr('m'))]
  const put = store(at('C', [0]), 1)
  const meet: Stmt = stmt({ kind: 'barrier', lanes: { width: 8, among: 8 } })
  const rounds = (body: Body) => loop('j', at('lengths', [y], 'i32'), body)

  test('conditions on a row are outside of its iterations, conditions on a lane inside', () => {
    expect(conditions.guard([ofRow, inRow], [rounds([put, meet, put])])).toEqual([
      when(ofRow, [rounds([when(inRow, [put]), meet, when(inRow, [put])])]),
    ])
    expect(conditions.guard([inRow], [rounds([meet])])).toEqual([rounds([meet])])
    expect(conditions.guard([ofRow, inRow], [put])).toEqual([when(all([ofRow, inRow]), [put])])
  })

  test('rows that distribute a loop have equal trip counts', () => {
    const shared = (...along: ThreadAxis[]) => loop('e', 4, [put], { cooperative: true, along })
    expect(() => conditions.inRounds(rounds([]), [loop('k', 2, [shared('thread.y', 'thread.x')])])).toThrow(
      'divergent-barrier',
    )
    expect(conditions.inRounds(rounds([]), [shared('thread.x')])).toEqual([shared('thread.x')])
  })

  test('lanes that exchange within their row do not wait for other rows', () => {
    const add = (among: number): Stmt => stmt({ ...reduce(at('C', [0]), '+', 1), lanes: { width: 8, among } })
    expect(conditions.inRounds(rounds([]), [add(32), meet])).toEqual([add(8), meet])
    expect(conditions.onOwners(ofRow, [add(32)])).toEqual([when(ofRow, [add(8)])])
  })
})

test.skipIf(noNvcc)('nvcc compiles it', () => {
  const texts = [
    ['staged', 4, 32, 32],
    ['staged', 4, 8, 8],
    ['blocks', 32, 32],
  ].map(([s, ...args]) =>
    program
      .kernel()
      .schedule(s as string, ...(args as number[]))
      .emit('cuda')
      .map((t) => t.text)
      .join('\n'),
  )
  expect(texts[1]).toContain('__syncwarp(lanes<8>())')
  for (const t of texts) expect(t).not.toContain('__syncthreads')
  expect(compileTogether(texts)).toBe('')
})
if (noNvcc) console.log(`skipped: compiling CUDA: ${noNvcc}`)
