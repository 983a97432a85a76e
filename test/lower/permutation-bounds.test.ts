/** A permutation's numbers are below its length: what is stored for the tiles that it names is copied without asking. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { ceildiv, int, variable } from '../../src/ir/expressions/expr.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { valuesBelow } from '../../src/lower/positions/output-initialization.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs } from '../support/cases.ts'

test('the length of a permutation, and facts about other tables', () => {
  const n = ceildiv(variable('m'), int(4))
  const below = variable('k')
  expect(valuesBelow({ distinct: true }, [n])).toBe(n)
  expect(valuesBelow({ distinct: true, below }, [int(1), n])).toBe(n)
  expect(valuesBelow({ below }, [n])).toBe(below)
  expect(valuesBelow({}, [n])).toBeUndefined()
})

/** Rows of W are stored tile by tile, those with the most columns first; a copy has what the place of its tile says. */
const TEXT = `
format tiles(g, s) over (j, k) {
  sort to by -count(k by to) -> (rank_of, tile)
  axis to = dense_fixed(ceildiv(j, g))
  axis go = dense_variable(to, k)
  list ko = sparse_fixed(go, k, s) padded with last
  axis q = dense_fixed(go, ko)
  axis ji = dense_fixed(g)
  map (j, k) -> (rank_of[j / g], rank(k by j / g) / s, k, position(ko), j % g)
  inverse (to, go, q, ji) -> (tile[to] * g + ji, ko[q])
}
kernel layer(m: size, n: size, d: size) {
  axis j = dense_fixed(m)
  axis k = sparse_variable(j, n)
  axis kd = dense_fixed(n)
  axis i = dense_fixed(d)
  buffer W: i32[j, k] in
  buffer X: i32[kd, i] in
  buffer Y: i32[j, i] out
  iterate sum [j, k, i] as SRS { Y[j, i] += W[j, k] * X[k, i] }
}
schedule layer.copied(g, s, cols) {
  W as tiles(g, s)
  split i by cols -> (fo, fi)
  reorder (to, fo, ji, fi, go, q)
  bind to to block.x, fo to block.y, ji to thread.y, fi to thread.x
  cache_write Y at fi in register
  cache_read W at go in shared
  cache_read X at go in shared padded 0
}`
const layer = parseProgram(TEXT).kernel()

const cases = fc.record({
  g: fc.constantFrom(2, 4),
  s: fc.constantFrom(1, 2, 4),
  cols: fc.constantFrom(2, 4),
  m: fc.nat(9),
  n: fc.integer({ min: 1, max: 9 }),
  d: fc.nat(5),
  // Inputs that a tile keeps: all of its rows have them.
  kept: fc.array(fc.array(fc.nat(8), { maxLength: 9 }), { minLength: 5, maxLength: 5 }),
})
type Drawn = typeof cases extends fc.Arbitrary<infer T> ? T : never

function made({ g, s, cols, m, n, d, kept }: Drawn) {
  const c = layer.schedule('copied', g, s, cols).compilation
  const at = Array.from({ length: m }, (_, j) => j).flatMap((j) =>
    [...new Set(kept[Math.floor(j / g)])].filter((k) => k < n).map((k) => [j, k] as const),
  )
  const W = coords(
    [m, n],
    [at.map((x) => x[0]), at.map((x) => x[1])],
    Int32Array.from(at, (_, e) => (e % 7) - 3),
  )
  const X = dense(
    [n, d],
    Int32Array.from({ length: n * d }, (_, e) => (e % 5) - 2),
  )
  const bound = bindInputs(c.kernel, { tensors: { W, X }, params: { m, n, d } })
  return { c, bound, expected: reference(c.source, referenceInputs(c.source, bound)).buffers }
}

test('stored tiles are copied without conditions, whatever the order; all stages and the cpu agree', async () => {
  await fc.assert(
    fc.asyncProperty(cases, async (drawn) => {
      const { c, bound, expected } = made(drawn)
      const loops = print2(c.loops)
      const copy = loops.slice(loops.indexOf('alloc W_shared'), loops.indexOf('alloc X_shared'))
      expect(copy).toContain('W_shared[')
      expect(copy).not.toMatch(/\bif\b|where|tile\[/)
      expect(c.loops.buffers.find((b) => b.name === 'tile')!.below).toEqual(
        c.loops.buffers.find((b) => b.name === 'tile')!.shape[0],
      )
      agreeOnStages(c, bound, expected)
      await agreeOnDevice(createCpuDevice(), c, bound, expected)
    }),
    { numRuns: runs(6) },
  )
})

test('on webgpu', async () => {
  const device = await createNodeWebGpu()
  await fc.assert(
    fc.asyncProperty(cases, async (drawn) => {
      const { c, bound, expected } = made(drawn)
      await agreeOnDevice(device, c, bound, expected)
    }),
    { numRuns: runs(3) },
  )
  await device.dispose()
})
