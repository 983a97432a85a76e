/** Plans that break an invariant of Stage III are rejected, each with the invariant that it breaks. */
import { expect, test } from 'vitest'
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import { cast, int, lt, search, variable } from '../../src/ir/expressions/expr.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { alloc, define, fill } from '../../src/ir/statements/statement-builders.ts'
import { verify3 } from '../../src/verifiers/stage3.ts'
import { at, buffer, expr, loop, reduce, store } from '../support/stage2-builders.ts'

const plan = (...body: Stmt[]): Kernel3 => ({
  stage: 3,
  name: 'p',
  params: [{ name: 'm', kind: 'size', dtype: 'i32' } as Kernel3['params'][number]],
  buffers: [buffer('X', ['m'], 'in'), buffer('Y', ['m'], 'out'), buffer('ends', ['m'], 'index')],
  steps: [{ kind: 'launch', name: 'p_0', grid: [int(1), int(1), int(1)], block: [32, 1, 1], body }],
})
const put = (i: string): Stmt => store(at('Y', [variable(i, 'index')]), at('X', [variable(i, 'index')]))
const over = (body: Stmt[], more = {}): Stmt => loop('i', expr('m'), body, more)
const registers = (name: string, shape: readonly number[]): Stmt =>
  alloc(buffer(name, shape, 'local', { scope: 'register' }))

test('a plan verifies', () => {
  verify3(plan(over([registers('R', [2]), put('i')])))
})

test.each<[string, string, Kernel3]>([
  ['a variable after its loop', 'i: not bound here', plan(over([put('i')]), put('i'))],
  ['a local after its body', 'no buffer R here', plan(over([registers('R', [1])]), store(at('R', [0]), 1))],
  ['a name of two loops', 'i is bound twice', plan(over([put('i')]), over([put('i')]))],
  ['a name of a loop and a local', 'i is bound twice', plan(over([registers('i', [1])]))],
  ['a write to an input', 'read only', plan(store(at('X', [0]), 1))],
  ['a bound loop', 'still bound', plan(over([put('i')], { mode: { kind: 'bind', to: 'thread.x' } }))],
  ['an unrolled loop', 'is unroll', plan(over([put('i')], { mode: { kind: 'unroll', factor: 2 } }))],
  ['a guard', 'has guards', plan(over([put('i')], { guards: [lt(variable('i', 'index'), int(3))] }))],
  ['a local of two dimensions', 'not flat', plan(registers('R', [2, 2]))],
  ['a value of another type', 'is index where f32', plan(store(at('Y', [0]), int(1)))],
  ['an index of another type', 'an index', plan(store(at('Y', [cast(int(0), 'f32')]), 1))],
  ['a reduction', 'not atomic', plan(reduce(at('Y', [0]), '+', 1, {}))],
  ['an initialisation', 'initialisation', plan(reduce(at('Y', [0]), '+', 1))],
  ['a fill', 'inside of a launch', plan(fill('Y', at('X', [0])))],
  ['a search', 'a loop by now', plan(define('a', search('lower', 'ends', int(0), int(2), int(1))))],
])('rejects %s', (_, text, p) => {
  expect(() => verify3(p)).toThrow(InternalError)
  expect(() => verify3(p)).toThrow(text)
})
