/** Which values of computed coordinates are coordinates: what a format's inverse map may leave, and what tables say. */
import { provesBelow } from '../../formats/proof/prove.ts'
import { hasHoles, type StoredAxis } from '../../ir/axis.ts'
import { isListed } from '../../ir/coordinate-lists.ts'
import { add, type Expr, ge, int, lt } from '../../ir/expr.ts'
import { freeVars, walkExpr } from '../../ir/expr-tree.ts'
import type { FormatInstance } from '../../ir/format.ts'
import { sameExpr } from '../../ir/structural-equality.ts'

/** Conditions under which a computed old coordinate is one: none where the new axis ranges over just those. */
export function inRange(e: Expr, old: StoredAxis, part: FormatInstance): Expr[] {
  if (staysBelow(e, old, part)) return []
  const conditions = tableConditions(e, part)
  const sort = e.kind === 'load' && part.tables.find((t) => t.name === e.buffer && t.of === 'sort')
  if (sort && sameExpr(sort.length, old.extent)) return conditions
  const list = e.kind === 'load' && part.lists.find((l) => l.axis.name === e.buffer)
  if (list && !hasHoles(list.axis) && sameExpr(list.axis.extent, old.extent)) return conditions
  if (mayBeNegative(e)) conditions.push(ge(e, int(0)))
  const below = lt(e, old.extent)
  if (!conditions.some((c) => sameExpr(c, below))) conditions.push(below)
  return conditions
}

/** The coordinates of an axis as they are, or (a part of a partition) from the start of a range on. */
function staysBelow(e: Expr, old: StoredAxis, part: FormatInstance): boolean {
  const [v, start] = e.kind === 'binary' && e.op === 'add' ? [e.a, e.b] : [e, int(0)]
  const axis = v.kind === 'var' ? part.axes.find((a) => a.name === v.name) : undefined
  if (!axis || mayBeNegative(start) || part.axes.some((a) => freeVars(start).has(a.name))) return false
  const end = add(start, axis.extent)
  return sameExpr(end, old.extent) || provesBelow(end, old.extent, [old])
}

/**
 * A table is loaded within its length: before it and beyond it (the last of even slices, say) there are no coordinates, nor in
 * the padding of a list.
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
    if (mayBeNegative(index) && !provesBelow(int(0), index, part.axes)) out.push(ge(index, int(0)))
    if (!within) out.push(lt(index, table.length))
    const list = part.lists.find((l) => l.axis.name === table.name)
    if (list) out.push(...isListed(x, list))
  })
  return out
}

/** Coordinates, sizes and what tables hold are natural numbers; of what is made of them only this is taken to be. */
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
