/**
 * Range checks of computed coordinates: conditions under which the value of a format's inverse map, or of a table, is
 * a coordinate of the old axis.
 */
import { proveBelow } from '../../../formats/proof/prove.ts'
import { hasHoles, type StoredAxis } from '../../../ir/coordinates/axis.ts'
import { existenceConditions } from '../../../ir/coordinates/coordinate-lists.ts'
import { add, type Expr, ge, int, lt } from '../../../ir/expressions/expr.ts'
import { freeVars, walkExpr } from '../../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../../ir/expressions/structural-equality.ts'
import type { FormatInstance } from '../../../ir/formats/format.ts'

/**
 * Returns the conditions under which the computed value `e` is a coordinate of the old axis; an empty list if it
 * always is.
 */
export function inRange(e: Expr, old: StoredAxis, part: FormatInstance): Expr[] {
  if (staysBelow(e, old, part)) return []
  const conditions = tableConditions(e, part)
  const sort = e.kind === 'load' && part.tables.find((t) => t.name === e.buffer && t.kind === 'sort')
  if (sort && sameExpr(sort.length, old.extent)) return conditions
  const list = e.kind === 'load' && part.lists.find((l) => l.axis.name === e.buffer)
  if (list && !hasHoles(list.axis) && sameExpr(list.axis.extent, old.extent)) return conditions
  if (mayBeNegative(e)) conditions.push(ge(e, int(0)))
  const below = lt(e, old.extent)
  if (!conditions.some((c) => sameExpr(c, below))) conditions.push(below)
  return conditions
}

/**
 * Returns whether `e` is an axis coordinate, or (in a part of a partition) an axis coordinate plus the start of a
 * range, that provably stays below the old extent.
 */
function staysBelow(e: Expr, old: StoredAxis, part: FormatInstance): boolean {
  const [v, start] = e.kind === 'binary' && e.op === 'add' ? [e.a, e.b] : [e, int(0)]
  const axis = v.kind === 'var' ? part.axes.find((a) => a.name === v.name) : undefined
  if (!axis || mayBeNegative(start) || part.axes.some((a) => freeVars(start).has(a.name))) return false
  const end = add(start, axis.extent)
  return sameExpr(end, old.extent) || proveBelow(end, old.extent, [old])
}

/**
 * Returns the conditions under which loads of tables in `e` are in bounds and return a coordinate. Indices may be
 * negative or beyond the table (for example in the last of even slices), and padding of a list is not a coordinate.
 */
function tableConditions(e: Expr, part: FormatInstance): Expr[] {
  const out: Expr[] = []
  walkExpr(e, (x) => {
    const table = x.kind === 'load' ? part.tables.find((t) => t.name === x.buffer) : undefined
    if (x.kind !== 'load' || !table) return
    const index = x.index.at(-1)!
    const axis = index.kind === 'var' ? part.axes.find((a) => a.name === index.name) : undefined
    const within =
      axis && (sameExpr(axis.extent, table.length) || sameExpr(add(axis.extent, int(1)), table.length))
    if (mayBeNegative(index) && !proveBelow(int(0), index, part.axes)) out.push(ge(index, int(0)))
    if (!within) out.push(lt(index, table.length))
    const list = part.lists.find((l) => l.axis.name === table.name)
    if (list) out.push(...existenceConditions(x, list))
  })
  return out
}

/**
 * Returns whether the value of `e` may be negative. Coordinates, sizes and table entries are natural numbers; an
 * operation without a case here counts as possibly negative.
 */
export function mayBeNegative(e: Expr): boolean {
  switch (e.kind) {
    case 'const':
      return e.value < 0
    case 'var':
    case 'load':
      return false
    case 'select':
      return mayBeNegative(e.then) || mayBeNegative(e.else)
    case 'binary':
      if (e.op === 'max') return mayBeNegative(e.a) && mayBeNegative(e.b)
      if (e.op === 'mod') return mayBeNegative(e.b)
      return !['add', 'mul', 'div', 'min'].includes(e.op) || mayBeNegative(e.a) || mayBeNegative(e.b)
    default:
      return true
  }
}
