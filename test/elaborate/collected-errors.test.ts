/** Errors reach the elaboration that has them: of nested collections, of declarations that are elaborated once, later. */
import { expect, test } from 'vitest'
import { InternalError, resultOrError, type SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import {
  collectErrors,
  currentErrors,
  errorCount,
  report,
  reportingTo,
  throwErrors,
} from '../../src/elaborate/diagnostics.ts'
import { elaborate } from '../../src/elaborate/index.ts'
import { loadProgram } from '../../src/schedule/steps/language.ts'

const at = (start: number) => ({ source: 'text', start, end: start + 1 })
const fail = (start: number): null =>
  report('check/test', at(start), { message: `error ${start}`, expected: 'nothing' })
const places = (work: () => unknown): (number | undefined)[] =>
  collectErrors(work).errors.map((d) => d.span?.start)

test('errors are added to the innermost collection, or to the one that is named', () => {
  const inner: (number | undefined)[] = []
  const outer = places(() => {
    fail(0)
    const whole = currentErrors()
    inner.push(
      ...places(() => {
        fail(1)
        reportingTo(whole, () => fail(2))
        // A repeated error counts, so that the check that reports it fails each time.
        fail(1)
        expect(errorCount()).toBe(2)
      }),
    )
    fail(3)
  })
  expect([outer, inner]).toEqual([
    [0, 2, 3],
    [1, 1],
  ])
  expect(
    resultOrError(() =>
      throwErrors(() => {
        fail(1)
        fail(1)
      }),
    ),
  ).toHaveProperty('diagnostics.length', 1)
})

test('an exception ends its own collection only', () => {
  expect(
    places(() => {
      fail(0)
      expect(() =>
        throwErrors(() => {
          fail(1)
          throw new RangeError('half-way')
        }),
      ).toThrow(RangeError)
      expect(() => throwErrors(() => fail(2))).toThrow('error 2')
      fail(3)
    }),
  ).toEqual([0, 3])
  expect(() => fail(4)).toThrow(InternalError)
})

const put = (name: string): string => `
  instr ${name}(D: f32[8, 8] in shared, S: f32[8, 8] in global, T: f32[8, 8] in tile) {
    iterate copy [i, j] as SS { D[i, j] = S[i, j] }
    cuda \`${name}($D.shared(0, 0));\`
  }`
const LIBRARY = `memory tile: f32[8, 8] in shared { address (i, j) -> row * 8 + j }${put('put')}${put('place')}`

const codesOf = async (names: string): Promise<readonly string[]> => {
  const main = `import { ${names} } from "./library.spt"`
  try {
    elaborate(await loadProgram('main.spt', async (path) => (path === 'main.spt' ? main : LIBRARY)))
    return []
  } catch (e) {
    return (e as SptError).diagnostics.map((d) => d.code)
  }
}

test('an instruction of an invalid memory is an error of every program that imports it', async () => {
  for (const names of ['put, place', 'place', 'put', 'place, put'])
    expect(await codesOf(names), names).toEqual(['check/unknown-name'])
})
