/** Reversed loops: the same iterations, before `bind` or after it; twice it is the loop as it was. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { print2 } from '../../src/ir/print/print-stage2.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { LoopStep } from '../../src/schedule/steps/step-data.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { runs } from '../support/cases.ts'
import { run, runPlan, samples, withoutFills } from '../support/kernel2.ts'
import { after, choices, drawnState } from '../support/steps.ts'

test('binding and reversing a loop commute, with equal results', () => {
  let bound = 0
  fc.assert(
    fc.property(samples, fc.array(choices, { maxLength: 8 }), (sample, numbers) => {
      const expected = run(sample.kernel, sample.data)
      const state = drawnState(sample.kernel, numbers)
      for (const { var: name } of loopsOf(state.kernel.body)) {
        const reverse: LoopStep = { kind: 'reverse', loop: { var: name } }
        const reversed = after(state, reverse)
        if (typeof reversed === 'string') continue
        verify2(reversed.kernel)
        for (const order of ['forward', 'backward', 'threads'] as const)
          expect(run(reversed.kernel, sample.data, order)).toEqual(expected)
        const twice = after(reversed, reverse)
        expect(typeof twice === 'string' ? twice : run(twice.kernel, sample.data)).toEqual(expected)
        for (const to of ['block.x', 'thread.x'] as const) {
          const bind: LoopStep = { kind: 'bind', bindings: [{ loop: { var: name }, to }] }
          const [first, last] = [after(state, reverse, bind), after(state, bind, reverse)]
          if (typeof first === 'string' || typeof last === 'string') expect(first).toBe(last)
          else {
            bound++
            expect(print2(first.kernel)).toBe(print2(last.kernel))
            expect(withoutFills(runPlan(first.kernel, sample.data), expected)).toEqual(expected)
          }
        }
      }
    }),
    { numRuns: runs(25) },
  )
  expect(bound).toBeGreaterThan(0)
})
