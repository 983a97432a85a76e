/**
 * Stored tensors on a device back to coordinates: every position's coordinate on each level is an expression over
 * the position, evaluated where it is used. Only the parents of ragged and compressed levels become columns.
 */
import { invariant } from '../ast/diagnostic.ts'
import { hasIndices, isPadded, type StoredAxis } from '../ir/axis.ts'
import { when } from '../ir/build.ts'
import type { Dtype } from '../ir/dtype.ts'
import {
  add,
  all,
  binary,
  call,
  constant,
  div,
  type Expr,
  eq,
  ge,
  int,
  load,
  lt,
  mod,
  mul,
  rewriteExpr,
  select,
  sub,
  substitute,
  variable,
} from '../ir/expr.ts'
import { ENTRY, Frame } from './frame.ts'
import { flag, get, loop, next, scalar, store } from './kernel.ts'
import type { Order } from './known.ts'
import type { DeviceLevel } from './level.ts'
import type { Queue } from './queue.ts'
import { reduce, scan } from './scan.ts'
import { type Column, natural, read, update, write } from './spec.ts'

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

/** How stored coordinates go back to those of the tensor. */
export interface Inverse {
  readonly dims: readonly { readonly name: string; readonly extent: number }[]
  /** Over the names of the axes; one for each dimension. */
  readonly exprs: readonly Expr[]
  readonly sizes: ReadonlyMap<string, number>
  readonly tables: ReadonlyMap<string, { readonly column: Column; readonly fill: number }>
}

/** A load that reads `fill` outside of its table. */
export function guarded(e: Expr, tables: Inverse['tables']): Expr {
  return rewriteExpr(e, (x) => {
    const table = x.kind === 'load' ? tables.get(x.buffer) : undefined
    const at = x.kind === 'load' ? x.index[0] : undefined
    if (!table || !at) return undefined
    return select(all([ge(at, int(0)), lt(at, variable(`@length ${nameOf(x)}`))]), x, int(table.fill))
  })
}

const nameOf = (x: Expr): string => (x.kind === 'load' ? x.buffer : '')

/** Puts tables and their lengths where expressions of a frame find them. */
export function bindTables(frame: Frame, tables: Inverse['tables']): void {
  for (const [name, { column }] of tables) {
    frame.tables.set(name, column)
    frame.sizes.set(`@length ${name}`, column.length)
  }
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
      : mod(div(variable(ENTRY), sized(positions, after)), sized(positions, size))
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

/** A size of its own for a number, so that kernels serve other sizes. */
function sized(frame: Frame, value: number): Expr {
  const name = `@size ${frame.sizes.size}`
  frame.sizes.set(name, value)
  return variable(name)
}

/** Coordinates of each level above position `at` of a chain's last. */
function walkUp(
  frame: Frame,
  tree: readonly DeviceLevel[],
  at: Expr,
  coordinates: Map<string, Expr>,
  made: Column[],
): void {
  let position = at
  for (let k = tree.length - 1; k >= 0; k--) {
    const level = tree[k]!
    const above = tree[k - 1]
    const { axis, indptr, indices } = level
    const table = (what: string, column: Column): string => {
      const name = `@${what} ${axis.name}`
      frame.tables.set(name, column)
      return name
    }
    const own = position
    if (!above) {
      const stored = indices ? load(table('indices', indices), [own], 'i32') : own
      coordinates.set(axis.name, stored)
      return
    }
    if (axis.kind === 'dense_fixed' || axis.kind === 'sparse_fixed') {
      const width = sized(frame, level.width ?? level.extent)
      position = div(own, width)
      coordinates.set(
        axis.name,
        indices ? load(table('indices', indices), [own], 'i32') : sub(own, mul(position, width)),
      )
      continue
    }
    invariant(indptr, `${axis.name} has segments`)
    const parents = level.mask ? null : parentsOf(frame.queue, indptr, above.positions, level.positions)
    const bits = level.mask ? bitsOf(frame.queue, level, above.positions) : null
    const parent = parents ?? bits!.parents
    made.push(parent, ...(bits ? [bits.coordinates] : []))
    position = load(table('parents', parent), [own], 'i32')
    const stored = indices ?? bits?.coordinates
    coordinates.set(
      axis.name,
      stored
        ? load(table('indices', stored), [own], 'i32')
        : sub(own, load(table('indptr', indptr), [position], 'i32')),
    )
  }
}

/** The parent position of each position: its number where a segment begins, then the largest so far. */
function parentsOf(q: Queue, indptr: Column, parents: number, positions: number): Column {
  const out = q.column(positions, 'i32', 'parents')
  q.clear(out)
  q.launch({
    key: 'segments',
    threads: parents,
    columns: { x_indptr: natural(indptr), x_out: write(out) },
    body: (p) => [
      when(lt(get('x_indptr', p), get('x_indptr', next(p))), [store('x_out', get('x_indptr', p), p)]),
    ],
  })
  scan(q, {
    key: 'parents',
    n: positions,
    op: 'max',
    columns: { x_out: update(out) },
    value: (e) => get('x_out', e),
    body: (e, most, own) => [store('x_out', e, binary('max', most, own))],
  })
  return out
}

const WORD = 32

/** Parents and coordinates of the bits that are set. */
function bitsOf(q: Queue, level: DeviceLevel, parents: number): { parents: Column; coordinates: Column } {
  const { indptr, mask, positions, extent } = level
  invariant(indptr && mask, 'a bitmap has a mask')
  const out = {
    parents: q.column(positions, 'i32', 'parents'),
    coordinates: q.column(positions, 'i32', 'coordinates'),
  }
  const isSet = (word: Expr, bit: Expr): Expr =>
    select(
      eq(bit, int(WORD - 1)),
      lt(word, int(0)),
      eq(mod(div(word, call('shift_left', [int(1), bit])), int(2)), int(1)),
    )
  q.launch({
    key: 'bits',
    threads: parents,
    columns: {
      x_indptr: natural(indptr),
      x_mask: read(mask),
      x_parents: write(out.parents),
      x_coordinates: write(out.coordinates),
    },
    sizes: { x_words: Math.ceil(extent / WORD) },
    body: (p) => {
      const at = scalar('x_at', get('x_indptr', p))
      const word = scalar('x_word', int(0))
      return [
        ...at.declare,
        ...word.declare,
        loop('x_k', variable('x_words'), (k) => [
          word.set(get('x_mask', add(mul(p, variable('x_words')), k))),
          loop('x_bit', int(WORD), (bit) => [
            when(isSet(word.value, bit), [
              store('x_parents', at.value, p),
              store('x_coordinates', at.value, add(mul(k, int(WORD)), bit)),
              at.set(next(at.value)),
            ]),
          ]),
        ]),
      ]
    },
  })
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
    .map((l) => lt(coordinates.get(l.axis.name)!, sized(frame, l.extent)))
  const plain = inverse.exprs.every((e) => e.kind === 'var')
  if (!plain)
    for (const [k, d] of inverse.dims.entries())
      out.push(ge(dims[k]!, int(0)), lt(dims[k]!, sized(frame, d.extent)))
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
