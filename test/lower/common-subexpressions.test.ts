/** A condition that has a name protects the same accesses as one that is written out. */
import { expect, test } from 'vitest'
import { Names } from '../../src/ir/expressions/bound-names.ts'
import {
  add,
  builtin,
  type Expr,
  int,
  load,
  lt,
  mul,
  select,
  variable,
} from '../../src/ir/expressions/expr.ts'
import { printBody } from '../../src/ir/print/print-stage2.ts'
import type { Stmt } from '../../src/ir/statements/loops.ts'
import { barrier, store, when } from '../../src/ir/statements/statement-builders.ts'
import { stmt } from '../../src/ir/statements/tree.ts'
import { eliminateCommonSubexpressions } from '../../src/lower/expressions/common-subexpressions.ts'
import { insertLets } from '../../src/lower/expressions/let-insertion.ts'
import { buffer, loop } from '../support/stage2-builders.ts'

const [i, n] = [variable('i'), variable('n')]
const named = (name: string, value: Expr): Stmt => ({ kind: 'let', name, dtype: value.dtype, value })
const c = variable('c', 'bool')
const at = variable('at')
const body = (lets: readonly Stmt[], cond: Expr, index: Expr): string =>
  printBody(
    eliminateCommonSubexpressions(
      [
        {
          kind: 'for',
          var: 'i',
          name: 'i',
          nest: 'go',
          extent: int(8),
          reduce: false,
          guards: [],
          mode: { kind: 'serial' },
          body: [
            ...lets,
            {
              kind: 'for',
              var: 'j',
              name: 'j',
              nest: 'go',
              extent: int(4),
              reduce: false,
              guards: [],
              mode: { kind: 'serial' },
              body: [
                store(
                  'y',
                  [variable('j')],
                  select(cond, load('x', [index], 'f32'), load('z', [variable('j')], 'f32')),
                ),
              ],
            },
          ],
        },
      ],
      new Names(['i', 'j', 'c', 'at', 'x', 'y', 'z']),
    ),
  )

test.each([
  ['written out', body([], lt(i, n), i)],
  ['a name', body([named('c', lt(i, n))], c, i)],
  ['a name of a name', body([named('at', i), named('c', lt(at, n))], c, i)],
  ['a condition whose index has a name', body([named('at', i)], lt(i, n), at)],
])('%s: the load stays in its branch', (_, text) => {
  expect(text).not.toMatch(/let \w+ = x\[/)
  expect(text).toMatch(/select\(.*x\[/)
})

test('a load at a constant index stays within every condition, unless the array is known to be long enough', () => {
  const read = (length: Expr): string => {
    const holds = lt(int(0), n)
    const stores = [store('y', [variable('j')], load('x', [int(2)], 'f32'))]
    const buffers = [buffer('x', [length], 'in'), buffer('y', ['m'], 'out')]
    const text = loop('j', 'm', [stmt({ kind: 'if', cond: holds, then: stores, else: [] })], { nest: 'go' })
    return printBody(eliminateCommonSubexpressions([text], new Names(['j', 'm', 'n', 'x', 'y']), buffers))
  }
  expect(read(variable('p'))).toMatch(/if 0 < n\n.*x\[2\]/)
  expect(read(int(2))).toMatch(/if 0 < n\n.*x\[2\]/)
  expect(read(int(3))).toMatch(/let x_at = x\[2\]\nfor j/)
})

test('a condition on a loop or thread index protects accesses within that range', () => {
  const read = (where: Expr, length: Expr): string => {
    const stores = [store('y', [variable('j')], load('x', [add(i, int(1))], 'f32'))]
    const row = loop('r', n, [loop('j', 'm', [when(lt(int(0), where), stores)], { nest: 'go' })], {
      nest: 'go',
    })
    const buffers = [buffer('x', [length], 'in'), buffer('y', ['m'], 'out')]
    const launch = new Map([['block.x', n] as const])
    return printBody(
      eliminateCommonSubexpressions(
        [row],
        new Names(['i', 'j', 'm', 'n', 'p', 'r', 'x', 'y']),
        buffers,
        launch,
      ),
    )
  }
  for (const where of [variable('r'), builtin('block.x')]) {
    expect(read(where, n)).toMatch(/if 0 < .*\n.*x\[/)
    expect(read(where, variable('p'))).toMatch(/let x_at = x\[.*\nfor r/)
  }
})

test('loads in both branches are hoisted before a block-uniform condition', () => {
  const read = (
    then: readonly Stmt[],
    otherwise: readonly Stmt[],
    meet: readonly Stmt[] = [barrier()],
  ): string =>
    printBody(
      eliminateCommonSubexpressions(
        [when(lt(load('x', [i], 'i32'), n), [...meet, ...then], otherwise)],
        new Names(['i', 'n', 'x', 'y', 'z']),
      ),
    )
  const put = (value: Expr): readonly Stmt[] => [store('y', [int(0)], value)]
  const read3 = load('z', [add(load('x', [add(i, int(1))], 'i32'), int(3))], 'f32')
  const text = read(put(read3), put(add(read3, read3)))
  expect(text).toMatch(
    /let z_at = z\[.*\]\n.*if .*\n {2}barrier\n {2}y\[0\] = z_at\nelse\n {2}y\[0\] = z_at \+ z_at/s,
  )
  expect(text.match(/z\[/g)).toHaveLength(1)
  // One branch may keep in range what the other does not read, and threads that part read what their own reads.
  for (const kept of [read(put(read3), put(int(0))), read([], put(read3)), read(put(read3), put(read3), [])])
    expect(kept).not.toMatch(/^let z_at/m)
})

test('names of large values are used again, unless they read memory', () => {
  const large = (e: Expr): Expr => {
    let out = e
    for (let k = 0; k < 13; k++) out = mul(out, out)
    return out
  }
  const lets = (e: Expr): number[] => {
    const x = load('x', [int(0)], 'i32')
    const body = [store('y', [int(0)], e), store('x', [int(0)], add(x, int(1))), store('y', [int(1)], e)]
    const named = insertLets(body, [buffer('x', [1], 'inout'), buffer('y', [2], 'out')], new Names(['n']))
    const last = named.length - 1
    const middle = named.findIndex((s) => s.kind === 'store' && s.buffer === 'x')
    return [middle - 1, last - middle - 1]
  }
  const [first, again] = lets(large(load('x', [int(0)], 'i32')))
  expect(first).toBeGreaterThan(5)
  expect(again).toBe(first)
  const [once, never] = lets(large(variable('n', 'i32')))
  expect(once).toBeGreaterThan(5)
  expect(never).toBe(0)
})
