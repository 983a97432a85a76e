/** Hints for steps of other systems are steps that parse. */
import { expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { STEPS, typeMeant } from '../../src/ast/diagnostics/foreign-names.ts'

test.each(Object.entries(STEPS))('the step for %s parses: %s', (_, step) => {
  try {
    parseProgram(`kernel k(d: size) {
      axis i = dense_fixed(d)
      buffer B: f32[i] out
      iterate k [i] as S { B[i] = 1 }
    }
    schedule k.s { ${step} }`)
  } catch (e) {
    if (!(e instanceof SptError)) throw e
    expect(e.diagnostics.filter((d) => d.code.startsWith('parse/'))).toEqual([])
  }
})

test('only types that exist are suggested', () => {
  expect(typeMeant('Float', ['f32', 'f64'])).toBe('write `f32`')
  expect(typeMeant('float', ['i32'])).toBeUndefined()
  expect(typeMeant('thing', ['f32'])).toBeUndefined()
})
