/** Conditions of the text over tiles may wrap: they bound no loop, nor hold in whole tiles, but where they cannot. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import { runs } from '../support/cases.ts'

const cpu = createCpuDevice()
const LARGE = 2 ** 30

/** What stands beside `v * size`: small numbers, ones that wrap, and ones that depend on v. */
const rest = fc.oneof(
  fc.integer({ min: 0, max: 8 }).map((by) => `w * ${by}`),
  fc.constantFrom(
    `-w * ${LARGE}`,
    `w * ${LARGE}`,
    `w * ${LARGE} / ${LARGE / 2}`,
    `(w + m) * ${LARGE} / ${LARGE / 2}`,
    `(w + m) * ${LARGE} % 8`,
    `min(m * ${LARGE}, 3)`,
  ),
  fc.constantFrom('v % 8', 'v % 2', 'min(v, 3)'),
)
const steps = [
  '',
  'reorder (v, w)',
  'reorder (v, w)\n bind v to block.x\n unroll w',
  'reorder (w, v)\n bind w to block.x',
]

test('conditions of the program, with any wrapping', async () => {
  await fc.assert(
    fc.asyncProperty(
      rest,
      fc.constantFrom(3, 8),
      fc.constantFrom('+', '+', '-'),
      fc.constantFrom(...steps),
      fc.nat(40),
      fc.integer({ min: 0, max: 3 }),
      async (r, size, sign, schedule, n, m) => {
        const text = `kernel k(n: size, m: size) {
          axis v = dense_fixed(ceildiv(n, ${size}))
          axis w = dense_fixed(4)
          buffer Y: i32[v, w] out
          iterate all [v, w] as SS where (i32(v) * ${size} ${sign} (${r}) < n) { Y[v, w] = 1 + v }
        }
        schedule k.s { ${schedule} }`
        const compiled = await parseProgram(text).kernel().schedule('s').build(cpu)
        const prepared = await compiled.bind({ n, m })
        expect((await prepared.verify()).problems).toEqual([])
        prepared.free()
        compiled.release()
      },
    ),
    { numRuns: runs(120) },
  )
})
