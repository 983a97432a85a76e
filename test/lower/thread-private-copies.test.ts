/** Shared memory that threads fill, each for itself: kernels as a schedule does not make them. */
import { describe, expect, test } from 'vitest'
import { add, eq, lt } from '../../src/ir/expressions/expr.ts'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { makeCopiesCooperative } from '../../src/lower/memory/cooperative-copies.ts'
import { verify2 } from '../../src/verifiers/stage2.ts'
import { run, runPlan } from '../support/kernel2.ts'
import { at, buffer, expr, kernel2, loop, store } from '../support/stage2-builders.ts'

const T = 4
const onThreads = (name: string, body: readonly Stmt[], extent = T, n?: string): Stmt =>
  loop(name, extent, body, {
    mode: { kind: 'bind', to: 'thread.x' },
    guards: n ? [lt(expr(name), expr(n))] : [],
  })
const shared: Stmt = { kind: 'alloc', buffer: buffer('S', [T], 'local', { scope: 'shared' }) }
const register: Stmt = {
  kind: 'alloc',
  buffer: buffer('r', [1], 'local', { scope: 'register', dtype: 'i32' }),
}
const r = at('r', [0], 'index')
const order = at('order', ['t'], 'index')

/** Threads fill `S`, then copy it to `y`. */
const filled = (...fill: Stmt[]): Kernel2 =>
  kernel2(
    'filled',
    ['n'],
    [buffer('order', [T], 'index'), buffer('x', [T], 'in'), buffer('y', [2, T], 'out')],
    [
      loop('b', 2, [shared, ...fill, onThreads('u', [store(at('y', ['b', 'u']), at('S', ['u']))])], {
        mode: { kind: 'bind', to: 'block.x' },
      }),
    ],
  )

const data = {
  params: new Map([['n', 3]]),
  arrays: new Map([
    ['order', [2, 0, 3, 1]],
    ['x', [10, 20, 30, 40]],
    ['y', new Array<number>(2 * T).fill(-1)],
  ]),
}

const base = onThreads('z', [store(at('S', ['z']), 7)])

const KERNELS: Readonly<Record<string, Kernel2>> = {
  'an index in a register': filled(
    onThreads('t', [register, store(r, order), store(at('S', [r]), at('x', ['t']))]),
  ),
  'an index and a value in registers': filled(
    onThreads('t', [register, store(r, order), store(at('S', [r]), at('x', [r]))]),
  ),
  'a register that depends on another one': filled(
    onThreads('t', [
      register,
      { kind: 'alloc', buffer: buffer('q', [1], 'local', { scope: 'register', dtype: 'i32' }) },
      store(r, order),
      store(at('q', [0], 'index'), add(r, expr(0))),
      store(at('S', [at('q', [0], 'index')]), at('x', ['t'])),
    ]),
  ),
  'an index that a condition on the thread chose': filled(
    onThreads('t', [
      register,
      store(r, 0),
      when(eq(expr('t'), expr(1)), [store(r, 1)]),
      when(eq(expr('t'), expr(2)), [store(r, 2)]),
      when(eq(expr('t'), expr(3)), [store(r, 3)]),
      store(at('S', [r]), at('x', [r])),
    ]),
  ),
  'a condition on the thread': filled(
    base,
    onThreads('t', [when(eq(expr('t'), expr(9)), [store(at('S', [0]), 5)])]),
  ),
  'the first of the threads': filled(
    base,
    onThreads('t', [when(eq(expr('t'), expr(0)), [store(at('S', [1]), 5)])]),
  ),
  'as many rounds as the thread says': filled(
    base,
    onThreads('t', [loop('k', order, [when(eq(expr('t'), expr(2)), [store(at('S', ['k']), 5)])])]),
  ),
  'a loop over elements in a register': filled(
    onThreads('t', [
      register,
      store(r, order),
      loop('k', 1, [store(at('S', [add(r, expr('k'))]), at('x', ['t']))]),
    ]),
  ),
}

describe('each thread fills its own elements', () => {
  test.each(Object.entries(KERNELS))('%s', (_, kernel) => {
    verify2(kernel)
    verify2(makeCopiesCooperative(kernel))
    const expected = run(kernel, data)
    expect(run(kernel, data, 'backward')).toEqual(expected)
    expect(runPlan(kernel, data)).toEqual(expected)
  })
})

/** Whether threads share out what fills `S`. */
const sharedOut = (kernel: Kernel2): boolean =>
  JSON.stringify(makeCopiesCooperative(kernel).body).includes('"cooperative":true')

const tile = loop('k', T, [store(at('S', ['k']), at('x', [add(expr('k'), r)]))])

test('uniform elements are filled cooperatively', () => {
  const [first] = [store(r, 0)]
  const kernels = [
    filled(register, first, onThreads('t', [tile])),
    filled(onThreads('t', [register, first, tile])),
  ]
  for (const kernel of kernels) {
    expect(sharedOut(kernel)).toBe(true)
    expect(runPlan(kernel, data)).toEqual(run(kernel, data))
  }
})

test('a thread that skipped the register initialisation does not fill', () => {
  expect(sharedOut(filled(onThreads('t', [register, store(r, 0), tile], T, 'n')))).toBe(false)
})
