import { describe, expect, test } from 'vitest'
import { InternalError } from '../../src/ast/diagnostics/diagnostic.ts'
import { Memory } from '../../src/interpret/races.ts'
import { interpret } from '../../src/interpret/stage2.ts'
import {
  add,
  constant,
  eq,
  int,
  lt,
  max,
  mul,
  search,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import type { Kernel2, Stmt } from '../../src/ir/statements/loops.ts'
import { when } from '../../src/ir/statements/statement-builders.ts'
import { pair } from '../support/kernel2.ts'
import { at, buffer, expr, kernel2, loop, reduce, store } from '../support/stage2-builders.ts'
import { rowProduct } from '../support/stage2-samples.ts'

const dense = (body: readonly Stmt[], more = [buffer('Y', ['m', 4], 'out')]): Kernel2 =>
  kernel2('k', ['m'], [buffer('X', ['m', 4], 'in'), ...more], body)

function run(
  k: Kernel2,
  arrays: Record<string, number[]>,
  params: Record<string, number>,
): Record<string, number[]> {
  const map = new Map(Object.entries(arrays).map(([n, c]) => [n, [...c]]))
  interpret(k, map, new Map(Object.entries(params)))
  return Object.fromEntries(map)
}

const X = [1, 2, 3, 4, 5, 6, 7, 8]
const blank = (n: number): number[] => new Array<number>(n).fill(-99)

describe('reductions start at the identity', () => {
  test('once per element, before the outermost reduction loop, empty rows included', () => {
    const { C } = run(
      rowProduct,
      {
        j_indptr: [0, 2, 2, 3],
        j_indices: [0, 1, 0],
        A: [2, 3, 5],
        B: [...new Array<number>(32).fill(1), ...new Array<number>(32).fill(10)],
        C: blank(96),
      },
      { m: 3, n: 2, j_count: 3 },
    )
    expect(C!.filter((_, k) => k % 32 === 7)).toEqual([32, 0, 5])
  })

  test('under the guards of the loops it repeats, and only those', () => {
    const k = dense([
      loop('i', 'm', [
        loop(
          'k',
          2,
          [
            loop('f', 4, [reduce(at('Y', ['i', 'f']), '+', at('X', ['i', 'k']))], {
              guards: [lt(expr('f'), int(3))],
            }),
          ],
          { reduce: true, guards: [lt(expr('k'), int(0))] },
        ),
      ]),
    ])
    expect(run(k, { X: X.slice(0, 4), Y: blank(4) }, { m: 1 }).Y).toEqual([0, 0, 0, -99])
  })

  test('inside the loop around a local buffer', () => {
    const local = buffer('R', [1], 'local', { scope: 'register' })
    const k = dense([
      loop(
        'i',
        'm',
        [
          { kind: 'alloc', buffer: local },
          loop('k', 4, [reduce(at('R', [0]), '+', at('X', ['i', 'k']))], { reduce: true }),
          reduce(at('Y', [0, 0]), 'max', at('R', [0])),
        ],
        { reduce: true },
      ),
    ])
    expect(run(k, { X, Y: blank(8) }, { m: 2 }).Y![0]).toBe(26)
  })

  test('tuples combine from the old values of all components', () => {
    const swap = {
      ...pair,
      result: [max(variable('a_m', 'f32'), variable('b_s', 'f32')), variable('a_s', 'f32')],
    }
    const k = dense([
      loop('i', 1, [
        {
          kind: 'reduce',
          reducer: swap,
          targets: [at('Y', [0, 0]), at('Y', [0, 1])],
          values: [constant(5, 'f32'), constant(7, 'f32')],
          init: false,
          atomic: false,
        },
      ]),
    ])
    expect(run(k, { X: X.slice(0, 4), Y: [3, 4, 0, 0] }, { m: 1 }).Y).toEqual([5, 3, 0, 0])
  })
})

describe('values', () => {
  const one = (value: Parameters<typeof store>[1]): number =>
    run(
      kernel2(
        'k',
        [],
        [buffer('idx', [4], 'index'), buffer('y', [1], 'out', { dtype: 'i32' })],
        [store(at('y', [0], 'i32'), value)],
      ),
      { idx: [1, 3, 3, 8], y: [0] },
      {},
    ).y![0]!

  test('integers wrap and floor, branches are lazy', () => {
    expect(one(mul(expr(65536), add(at('idx', [0], 'i32'), expr(65535))))).toBe(0)
    expect(one(select(eq(at('idx', [0], 'i32'), int(1)), at('idx', [3], 'i32'), at('idx', [9], 'i32')))).toBe(
      8,
    )
  })

  test('searches: first not less, first greater, first equal, else the end', () => {
    const find = (method: 'lower' | 'upper' | 'linear', value: number): number =>
      one(search(method, 'idx', int(0), int(4), int(value)))
    expect([
      find('lower', 3),
      find('upper', 3),
      find('linear', 3),
      find('linear', 5),
      find('lower', 9),
    ]).toEqual([1, 3, 1, 4, 4])
  })

  test('f32 is rounded after every operation', () => {
    const k = kernel2(
      'k',
      [],
      [buffer('x', [1], 'in'), buffer('y', [1], 'out')],
      [store(at('y', [0]), add(at('x', [0]), constant(1, 'f32')))],
    )
    expect(run(k, { x: [2 ** 24], y: [0] }, {}).y).toEqual([2 ** 24])
  })
})

describe('bugs of rewrites are detected', () => {
  const oob = dense([loop('i', 'm', [store(at('Y', ['i', 4]), at('X', ['i', 0]))])])
  test('an index outside of a dimension names the access, even if the flat address exists', () => {
    expect(() => run(oob, { X, Y: blank(8) }, { m: 2 })).toThrow(InternalError)
    expect(() => run(oob, { X, Y: blank(8) }, { m: 2 })).toThrow(
      'Y[i, 4]: index 4 of dimension 1 is outside of 0..4',
    )
  })

  test('unwritten memory is poisoned', () => {
    const k = dense(
      [loop('i', 'm', [store(at('Y', ['i', 0]), at('T', [0]))])],
      [buffer('Y', ['m', 4], 'out'), buffer('T', [1], 'local')],
    )
    expect(run(k, { X, Y: blank(8) }, { m: 2 }).Y![0]).toBeNaN()
  })

  test('conditions and fills run in order', () => {
    const k = dense([
      { kind: 'fill', buffer: 'Y', value: constant(3, 'f32') },
      loop('i', 'm', [when(lt(expr('i'), int(1)), [store(at('Y', ['i', 0]), at('X', ['i', 0]))])]),
    ])
    expect(run(k, { X, Y: blank(8) }, { m: 2 }).Y).toEqual([1, 3, 3, 3, 3, 3, 3, 3])
  })
})

test('each thread has separate registers, and the first one receives the reduction', () => {
  const local = buffer('R', [1], 'local', { scope: 'register' })
  const thread = { mode: { kind: 'bind', to: 'thread.x' } } as const
  const k = dense([
    loop('i', 'm', [
      { kind: 'alloc', buffer: local },
      loop('f', 4, [store(at('R', [0]), at('X', ['i', 'f']))], thread),
      loop('g', 4, [store(at('Y', ['i', 'g']), at('R', [0]))], { ...thread, var: 'g' }),
    ]),
  ])
  const cells = new Map([
    ['X', [...X]],
    ['Y', blank(8)],
  ])
  interpret(k, cells, new Map([['m', 2]]), 'threads')
  expect(cells.get('Y')).toEqual(X)
  interpret(k, cells, new Map([['m', 2]]))
  expect(cells.get('Y')).toEqual([4, 4, 4, 4, 8, 8, 8, 8])
})

describe('accesses of one element by two threads without a barrier', () => {
  const thread = (k: number) => ({ block: 0, thread: k, row: 0, epoch: 0, phase: 0 })
  const accesses: Readonly<Record<string, (m: Memory, k: number) => unknown>> = {
    read: (m, k) => m.read(0, thread(k), false),
    write: (m, k) => m.write(0, 1, thread(k), false),
    update: (m, k) => {
      m.write(0, m.read(0, thread(k), true) + 1, thread(k), true)
    },
  }
  const names = Object.keys(accesses)
  test.each(names.flatMap((a) => names.map((b) => [a, b] as const)))('%s, %s', (a, b) => {
    const memory = new Memory(buffer('s', [1], 'inout'), [0])
    accesses[a]!(memory, 0)
    const second = (): unknown => accesses[b]!(memory, 1)
    if (a === b && a !== 'write') second()
    else expect(second).toThrow(/races with/)
    // The thread itself may.
    accesses[b]!(new Memory(buffer('s', [1], 'inout'), [0]), 0)
  })
})
