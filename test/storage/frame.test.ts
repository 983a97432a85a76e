import { expect, it } from 'vitest'
import { type Column, type Engine, Frame } from '../../src/columns/column-engine.ts'

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
