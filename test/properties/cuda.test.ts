/** The same property on CUDA, where there is a device: emitted texts compiled, run on poisoned memory, equal to the last bit. */
import { afterAll, beforeAll, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCudaDevice } from '../../src/runtime/cuda/index.ts'
import type { Device } from '../../src/runtime/device.ts'
import { conditional } from '../support/condition-gen.ts'
import { inPlace } from '../support/in-place-gen.ts'
import { sharing } from '../support/schedule-gen.ts'
import { agreeOnDevice } from './agree.ts'
import { assertCases, caseOf, inParallel } from './property-cases.ts'

let device: Device | undefined

beforeAll(async () => {
  try {
    device = await createCudaDevice()
  } catch (e) {
    if (!(e instanceof SptError)) throw e
  }
})
afterAll(async () => {
  await device?.dispose()
})

const PROPERTIES = [
  ['under every legal schedule', (c: readonly number[]) => caseOf(c, 12)],
  ['with its default schedule', (c: readonly number[]) => caseOf(c, 2)],
  ['whatever conditions say', (c: readonly number[]) => caseOf(c, 8 * (c.at(-1)! % 2), conditional)],
  ['what is updated in place', (c: readonly number[]) => caseOf(c, 10, inPlace, sharing)],
] as const

test.for(PROPERTIES)(
  'cuda agrees with the reference, %s',
  { timeout: 3_600_000 },
  async ([name, make], { skip }) => {
    const on = device ?? skip('there is no CUDA device')
    await assertCases(
      (choices) => (name.includes('default') ? inParallel(make(choices)) : make(choices)),
      (k) => agreeOnDevice(on, k.compilation, k.bound, k.expected),
      50,
    )
  },
)
