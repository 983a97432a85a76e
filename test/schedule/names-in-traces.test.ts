/** Every name that a step accepts for what it makes stands in a trace that is a text of the language. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import { runs } from '../support/cases.ts'

const TEXT = `kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis f = dense_fixed(n)
  buffer X: f32[i, f] in
  buffer Y: f32[i] out
  iterate s [i, f] as SR { Y[i] += X[i, f] }
}`
const kernel = parseProgram(TEXT).kernel()

const STEPS: Readonly<Record<string, (name: string) => Kernel>> = {
  'fuse on coordinates': (name) => parseProgram(SPATIAL).kernel().fuse(['i', 'f'], name),
  'the outer loop of a split': (name) => kernel.split('i', 2, [name, 'inner']),
  'the inner loop of a split': (name) => kernel.split('i', 2, ['outer', name]),
  'fuse on loops': (name) => kernel.split('i', 2, ['io', 'ii']).fuse(['io', 'ii'], name),
  tile: (name) => kernel.tile(['i', 'f'], [2, 2], ['a', name, 'c', 'd']),
  cache_read: (name) => kernel.cacheRead('X', 'f', 'register', name),
  cache_write: (name) => kernel.cacheWrite('Y', 'i', 'register', name),
  rfactor: (name) => kernel.split('f', 2, ['fo', 'fi']).rfactor('fi', name),
  accumulate: (name) => kernel.accumulate('Y', 'i', 2, { into: name }),
}
const SPATIAL = TEXT.replace('dense_fixed(n)', 'sparse_variable(i, n)')
  .replace('Y: f32[i]', 'Y: f32[i, f]')
  .replace('SR { Y[i] +=', 'SS { Y[i, f] =')
const WORDS = 'let if else iterate as and or not true false inf nan'.split(' ')
const WRONG = ['', ' ', 'two words', '1x', 'é', 'a-b', 'x\n', 'a.b', ...WORDS]
/** Words that are keywords in their place alone. */
const NAMES = ['x', '_', 'at', 'by', 'in', 'size', 'split', 'iff', 'lets', 'part', 'to', 'x9']

/** The kernel with the steps of its trace as a schedule. */
const again = (k: Kernel, text: string): Kernel =>
  parseProgram(`${text}\nschedule k.again() {\n${k.trace.join('\n')}\n}`)
    .kernel()
    .schedule('again')

const codeOf = (f: () => unknown): string => {
  try {
    f()
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
  return 'none'
}

describe.each(Object.entries(STEPS))('%s', (what, step) => {
  const text = what === 'fuse on coordinates' ? SPATIAL : TEXT
  const can = what !== 'accumulate'
  test.each(WRONG)('%j is rejected', (name) => expect(codeOf(() => step(name))).toBe('schedule/bad-name'))
  test.runIf(can).each(NAMES)('%s gives a trace that parses', (name) => {
    const k = step(name)
    expect(again(k, text).trace).toEqual(k.trace)
  })
  test('accepted names parse', () => {
    const name = fc.oneof(
      fc.string({ maxLength: 4 }),
      fc.stringMatching(/^[a-z_][a-z0-9_]{0,3}$/),
      fc.constantFrom(...WORDS, ...NAMES),
    )
    fc.assert(
      fc.property(name, (name) => {
        let made: Kernel
        try {
          made = step(name)
        } catch (e) {
          expect(e).toBeInstanceOf(SptError)
          return
        }
        expect(again(made, text).trace).toEqual(made.trace)
      }),
      { numRuns: runs(60) },
    )
  })
})

test('each nest that fission makes has a distinct name', () => {
  const three = parseProgram(`kernel k(m: size) {
  axis i = dense_fixed(m)
  buffer X: f32[i] in
  buffer A: f32[i] out
  buffer B: f32[i] out
  buffer C: f32[i] out
  iterate s [i] as S {
    A[i] = X[i]
    B[i] = X[i]
    C[i] = X[i]
  }
}`).kernel()
  const apart = three.fission('i', 2).fission('s.i', 1)
  const nests = loopsOf(apart.compilation.loops.body).map((l) => l.nest)
  expect(nests).toEqual(['s', 's_rest_2', 's_rest'])
  expect(apart.unroll('s_rest.i', 2).trace).toHaveLength(3)
})
