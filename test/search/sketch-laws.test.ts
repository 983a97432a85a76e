/** Sketches of generated kernels: every point computes what the reference computes, or is refused with a code. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createCpuDevice } from '../../src/runtime/cpu.ts'
import { agreeOnDevice, agreeOnStages } from '../laws/agree.ts'
import { carriedOut, caseOf, numbers, parameters } from '../laws/law.ts'
import { sketching } from '../support/sketch-gen.ts'

for (const device of ['cpu', 'webgpu', 'cuda'] as const)
  test(`points of sketches for ${device} change no result`, async () => {
    const cpu = createCpuDevice()
    await fc.assert(
      fc.asyncProperty(numbers, async (choices) => {
        const k = caseOf(choices, 0, undefined, sketching(device))
        if (!k) return
        await carriedOut(k, async () => {
          agreeOnStages(k.compilation, k.bound, k.expected)
          expect(await agreeOnDevice(cpu, k.compilation, k.bound, k.expected)).toBe(true)
        })
      }),
      parameters(16),
    )
  }, 600_000)
