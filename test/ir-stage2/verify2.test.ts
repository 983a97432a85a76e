import { describe, expect, test } from 'vitest'
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import { add, builtin, constant, int, lt } from '../../src/ir/expressions/expr.ts'
import type { For, Kernel2, LoopMode, Stmt } from '../../src/ir/statements/loops.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'
import * as samples from '../support/stage2-samples.ts'

const buffers = [
  buffer('X', ['m', 4], 'in'),
  buffer('Y', ['m', 4], 'out'),
  buffer('n_indptr', ['m'], 'index'),
]
const kernel = (...body: Stmt[]): Kernel2 => kernel2('k', ['m'], buffers, body)
const bind = (to: 'block.x' | 'block.y' | 'thread.x'): { mode: LoopMode } => ({ mode: { kind: 'bind', to } })
const put = (i: string, f: string | number = 0): Stmt => store(at('Y', [i, f]), at('X', [i, f]))
const register = (name: string, length: string | number): Stmt => ({
  kind: 'alloc',
  buffer: buffer(name, [length], 'local', { scope: 'register' }),
})
const over = (i: string, body: Stmt[], more: Partial<For> = {}): For => loop(i, 'm', body, more)

describe('invariants of Stage II', () => {
  for (const [name, k] of Object.entries(samples)) test(`the sample ${name} verifies`, () => verify2(k))

  test.each<[string, string, Kernel2]>([
    ['a variable out of scope', 'i: not bound here', kernel(put('i'))],
    ['a variable after its loop', 'i: not bound here', kernel(over('i', [put('i')]), put('i'))],
    [
      'a local after its body',
      'no buffer R here',
      kernel(over('i', [register('R', 1)]), over('f', [store(at('R', [0]), 1)])),
    ],
    ['a variable bound twice', 'i is bound twice', kernel(over('i', [over('i', [put('i')])]))],
    ['a variable named like a buffer', 'X is bound twice', kernel(over('X', [put('X')]))],
    ['an unknown buffer', 'no buffer Z', kernel(over('i', [store(at('Z', ['i']), 1)]))],
    ['a wrong number of indices', '2 dimensions', kernel(over('i', [store(at('Y', ['i']), 1)]))],
    ['a write to an input', 'read only', kernel(over('i', [store(at('X', ['i', 0]), 1)]))],
    [
      'a load of another type',
      'X is f32',
      kernel(over('i', [store(at('Y', ['i', 0]), at('X', ['i', 0], 'i32'))])),
    ],
    [
      'a guard too far inside',
      'further out',
      kernel(over('i', [over('f', [put('i')], { guards: [lt(expr('i'), int(3))] })])),
    ],
    [
      'a guard that the loop changes',
      'reads what the loop writes',
      kernel(over('i', [put('i')], { guards: [lt(at('Y', ['i', 0]), constant(3, 'f32'))] })),
    ],
    [
      'a hardware index',
      'does not occur',
      kernel(over('i', [store(at('Y', ['i', builtin('thread.x')]), 1)])),
    ],
    [
      'an axis bound twice',
      'bound twice',
      kernel(over('i', [over('f', [put('i')], bind('block.x'))], bind('block.x'))),
    ],
    ['a thread axis of unknown extent', 'constant extent', kernel(over('i', [put('i')], bind('thread.x')))],
    [
      'a block axis inside of a loop',
      'outermost',
      kernel(over('i', [over('f', [put('i')], bind('block.x'))])),
    ],
    [
      'statements beside a block axis',
      'beside',
      kernel(over('i', [put('i'), over('f', [put('i', 'f')], bind('block.y'))], bind('block.x'))),
    ],
    [
      'a block axis of an extent in memory',
      'reads memory',
      kernel(loop('i', at('n_indptr', [0], 'index'), [put('i')], bind('block.x'))),
    ],
    ['a local of unknown size', 'not constant', kernel(register('R', 'm'))],
    [
      'a global local',
      'in global memory',
      kernel({ kind: 'alloc', buffer: buffer('R', [1], 'local', { scope: 'global' }) }),
    ],
    [
      'a wide vector',
      '2, 4 or 8',
      kernel(over('i', [loop('f', 3, [put('i', 'f')], { mode: { kind: 'vectorize' } })])),
    ],
    [
      'a vector of a reduction',
      'reduction',
      kernel(
        over('i', [
          loop('f', 4, [reduce(at('Y', ['i', 0]), '+', at('X', ['i', 'f']))], {
            reduce: true,
            mode: { kind: 'vectorize' },
          }),
        ]),
      ),
    ],
    [
      'an initialisation that changes with a reduction loop',
      'depends on f',
      kernel(
        over('i', [loop('f', 4, [reduce(at('Y', ['i', 'f']), '+', at('X', ['i', 'f']))], { reduce: true })]),
      ),
    ],
    [
      'a fill inside of a loop',
      'inside',
      kernel(over('i', [{ kind: 'fill', buffer: 'Y', value: at('X', ['i', 0]) }])),
    ],
    [
      'a whole unroll of unknown extent',
      'constant extent',
      kernel(over('i', [put('i')], { mode: { kind: 'unroll', factor: null } })),
    ],
    [
      'a shape in memory',
      'reads memory',
      { ...kernel(), buffers: [buffer('Z', [at('n_indptr', [0], 'index')], 'in')] },
    ],
    ['a parameter twice', 'twice', { ...kernel(), params: [...kernel().params, ...kernel().params] }],
    [
      'an index array with two indices',
      'dimensions',
      kernel(over('i', [store(at('Y', [add(expr('i'), at('n_indptr', ['i', 'i'], 'index')), 0]), 1)])),
    ],
  ])('rejects %s', (_, text, k) => {
    expect(() => verify2(k)).toThrow(InternalError)
    expect(() => verify2(k)).toThrow(text)
  })
})
