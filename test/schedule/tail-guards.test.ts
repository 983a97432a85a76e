/**
 * Copies of stored blocks hold whole blocks, also those beyond the tensor's edges: nothing is asked that keeps no address in
 * range. Slots without a coordinate hold NaN here, and change nothing; what is not stored stays asked for.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { reference } from '../../src/reference/index.ts'
import { bindInputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { agreeOnDevice, agreeOnStages } from '../properties/agree.ts'
import { runs, scaled } from '../support/cases.ts'
import { standard } from '../support/packaged-formats.ts'

const KERNEL = `kernel k(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}`
const program = parseProgram(`${standard('bsr')}
${KERNEL}`)

const cases = fc.record({
  m: fc.integer({ min: 1, max: 9 }),
  n: fc.integer({ min: 1, max: 9 }),
  b: fc.constantFrom(2, 4),
  place: fc.constantFrom('shared' as const, 'register' as const),
  at: fc.constantFrom('jo', 'jo', 'ii', 'io'),
  buffer: fc.constantFrom('A', 'B'),
  threads: fc.boolean(),
  order: fc.boolean(),
  stored: fc.array(fc.tuple(fc.nat(8), fc.nat(8)), { maxLength: 12 }),
})

/** The guards around what is copied into `into`. */
function guardsOf(text: string, into: string): readonly string[] {
  const lines = text.split('\n')
  const last = lines.findIndex((l) => l.includes(`${into}[`) && l.includes('] = '))
  const out: string[] = []
  for (let k = last - 1, depth = lines[last]!.search(/\S/); k >= 0; k--) {
    const own = lines[k]!.search(/\S/)
    if (own >= depth) continue
    depth = own
    if (lines[k]!.includes(`(${into}.`) && lines[k]!.includes(' where ')) out.push(lines[k]!)
  }
  return out
}

test('copies of blocks', async () => {
  const seen = { bare: 0, guarded: 0 }
  await fc.assert(
    fc.asyncProperty(cases, async ({ m, n, b, place, at, buffer, threads, order, stored }) => {
      const inside = [...new Map(stored.filter(([i, j]) => i < m && j < n).map((x) => [`${x}`, x])).values()]
      const tensors = {
        A: coords(
          [m, n],
          [inside.map((x) => x[0]), inside.map((x) => x[1])],
          Float32Array.from(inside, (_, e) => e + 1),
        ),
        B: dense(
          [n, 2],
          Float32Array.from({ length: 2 * n }, (_, e) => e - 3),
        ),
      }
      let k = program.kernel().as('A', 'bsr', b).require('d', { equal: 2 })
      try {
        if (order) k = k.reorder('io', 'jo', 'ii', 'f', 'ji')
        if (threads) k = k.bind({ io: 'block.x', ii: 'thread.x' })
        k = k.cacheRead(buffer, at, place, 'copy')
      } catch (e) {
        if (e instanceof SptError) return
        throw e
      }
      const guards = guardsOf(k.show(2), 'copy')
      if (buffer === 'A') expect(guards).toEqual([])
      if (guards.length > 0) seen.guarded++
      else if (buffer === 'A') seen.bare++
      const c = k.compilation
      const bound = bindInputs(c.kernel, { tensors })
      const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
      const values = (bound.arrays.get('A') as Float32Array).slice()
      const [indptr, indices] = ['jo_indptr', 'jo_indices'].map((x) => bound.arrays.get(x) as Int32Array)
      for (let io = 0; io + 1 < indptr!.length; io++)
        for (let p = indptr![io]!; p < indptr![io + 1]!; p++)
          for (let q = 0; q < b * b; q++)
            if (io * b + Math.floor(q / b) >= m || indices![p]! * b + (q % b) >= n)
              values[p * b * b + q] = Number.NaN
      const poisoned = { ...bound, arrays: new Map(bound.arrays).set('A', values) }
      agreeOnStages(c, poisoned, expected)
      await agreeOnDevice(createCpuDevice(), c, poisoned, expected)
    }),
    { numRuns: runs(80) },
  )
  expect(seen.bare).toBeGreaterThan(scaled(3))
  expect(seen.guarded).toBeGreaterThan(scaled(3))
})

test.each([
  // Rows that are not stored, the last beyond the edge.
  ['Z: f32[i, f] in', 'Z[io * 4 + ii, f]', 'io * 4 + ii < m', 1],
  ['Z: f32[io, ii, f] in', 'Z[io, ii, f]', 'io * 4 + ii < m', 0],
  // What a kernel writes itself may not have been written there.
  ['Z: f32[io, ii, f] inout', 'Z[io, ii, f]', 'io * 4 + ii < m', 1],
  // It does not hold where the tile begins.
  ['Z: f32[io, ii, f] in', 'Z[io, ii, f]', 'io * 4 + ii < m - 1', 1],
])('%s, read as %s where %s', (declared, read, where, count) => {
  const k = parseProgram(`kernel k(m: size, d: size) {
  axis io = dense_fixed(ceildiv(m, 4))
  axis ii = dense_fixed(4)
  axis i = dense_fixed(m)
  axis f = dense_fixed(d)
  buffer ${declared}
  buffer C: f32[io, f] out
  iterate sum [io, ii, f] as SRS where (${where}) { C[io, f] += ${read} }
}`)
    .kernel()
    .require('d', { equal: 2 })
    .cacheRead('Z', 'io', 'register', 'copy')
  expect(guardsOf(k.show(2), 'copy')).toHaveLength(count)
})
