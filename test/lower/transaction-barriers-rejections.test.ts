/** Copies that cannot count their bytes: not every thread would wait for all of a round, or not for as many of each. */
import { describe, expect, test } from 'vitest'
import { bool, constant, int, load, lt } from '../../src/ir/expressions/expr.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { store, when } from '../../src/ir/statements/statement-builders.ts'
import { rewriteStmts } from '../../src/ir/statements/tree.ts'
import { lowerToMemory } from '../../src/lower/pipeline.ts'
import type { Kernel } from '../../src/node.ts'
import { diagnosticOf } from '../support/refusal.ts'
import { gather, gatherBy } from './tma-gathers.ts'

describe('threads with separate copies', () => {
  test.each([
    ['each', false],
    ['those of a row together', true],
  ])('%s', (_, onX) => {
    const d = diagnosticOf(() => gather(2, onX).emit('cuda'))
    expect([d?.code, d?.message, d?.expected]).toEqual([
      'schedule/counted-copies',
      'bulk counts the copied bytes, and some threads copy by themselves',
      'copies of the same number of bytes in every iteration, distributed over all threads',
    ])
    expect(d?.span).toBeDefined()
  })

  test.each([false, true])('are all threads if there is one row (thread.x: %s)', (onX) => {
    expect(diagnosticOf(() => gather(1, onX).emit('cuda'))).toBeUndefined()
  })
})

describe('conditional iterations', () => {
  /** Blocks that a condition leaves out; `more` is brought in the same rounds. */
  const some = (more: string): Kernel =>
    gatherBy(
      `
        require d % 4 == 0
        split f by 4 -> (fo, fi)
        reorder (i, fo, bi, j, k, fi)
        bind i to block.y, fo to block.x, bi to thread.x
        cache_write C at bi in register
        ${more}
        cache_read B at j in tile -> Bs
        tensorize Bs.k with bulk
        pipeline j by 2
      `,
      'where (j > 1)',
    )
  test('are rejected if threads copy as well', () => {
    const d = diagnosticOf(() => some('cache_read A at j in shared').emit('cuda'))
    expect([d?.code, d?.message]).toEqual([
      'schedule/conditional-rounds',
      'iterations of j run under conditions, and bulk counts the copies of every iteration',
    ])
    expect(d?.span).toBeDefined()
  })
  test('are copied unconditionally, if all copies are TMA boxes', () => {
    expect(diagnosticOf(() => some('').emit('cuda'))).toBeUndefined()
  })
})

describe('Stage II programs that no schedule produces', () => {
  const zero = store('Bs', [int(0), int(0), int(0)], constant(0, 'f32'))
  const first = load('j_indices', [int(0)], 'i32')
  test.each([
    [
      'a store among copies',
      (copy: Stmt) => when(bool(true), [copy, zero]),
      'something else stands among its copies',
    ],
    [
      'a round that data decides',
      (copy: Stmt) => when(lt(first, int(1)), [copy]),
      'some rounds copy more than others',
    ],
  ])('%s', (_, instead, why) => {
    const { loops } = gather(1, true).compilation
    const changed = rewriteStmts(loops.body, {
      stmt: (s) => (s.kind === 'for' && s.mode.kind === 'instr' ? [instead(s)] : undefined),
    })
    const d = diagnosticOf(() => lowerToMemory({ ...loops, body: changed }))
    expect([d?.code, d?.message]).toEqual([
      'schedule/counted-copies',
      `bulk counts the copied bytes, and ${why}`,
    ])
  })
})
