import { expect, it } from 'vitest'
import { runSync } from '../../src/ast/work.ts'
import { type Column, ENTRY, type Engine, Frame } from '../../src/columns/column-engine.ts'
import { binary, load, variable } from '../../src/ir/expressions/expr.ts'
import { boundsIn } from '../../src/storage/columns/expression-bounds.ts'
import { uncheckedReads } from '../../src/storage/columns/table-reads.ts'
import { HOST } from '../../src/storage/engines/host/engine.ts'
import { valuesOf } from '../../src/storage/engines/host/map-reduce.ts'

/** A frame, and the columns that it has released. */
function recorded(): { readonly frame: Frame<Column>; readonly released: Column[] } {
  const released: Column[] = []
  const engine = { release: (...columns: Column[]) => released.push(...columns) }
  return { frame: new Frame(engine as unknown as Engine<Column>, 2, new Map()), released }
}
const column = (): Column => ({ length: 2 })

it('keeps a column that is set again under its name', () => {
  const { frame, released } = recorded()
  const c = column()
  frame.set('x', c)
  frame.set('x', c)
  expect([frame.column('x'), released]).toEqual([c, []])
  frame.release()
  expect(released).toEqual([c])
})

it('releases a column of several names with the last of these, once', () => {
  const { frame, released } = recorded()
  const c = column()
  frame.set('x', c)
  frame.set('y', c)
  frame.setEntry(c)
  frame.drop('x')
  frame.set('y', column())
  expect(released).toEqual([])
  frame.setEntry(column())
  expect(released).toEqual([c])
})

it('releases a column that another replaces, and no column of the caller', () => {
  const { frame, released } = recorded()
  const [own, given] = [column(), column()]
  frame.set('x', own)
  frame.set('x', given, false)
  frame.drop('x')
  expect(released).toHaveLength(1)
  expect(released[0]).toBe(own)
})

it('divides by the number of the entry, which is no column and no size', () => {
  const frame = new Frame(HOST, 4, new Map())
  frame.set('c', Int32Array.of(8, 9, 9, 8))
  const of = (op: 'div' | 'mod') => [...valuesOf(frame, binary(op, variable('c'), variable(ENTRY)))].slice(1)
  expect([of('div'), of('mod')]).toEqual([
    [9, 4, 2],
    [0, 1, 2],
  ])
})

it('reports the first empty segment among several', () => {
  const { empty } = runSync(HOST.padWithLast(Int32Array.of(1, 9, 9, 9, 9, 9, 3, 9), 2, 9, 'indices'))
  expect(empty).toBe(1)
})

it('bounds a full table by its last coordinate, and reads beyond it by the fill value', () => {
  const bounds = (lo: number, hi: number) => {
    const frame = {
      range: () => [lo, hi] as const,
      lists: new Map(),
      tables: new Map([['t', Int32Array.of(0, 1, 2, 3)]]),
      fills: new Map([['t', 4]]),
      rangeChecked: new Set<never>(),
    }
    return boundsIn(frame, load('t', [variable('p')], 'index'))
  }
  for (const [lo, hi] of [
    [0, 3],
    [2, 2],
  ] as const)
    expect(bounds(lo, hi)).toMatchObject({ lo: 0, hi: 3 })
  for (const [lo, hi] of [
    [-1, 3],
    [0, 4],
  ] as const)
    expect(bounds(lo, hi)).toMatchObject({ lo: 0, hi: 4 })
})

it('reads of a list over an axis are unchecked unless the list is as long as the axis', () => {
  const frame = new Frame(HOST, 1, new Map())
  const list = { name: 't', values: Int32Array.of(0, 2, 5) }
  const unchecked = (extent: number) =>
    uncheckedReads(
      Object.assign(frame, { lists: new Map([['t', list]]) }),
      [load('t', [variable('p')], 'index')],
      { extents: new Map([['p', extent]]), inFrame: (e) => e },
    ).length
  expect([1, 3, 4].map(unchecked)).toEqual([0, 0, 1])
})
