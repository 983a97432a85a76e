/** Stored coordinates of a level as expressions and columns, packed or not. */
import { type Expr, load, variable } from '../ir/expressions/expr.ts'
import { fieldAt } from '../ir/values/packed-fields.ts'
import { type Column, ENTRY, type Engine, Frame } from './column-engine.ts'
import type { Level } from './stored-level.ts'

/** The stored coordinate at a position. */
export function coordinateAt<C extends Column>(frame: Frame<C>, level: Level<C>, position: Expr): Expr {
  const name = `@indices ${level.axis.name}`
  frame.tables.set(name, level.indices!)
  if (level.bits !== undefined) frame.signed.add(name)
  return fieldAt(position, level.bits ?? 32, (word) => load(name, [word]))
}

/** The coordinates as a column; a newly allocated column is appended to `allocated`. */
export function coordinateColumn<C extends Column>(engine: Engine<C>, level: Level<C>, allocated: C[]): C {
  if (level.bits === undefined) return level.indices!
  const frame = new Frame(engine, level.positions, new Map())
  const out = engine.empty(level.positions, 'coordinates')
  engine.scatter(frame, out, variable(ENTRY), coordinateAt(frame, level, variable(ENTRY)))
  allocated.push(out)
  return out
}
