/** Rounds: they equal their statements written out, and every stage and device agrees with the reference. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type RefOutputs, reference } from '../../src/reference/index.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { createNodeWebGpu } from '../../src/runtime/webgpu/node.ts'
import { read } from '../elaborate/support.ts'
import { Choices } from '../support/choices.ts'
import { assertCompared, Skipped } from '../support/compared.ts'
import { inRounds, withRounds } from '../support/rounds-gen.ts'
import { sketching } from '../support/sketch-gen.ts'
import { agreeInCases, agreeOnWebGpu, caseOf, inParallel, numbers, parameters } from './property-cases.ts'

let webgpu: Device

beforeAll(async () => {
  webgpu = await createNodeWebGpu()
})
afterAll(async () => {
  await webgpu.dispose()
})

test('rounds equal their statements written out', async () => {
  await assertCompared(
    numbers,
    (choices) => {
      const { sample, unrolled, count } = withRounds(new Choices(choices))
      if (unrolled === null) throw new Skipped('temporaries of a round')
      const outputs = (text: string): RefOutputs['buffers'] => {
        try {
          return reference([...read(text).kernels.values()].at(-1)!, sample.reference).buffers
        } catch (e) {
          throw e instanceof SptError ? new Skipped(e.diagnostics[0]!.code) : e
        }
      }
      const { T_q: counted, ...others } = outputs(sample.text)
      expect(others, sample.text).toEqual(outputs(unrolled))
      if (counted && 'values' in counted)
        expect(Array.from(counted.values).slice(0, count)).toEqual([1, 3].slice(0, count))
    },
    parameters(60),
  )
})

test('every stage and the cpu agree with the reference, under every legal schedule', async () => {
  await agreeInCases(createCpuDevice(), (choices) => caseOf(choices, 12, inRounds), 40)
})

test('default schedules for many threads agree', async () => {
  await agreeInCases(createCpuDevice(), (choices) => inParallel(caseOf(choices, 2, inRounds)), 20)
})

test('webgpu agrees with the reference, under every legal schedule', async () => {
  await agreeOnWebGpu(webgpu, (choices) => caseOf(choices, 8, inRounds), 8)
})

test('webgpu agrees under sketches', async () => {
  await agreeOnWebGpu(webgpu, (choices) => caseOf(choices, 0, inRounds, sketching('webgpu')), 4)
})
