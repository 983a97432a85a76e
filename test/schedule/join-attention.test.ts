/** Attention over a pattern in two parts: all nests of its rows in one loop, in one launch, with what is kept of a row in registers. */

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, dense } from '../../src/api/inputs/tensors.ts'
import { parseFormatExpression } from '../../src/elaborate/index.ts'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { devices, type Kernel, load } from '../../src/node.ts'
import type { Inputs } from '../../src/run/bind/index.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { runs } from '../support/cases.ts'

const program = await load('kernels/attention.spt')
const { formats } = await load('kernels/formats.spt')
const { format } = parseFormatExpression('csr where (j <= i) + csr', formats)

const named = (names: string): string[] => names.split(' ').flatMap((n) => [`${n}_csr`, `${n}_csr_2`])

const parts = (kernel: string): Kernel => program.kernel(kernel).as('S', format)

/** Of the nests, in registers. */
const twoPasses = parts('attention')
  .reorder('mix_csr.io_csr', 'mix_csr.f', 'mix_csr.jo_csr')
  .join(named('score peak weight total mix'), 'score_csr.io_csr')
  .bind({ io_csr: 'block.x' })
  .cacheWrite('M', 'io_csr', 'register')
  .cacheWrite('Z', 'io_csr', 'register')
const online = parts('attention_online')
  .join([...named('score mix'), 'row'], 'row.i')
  .bind({ io_csr: 'block.x' })

const inputs = fc
  .record({
    m: fc.integer({ min: 0, max: 6 }),
    n: fc.integer({ min: 1, max: 6 }),
    held: fc.array(fc.boolean(), { minLength: 36, maxLength: 36 }),
    values: fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 64, maxLength: 64 }),
  })
  .map(({ m, n, held, values }): Inputs => {
    const at = held.flatMap((h, k) => (h && k < m * n ? [[Math.floor(k / n), k % n] as const] : []))
    const numbers = (count: number, from: number): Float32Array =>
      Float32Array.from({ length: count }, (_, k) => values[(from + k) % 64]!)
    return {
      tensors: {
        j: coords([m, n], [at.map((x) => x[0]), at.map((x) => x[1])], null),
        Q: dense([m, 2], numbers(2 * m, 0)),
        K: dense([n, 2], numbers(2 * n, 7)),
        V: dense([n, 3], numbers(3 * n, 11)),
      },
      params: { scale: 0.5 },
    }
  })

test.each([
  ['two passes', twoPasses],
  ['online', online],
])('%s: one launch, which agrees with the reference on cpu and webgpu', async (_, k) => {
  expect(k.compilation.plan.steps.filter((s) => s.kind === 'launch')).toHaveLength(1)
  for (const device of [await devices.cpu(), await createNodeWebGpu()]) {
    const compiled = await k.build(device)
    await fc.assert(
      fc.asyncProperty(inputs, async (given) => {
        const prepared = await compiled.bind(...flatInputs(given))
        await prepared.run()
        expect((await prepared.verify()).ok).toBe(true)
      }),
      { numRuns: runs(8) },
    )
    await device.dispose()
  }
})

test('sums of a row stay in registers', () => {
  const text = print2(twoPasses.compilation.loops, { bodyOnly: true })
  expect(text).toMatch(
    /alloc M_register[\s\S]*M_register\[0\] max= S_csr\[[\s\S]*M_register\[0\] max= S_csr_2\[/,
  )
  expect(text).toMatch(/Z_register\[0\] \+= S_csr\[[\s\S]*Z_register\[0\] \+= S_csr_2\[/)
  expect(text).not.toMatch(/ [MZ]\[/)
})
