import { describe, expect, test } from 'vitest'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import { LOOP_STEPS } from '../../src/schedule/primitives.ts'
import { apply, start } from '../../src/schedule/state/state.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'

describe('every primitive does what its documentation shows', () => {
  for (const { word, example } of Object.values(LOOP_STEPS))
    test(word, () => {
      verify2(example.before)
      const { kernel } = apply(start(example.before), example.step)
      expect(printBody(kernel.body)).toBe(example.after)
      verify2(kernel)
    })
})
