/** What is remembered of nodes: found once for each, whatever froze or copied it, and seen by nothing else. */
import { expect, test } from 'vitest'
import { add, type Expr, int, variable } from '../../src/ir/expressions/expr.ts'
import { enableMemo, memoize } from '../../src/ir/memoize.ts'

const counted = () => {
  let calls = 0
  return { of: memoize((_: object) => ++calls), calls: () => calls }
}

test.each([
  ['a node', () => add(variable('i'), int(1))],
  ['what has no place', () => Object.freeze({ kind: 'other' })],
])('%s is computed once per function, frozen or not', (_, make) => {
  const [first, second] = [counted(), counted()]
  const [a, b] = [make(), make()]
  expect(Object.isFrozen(a)).toBe(true)
  expect([first.of(a), first.of(b), first.of(a), second.of(a), second.of(a)]).toEqual([1, 2, 1, 1, 1])
  expect([first.calls(), second.calls()]).toEqual([2, 1])
})

test('copies start without memoized values, which are invisible otherwise', () => {
  const { of } = counted()
  const node: Expr = add(variable('i'), int(1))
  const before = JSON.stringify(node)
  of(node)
  expect(JSON.stringify(node)).toBe(before)
  expect(Reflect.ownKeys(node)).toEqual(['kind', 'op', 'a', 'b', 'dtype', 'span'])
  for (const copy of [{ ...node }, structuredClone(node)]) {
    expect(copy).toEqual(node)
    expect(of(copy)).not.toBe(of(node))
  }
})

test('storage is created once, and not for frozen nodes', () => {
  const node = { kind: 'other' }
  expect(enableMemo(enableMemo(node))).toBe(node)
  const frozen = Object.freeze({ kind: 'other' })
  expect(enableMemo(frozen)).toBe(frozen)
})
