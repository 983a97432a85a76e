/**
 * Stored tensors on a device back to coordinates: every position's coordinate on each level is an expression over
 * the position, evaluated where it is used. Only the parents of ragged and compressed levels become columns.
 */
import { hasIndices, isPadded, type StoredAxis } from '../../../ir/axis.ts'
import { when } from '../../../ir/build.ts'
import type { Dtype } from '../../../ir/dtype.ts'
import {
  all,
  binary,
  constant,
  div,
  type Expr,
  eq,
  ge,
  int,
  load,
  lt,
  mod,
  variable,
} from '../../../ir/expr.ts'
import { substitute } from '../../../ir/expr-tree.ts'
import { type Column, natural, write } from './column-types.ts'
import { ENTRY, Frame } from './frame.ts'
import { bindTables, guarded, type Inverse } from './inverse.ts'
import { flag, get, store } from './kernel.ts'
import type { Order } from './known-orders.ts'
import type { DeviceLevel } from './level.ts'
import type { Queue } from './queue.ts'
import { reduce, scan } from './scan.ts'
import { walkUp } from './walk-up.ts'

/** A tensor over axes as it lies on a device. */
export interface DeviceStored {
  /** One chain of levels for each tree, root first. */
  readonly trees: readonly (readonly DeviceLevel[])[]
  readonly size: number
  /** In position order; `null` in a pattern. */
  readonly values: Column | null
  readonly dtype: Dtype
  readonly fill: number
}

/**
 * The entries of a stored tensor: a frame with a column for each dimension, whose `entry` is the position of the
 * value. Padding is left out, and so are values of dense levels that equal the fill.
 */
export async function entriesOf(q: Queue, stored: DeviceStored, inverse: Inverse): Promise<Frame> {
  const positions = new Frame(q, stored.size, inverse.sizes, new Map())
  bindTables(positions, inverse.tables)
  const made: Column[] = []
  const coordinates = new Map<string, Expr>()
  let after = stored.size
  for (const tree of stored.trees) {
    const size = tree.at(-1)?.positions ?? 1
    after = size === 0 ? 0 : after / size
    const whole = stored.trees.length === 1
    const at = whole
      ? variable(ENTRY)
      : mod(div(variable(ENTRY), positions.sized(after)), positions.sized(size))
    walkUp(positions, tree, at, coordinates, made)
  }
  const dims = inverse.exprs.map((e) => guarded(substitute(e, coordinates), inverse.tables))
  const conditions = keptIf(positions, stored, coordinates, dims, inverse)
  const frame =
    conditions.length === 0
      ? everything(positions, dims, inverse, made)
      : await kept(positions, all(conditions), dims, inverse)
  for (const d of inverse.dims) frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  frame.sortedBy = orderOf(stored, inverse)
  q.release(...made.filter((c) => ![...frame.columns.values()].includes(c)))
  return frame
}

/** The order that positions of a tree give to what they stand for. */
function orderOf({ trees }: DeviceStored, { dims, exprs }: Inverse): Order {
  const out: Expr[] = []
  const [tree, ...others] = trees
  if (!tree || others.length > 0) return out
  for (const { axis } of tree) {
    if (hasIndices(axis) && (!axis.ordered || isPadded(axis))) break
    const dim = dims[exprs.findIndex((e) => e.kind === 'var' && e.name === axis.name)]
    if (!dim) break
    out.push(variable(dim.name))
  }
  return out
}

/** Conditions of what is an entry: no padding, within the tensor, and stored if it is in a dense level. */
function keptIf(
  frame: Frame,
  stored: DeviceStored,
  coordinates: ReadonlyMap<string, Expr>,
  dims: readonly Expr[],
  inverse: Inverse,
): Expr[] {
  const levels = stored.trees.flat()
  const out = levels
    .filter((l) => l.axis.kind === 'sparse_fixed')
    .map((l) => lt(coordinates.get(l.axis.name)!, frame.sized(l.extent)))
  const plain = inverse.exprs.every((e) => e.kind === 'var')
  if (!plain)
    for (const [k, d] of inverse.dims.entries())
      out.push(ge(dims[k]!, int(0)), lt(dims[k]!, frame.sized(d.extent)))
  if (stored.values && !isExact(stored)) {
    frame.tables.set(VALUES, stored.values)
    frame.signed.add(VALUES)
    const value = load(VALUES, [variable(ENTRY)], stored.values.dtype)
    out.push(binary('ne', value, constant(stored.fill, value.dtype)))
  }
  return out
}

const VALUES = '@values'

/** Whether every position that is no padding holds an entry. */
const isExact = ({ trees }: DeviceStored): boolean => {
  if (trees.flat().some((l) => isPadded(l.axis))) return false
  const last: StoredAxis | undefined = trees[0]?.at(-1)?.axis
  return trees.length === 1 && last !== undefined && (hasIndices(last) || last.kind === 'bitmap')
}

/** All positions; columns that are there already are taken as they are. */
function everything(
  positions: Frame,
  dims: readonly Expr[],
  inverse: Inverse,
  made: readonly Column[],
): Frame {
  const { queue: q, n } = positions
  const out = new Frame(q, n, inverse.sizes, new Map())
  for (const [k, { name }] of inverse.dims.entries()) {
    const e = dims[k]!
    const there = e.kind === 'load' && e.index[0]?.kind === 'var' && e.index[0].name === ENTRY
    const column = there ? positions.tables.get(e.buffer) : undefined
    if (column) out.set(name, column, made.includes(column))
    else {
      positions.compute(name, e)
      const own = positions.columns.get(name)!
      positions.keep(own)
      out.set(name, own)
    }
  }
  return out
}

/** The positions where the condition holds, in order. */
async function kept(positions: Frame, cond: Expr, dims: readonly Expr[], inverse: Inverse): Promise<Frame> {
  const { queue: q, n } = positions
  const c = positions.terms([cond])
  const total = q.cells()
  reduce(q, {
    ...c,
    key: `kept ${c.key}`,
    n,
    op: '+',
    values: (e) => [flag(c.at(e)[0]!)],
    count: 1,
    cells: total,
  })
  const [count = 0] = await q.numbers([total])
  const out = new Frame(q, count, inverse.sizes, new Map())
  const entry = q.column(count, 'i32', 'entry')
  scan(q, {
    ...c,
    key: `keep ${c.key}`,
    n,
    op: '+',
    columns: { ...c.columns, x_entry: write(entry) },
    value: (e) => flag(c.at(e)[0]!),
    body: (e, to, own) => [when(eq(own, int(1)), [store('x_entry', to, e)])],
  })
  for (const [k, { name }] of inverse.dims.entries()) {
    const t = positions.terms([dims[k]!])
    const column = q.column(count, 'i32', name)
    q.launch({
      ...t,
      key: `coordinates ${t.key}`,
      threads: count,
      columns: { ...t.columns, x_entry: natural(entry), x_to: write(column) },
      body: (s) => [store('x_to', s, t.at(get('x_entry', s))[0]!)],
    })
    out.set(name, column)
  }
  out.setEntry(entry)
  return out
}
