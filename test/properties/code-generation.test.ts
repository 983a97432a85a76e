/**
 * No legal program dies: under long schedules of all kinds of steps, in several formats, every pass and every target
 * gives what its verifier accepts, of a length in proportion, or refuses with a diagnostic. Schedules as text say the same.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { Choices, choiceNumbers } from '../support/choices.ts'
import { conditional } from '../support/condition-gen.ts'
import { inPlace } from '../support/in-place-gen.ts'
import { generate } from '../support/program-gen.ts'
import { carry, emits } from './code-generation.ts'
import { parameters } from './property-cases.ts'

const CASES = 24

test('every program under a long schedule is emitted, or rejected with a diagnostic', () => {
  let made = 0
  let texts = 0
  fc.assert(
    fc.property(fc.noBias(choiceNumbers(1500)), (choices) => {
      const c = new Choices(choices)
      const make = c.pick([generate, generate, generate, conditional, inPlace])
      const emitted = emits(c, make(c))
      if (!emitted) return
      made++
      texts += emitted.texts
    }),
    parameters(CASES),
  )
  expect(made).toBeGreaterThan(0)
  expect(texts).toBeGreaterThan(0)
}, 3_600_000)

/** Schedules that the property found, and what they are about. */
const FOUND = {
  'shared memory of a vector loop that all threads fill': `
    kernel k(m: size) {
      axis i = dense_fixed(m)
      axis q = dense_fixed(m)
      buffer A: f32[i] in
      buffer Y: f32[i] inout
      iterate first [i] as S { Y[i] = A[i] + 1 }
    }
    schedule k.s {
      cache_write Y at i in shared
      split i by 4 -> (ia, ib)
      vectorize ib
      cache_write Y at ia in register
      split Y_register.ib by 2 -> (ic, id)
      bind Y_register.id to thread.y
    }`,
}

test.each(Object.entries(FOUND))('%s', (_, text) => {
  const { refused, texts } = carry(parseProgram(text).kernel().schedule('s').compilation)
  expect([refused, texts]).toEqual([[], 3])
})
