/** Loops over the bits of a word visit those that are set, in order, and no others. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { interpret } from '../../src/interpret/stage2.ts'
import { add, binary, call, cast, constant, type Expr, int, lt, mul } from '../../src/ir/expressions/expr.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { For, Kernel2 } from '../../src/ir/statements/loops.ts'
import { iterateSetBits } from '../../src/lower/loops/set-bit-iteration.ts'
import { runs } from '../support/cases.ts'
import { at, buffer, expr, kernel2, loop, store } from '../support/stage2-builders.ts'

const isSet = (word: Expr): Expr =>
  binary('ne', call('bit_and', [word, call('shift_left', [int(1), expr('b')])]), int(0))
const WORD = at('words', ['t'], 'i32')
const END = at('ends', ['t'], 'i32')

/** `y[t] = y[t] * 3 + b + 1` for the bits b below `extent` that fulfil the conditions. */
const visits = (guards: readonly Expr[], extent: number, more: Partial<For> = {}): Kernel2 => {
  const y = at('y', ['t'], 'f64')
  const next = add(mul(y, constant(3, 'f64')), cast(add(expr('b'), int(1)), 'f64'))
  return kernel2(
    'visits',
    ['n'],
    [
      buffer('words', ['n'], 'in', { dtype: 'i32' }),
      buffer('ends', ['n'], 'in', { dtype: 'i32' }),
      buffer('y', ['n'], 'inout', { dtype: 'f64' }),
    ],
    [loop('t', 'n', [loop('b', extent, [store(y, next)], { guards, ...more })])],
  )
}

function results(kernel: Kernel2, words: readonly number[], end: number): number[] {
  const y = new Array<number>(words.length).fill(0)
  const arrays = new Map([
    ['words', [...words]],
    ['ends', words.map(() => end)],
    ['y', y],
  ])
  interpret(kernel, arrays, new Map([['n', words.length]]))
  return y
}

const alone = (kernel: Kernel2): Kernel2 => iterateSetBits(kernel, { promote: true })

test('visits each set bit that satisfies the other conditions', () => {
  const words = fc.oneof(fc.constantFrom(0, 1, -1, -(2 ** 31), 2 ** 31 - 1), fc.integer())
  fc.assert(
    fc.property(
      fc.array(words, { maxLength: 4 }),
      fc.constantFrom(32, 31, 16, 1),
      fc.option(fc.nat(33)),
      (words, extent, end) => {
        const others = end === null ? [] : [lt(expr('b'), END)]
        const kernel = visits([isSet(WORD), ...others], extent)
        const now = alone(kernel)
        expect(loopsOf(now.body).some((l) => l.guards.length > 0 || l.extent.kind === 'const')).toBe(false)
        expect(results(now, words, end ?? 0)).toEqual(results(kernel, words, end ?? 0))
      },
    ),
    { numRuns: runs(60) },
  )
})

test.each([
  ['on threads', visits([isSet(WORD)], 32, { mode: { kind: 'bind', to: 'thread.x' } })],
  ['written out', visits([isSet(WORD)], 32, { mode: { kind: 'unroll', factor: 4 } })],
  ['of more numbers than a word has bits', visits([isSet(WORD)], 33)],
  ['of a word that changes', visits([isSet(expr('b'))], 32)],
  ['of a word that another condition comes before', visits([lt(expr('b'), END), isSet(WORD)], 32)],
])('a loop is unchanged: %s', (_, kernel) => {
  expect(alone(kernel)).toBe(kernel)
})

test('on targets with threads, loops of known length are kept', () => {
  const kernel = visits([isSet(WORD)], 32)
  expect(iterateSetBits(kernel)).toBe(kernel)
})
