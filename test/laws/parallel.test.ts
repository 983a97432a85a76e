/** Default schedules: every kernel has one, after any steps, and computes with it what the reference computes. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { loopsOf } from '../../src/ir/tree.ts'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import { agreeOnDevice, agreeOnStages } from './agree.ts'
import { carriedOut, caseOf, numbers, parameters, runs } from './law.ts'

const CASES = 100

test('default schedules end, and change no result', async () => {
  const device = createCpuDevice()
  let carried = 0
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(numbers, async (choices) => {
      const k = caseOf(choices, 2)
      if (!k) return
      const compilation = k.compilation.parallel()
      const done = await carriedOut(k, async () => {
        agreeOnStages(compilation, k.bound, k.expected)
        expect(await agreeOnDevice(device, compilation, k.bound, k.expected)).toBe(true)
      })
      if (done && loopsOf(compilation.loops.body).some((l) => l.mode.kind === 'bind')) carried++
      for (const s of compilation.loopSteps.slice(k.compilation.loopSteps.length)) kinds.add(s.kind)
    }),
    parameters(CASES),
  )
  expect(carried).toBeGreaterThan(0.7 * runs(CASES))
  expect([...kinds].sort()).toEqual(['bind', 'combine', 'reorder', 'rfactor', 'split'])
}, 600_000)
