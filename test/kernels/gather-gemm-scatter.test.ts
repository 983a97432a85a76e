/** Pairs of groups that are added up by rows without atomics: any structure and any shares, against the reference. */

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type Device, devices, load } from '../../src/node.ts'
import { runs } from '../support/cases.ts'
import { integers } from '../support/kernels.ts'

const KERNELS = [
  ['gather-gemm-scatter', 'gather_gemm_scatter'],
  ['gather-gemm-scatter', 'gather_gemm_scatter<f16>'],
  ['gather-gemm-scatter', 'gather_gemm_scatter<bf16>'],
] as const

const SCHEDULES = {
  // w, shares, share, lanes, each
  ordered: fc.tuple(
    fc.integer({ min: 1, max: 5 }),
    fc.constantFrom(1, 2, 3, 16),
    fc.integer({ min: 1, max: 9 }),
    fc.constantFrom(1, 2, 8),
    fc.integer({ min: 1, max: 4 }),
  ),
  // parts, w, lanes
  by_rows: fc.tuple(fc.constantFrom(1, 3, 16), fc.integer({ min: 1, max: 5 }), fc.constantFrom(1, 2, 8)),
}

/** Pairs, maybe repeated, mostly of few rows; groups and rows without any. */
const cases = fc.tuple(fc.nat(4), fc.nat(20), fc.nat(20)).chain(([groups, m, n]) => {
  const empty = groups * m * n === 0
  const rows = fc.oneof(fc.nat(Math.max(0, m - 1)), fc.constant(0))
  const pair = fc.tuple(fc.nat(Math.max(0, groups - 1)), rows, fc.nat(Math.max(0, n - 1)))
  return fc.record({
    shape: fc.constant([groups, m, n] as const),
    pairs: fc.array(pair, { maxLength: empty ? 0 : 120 }),
    channels: fc.nat(3).map((c) => 4 * c),
    columns: fc.nat(10).map((c) => 4 * c),
    seed: fc.nat(),
  })
})
type Case = typeof cases extends fc.Arbitrary<infer T> ? T : never

const call = fc
  .constantFrom(...KERNELS)
  .chain(([file, kernel]) =>
    fc.oneof(
      ...Object.entries(SCHEDULES).map(([schedule, args]) =>
        args.map((a) => ({ file, kernel, schedule, args: a })),
      ),
    ),
  )

/** What no pair has is NaN. */
function inputsOf({ shape, pairs, channels, columns, seed }: Case) {
  const [groups, , n] = shape
  const only = (used: readonly number[], count: number, each: number, from: number): Float32Array => {
    const values = integers(count * each, from)
    const known = new Set(used)
    return values.map((v, k) => (known.has(Math.floor(k / each)) ? v : Number.NaN))
  }
  const column = (d: 0 | 1 | 2): Int32Array => Int32Array.from(pairs, (p) => p[d])
  return {
    tensors: {
      A: coords(shape, [column(0), column(1), column(2)], integers(pairs.length, seed)),
      X: only([...column(2)], n, channels, seed + 1),
      W: only([...column(0)], groups, channels * columns, seed + 2),
    },
    params: { channels, out_channels: columns },
  }
}

const present: Device[] = []
beforeAll(async () => {
  present.push(await devices.cpu(), await devices.webgpu())
})
afterAll(async () => {
  for (const d of present) await d.dispose()
})

test.each([
  ['cpu', 0, 30],
  ['webgpu', 1, 4],
] as const)(
  'sums by rows equal the reference on %s, without out-of-bounds reads',
  async (_, device, usual) => {
    await fc.assert(
      fc.asyncProperty(call, fc.array(cases, { minLength: 1, maxLength: 4 }), async (c, all) => {
        const kernel = (await load(`kernels/${c.file}.spt`)).kernel(c.kernel).schedule(c.schedule, ...c.args)
        const compiled = await kernel.build(present[device]!)
        for (const each of all) {
          const prepared = await compiled.bind(...flatInputs(inputsOf(each)))
          const v = await prepared.verify()
          prepared.free()
          expect([v.problems, v.maxAbsoluteError]).toEqual([[], 0])
        }
        compiled.release()
      }),
      { numRuns: runs(usual) },
    )
  },
)
