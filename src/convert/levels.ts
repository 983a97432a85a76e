/**
 * The levels of axis trees from entries on a device: the arrays that `formats/build.ts` makes on the host, element
 * for element. Runs of equal coordinates are flags, their numbers scans; segments end where the parent changes.
 */
import { fail, invariant } from '../ast/diagnostic.ts'
import { hasIndices, type StoredAxis } from '../ir/axis.ts'
import { add, binary, call, div, type Expr, eq, int, load, lt, mod, mul, variable } from '../ir/expr.ts'
import type { Frame } from './frame.ts'
import { atomic, flag, get, next, store, when } from './kernel.ts'
import { differs, orderBy } from './order.ts'
import { type Column, natural, type Queue, update, write } from './queue.ts'
import { reduce, scan } from './scan.ts'

/** One level with its arrays on the device; as `Level` of `formats/storage.ts`. */
export interface DeviceLevel {
  readonly axis: StoredAxis
  readonly extent: number
  readonly width: number | null
  readonly positions: number
  readonly indptr: Column | null
  readonly indices: Column | null
  readonly mask: Column | null
}

/** An axis, the coordinate of each entry on it, its extent and width (`null`: still to be measured). */
export interface Dimension {
  readonly axis: StoredAxis
  readonly coordinate: Expr
  readonly extent: number
  readonly width: number | null
}

interface Place {
  /** Position on the level so far; `null`: the only segment of a root. */
  readonly at: Expr | null
  readonly positions: number
}

interface Made extends Place {
  readonly level: DeviceLevel
}

/**
 * Builds one tree, parents first, and leaves the entries in an order that its levels need.
 * @throws SptError `bind/width`, `convert/too-large`, `convert/unsupported`
 */
export async function buildTree(
  frame: Frame,
  tree: readonly Dimension[],
): Promise<{ readonly levels: readonly DeviceLevel[]; readonly at: Expr; readonly positions: number }> {
  const direct = isDirect(tree)
  if (!direct) {
    // Under the last level with an order, arithmetic places entries.
    const depth = tree.some(({ axis }) => isRepeating(axis))
      ? tree.length
      : tree.findLastIndex(({ axis }) => hasIndices(axis) || axis.kind === 'bitmap') + 1
    const keys = tree.slice(0, depth).map((d) => ({ expr: d.coordinate, extent: d.extent }))
    if (depth > 0) await orderBy(frame, keys)
  }
  let place: Place = { at: null, positions: 1 }
  const levels: DeviceLevel[] = []
  for (const [k, d] of tree.entries()) {
    const made = await makeLevel(frame, d, place, tree.slice(k + 1), direct)
    levels.push(made.level)
    place = made
  }
  invariant(place.at, 'a tree has an axis')
  return { levels, at: place.at, positions: place.positions }
}

const isRepeating = (axis: StoredAxis): boolean => hasIndices(axis) && !axis.unique

/**
 * Whether arithmetic places every entry: stored coordinates that are the only ones of their parent position need no
 * order.
 */
function isDirect(tree: readonly Dimension[]): boolean {
  const stored = tree.filter(({ axis }) => hasIndices(axis) || axis.kind === 'bitmap')
  const only = stored[0]
  return stored.length === 1 && only?.axis.kind === 'sparse_fixed' && only.axis.unique && only.width === 1
}

function makeLevel(
  frame: Frame,
  d: Dimension,
  parent: Place,
  below: readonly Dimension[],
  direct: boolean,
): Made | Promise<Made> {
  switch (d.axis.kind) {
    case 'dense_fixed':
      return denseFixed(frame, d, parent)
    case 'dense_variable':
      return denseVariable(frame, d, parent)
    case 'sparse_variable':
    case 'bitmap':
      return packed(frame, d, parent, below)
    case 'sparse_fixed':
      return direct ? onlyOnes(frame, d, parent) : sparseFixed(frame, d, parent, below)
  }
}

const none = { width: null, indptr: null, indices: null, mask: null }

/** A size that expressions mention by the axis it belongs to. */
function sizeOf(frame: Frame, what: string, axis: StoredAxis, value: number): Expr {
  const name = `@${what} ${axis.name}`
  frame.sizes.set(name, value)
  return variable(name)
}

function denseFixed(frame: Frame, { axis, coordinate, extent }: Dimension, parent: Place): Made {
  const positions = parent.positions * extent
  const at = parent.at ? add(mul(parent.at, sizeOf(frame, 'extent', axis, extent)), coordinate) : coordinate
  checkPositions(axis, positions)
  return { level: { ...none, axis, extent, positions }, at, positions }
}

/** Segments as long as their largest coordinate needs. */
async function denseVariable(
  frame: Frame,
  { axis, coordinate, extent }: Dimension,
  parent: Place,
): Promise<Made> {
  const { queue: q, n } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const lengths = q.column(parent.positions, 'i32', `lengths of ${axis.name}`)
  q.clear(lengths)
  const t = frame.terms([parent.at, coordinate])
  q.launch({
    ...t,
    key: `lengths ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_lengths: update(lengths) },
    sizes: { ...t.sizes, x_n: n },
    body: (e) => {
      const [at, c] = t.at(e) as [Expr, Expr]
      const [at1, c1] = t.at(next(e)) as [Expr, Expr]
      const raise = atomic('max', 'x_lengths', at, next(c))
      // In a run of rising coordinates only the last can be the largest.
      return [
        when(
          lt(next(e), variable('x_n')),
          [when(binary('or', binary('ne', at, at1), lt(c1, c)), [raise])],
          [raise],
        ),
      ]
    },
  })
  const indptr = q.column(parent.positions + 1, 'i32', `${axis.name}_indptr`)
  const total = q.cells()
  scan(q, {
    key: 'lengths',
    n: parent.positions,
    op: '+',
    columns: { x_lengths: natural(lengths), x_indptr: write(indptr) },
    value: (p) => get('x_lengths', p),
    body: (p, sum, own) => [
      store('x_indptr', p, sum),
      when(eq(next(p), variable('x_n')), [store('x_indptr', next(p), add(sum, own))]),
    ],
    total,
  })
  if (parent.positions === 0) q.clear(indptr)
  const [positions = 0] = await q.numbers([total])
  checkPositions(axis, positions)
  q.release(lengths)
  const table = `@indptr ${axis.name}`
  frame.tables.set(table, indptr)
  const at = add(load(table, [parent.at], 'i32'), coordinate)
  return { level: { ...none, axis, extent, positions, indptr }, at, positions }
}

/** Positions that exist, packed: compressed levels and bitmaps. */
async function packed(frame: Frame, d: Dimension, parent: Place, below: readonly Dimension[]): Promise<Made> {
  const { axis, coordinate, extent } = d
  const { queue: q, n } = frame
  const keys = parent.at ? [parent.at, coordinate] : [coordinate]
  const begins = isRepeating(axis) ? repeated(frame, d, parent, below) : startsOf(frame, keys)
  const name = `@at ${axis.name}`
  const column = q.column(n, 'i32', `positions of ${axis.name}`)
  const total = q.cells()
  scan(q, {
    ...begins,
    key: `positions ${begins.key}`,
    n,
    op: '+',
    columns: { ...begins.columns, x_at: write(column) },
    value: (e) => flag(begins.cond(e)),
    body: (e, sum, own) => [store('x_at', e, add(sum, add(own, int(-1))))],
    total,
  })
  const [positions = 0] = await q.numbers([total])
  frame.set(name, column)
  frame.drop(FRESH)
  const at = variable(name)
  const indptr = indptrOf(frame, axis, parent, at)
  if (axis.kind === 'bitmap') {
    const mask = bitsOf(frame, d, parent, at)
    return { level: { ...none, axis, extent, positions, indptr, mask }, at, positions }
  }
  const indices = q.column(positions, 'i32', `${axis.name}_indices`)
  const t = frame.terms([at, coordinate])
  q.launch({
    ...t,
    key: `indices ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_indices: write(indices) },
    body: (e) => {
      const [to, c] = t.at(e) as [Expr, Expr]
      return [
        when(
          differs((x) => [t.at(x)[0]!], e),
          [store('x_indices', to, c)],
        ),
      ]
    },
  })
  return { level: { ...none, axis, extent, positions, indptr, indices }, at, positions }
}

const FRESH = '@fresh'

interface Condition {
  readonly key: string
  readonly columns: ReturnType<Frame['terms']>['columns']
  readonly sizes: ReturnType<Frame['terms']>['sizes']
  readonly cond: (e: Expr) => Expr
}

/** Where a tuple differs from the one before. */
function startsOf(frame: Frame, exprs: readonly Expr[]): Condition {
  const t = frame.terms(exprs)
  return { key: `starts ${t.key}`, columns: t.columns, sizes: t.sizes, cond: (e) => differs(t.at, e) }
}

/**
 * Where a nonunique axis begins a position: with each new coordinate, and after as many child coordinates as a
 * position takes; without a child of fixed width with every new tuple.
 */
function repeated(
  frame: Frame,
  { axis, coordinate }: Dimension,
  parent: Place,
  below: readonly Dimension[],
): Condition {
  const own = parent.at ? [parent.at, coordinate] : [coordinate]
  const [child] = below
  if (child?.axis.kind !== 'sparse_fixed') return startsOf(frame, [...own, ...below.map((d) => d.coordinate)])
  if (!child.axis.unique) unsupported(axis, 'is nonunique over a nonunique axis')
  const starts = startsOf(frame, own)
  if (child.width === null) return starts
  const { queue: q, n } = frame
  const t = frame.terms([...own, child.coordinate])
  const fresh = q.column(n, 'i32', `starts of ${axis.name}`)
  const outer = (e: Expr): readonly Expr[] => t.at(e).slice(0, -1)
  scan(q, {
    ...t,
    key: `fresh ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_fresh: write(fresh) },
    sizes: { ...t.sizes, x_width: child.width },
    value: (e) => flag(differs(t.at, e)),
    reset: (e) => differs(outer, e),
    body: (e, rank, own) => [
      store('x_fresh', e, flag(binary('and', eq(own, int(1)), eq(mod(rank, variable('x_width')), int(0))))),
    ],
  })
  frame.set(FRESH, fresh)
  const f = frame.terms([variable(FRESH)])
  return { key: `fresh ${f.key}`, columns: f.columns, sizes: f.sizes, cond: (e) => eq(f.at(e)[0]!, int(1)) }
}

/** `indptr[p + 1]` is where the last segment ends that is not after p's; entries are in order of `at`. */
function indptrOf(frame: Frame, axis: StoredAxis, parent: Place, at: Expr): Column {
  const { queue: q, n } = frame
  const ends = q.column(parent.positions, 'i32', `ends of ${axis.name}`)
  q.clear(ends)
  const t = frame.terms([at, parent.at ?? int(0)])
  q.launch({
    ...t,
    key: `ends ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_ends: write(ends) },
    sizes: { ...t.sizes, x_n: n },
    body: (e) => {
      const [q0, p0] = t.at(e) as [Expr, Expr]
      const last = store('x_ends', p0, next(q0))
      const p1 = t.at(next(e))[1]!
      return [when(lt(next(e), variable('x_n')), [when(binary('ne', p0, p1), [last])], [last])]
    },
  })
  const indptr = q.column(parent.positions + 1, 'i32', `${axis.name}_indptr`)
  scan(q, {
    key: 'ends',
    n: parent.positions,
    op: 'max',
    columns: { x_ends: natural(ends), x_indptr: write(indptr) },
    value: (p) => get('x_ends', p),
    body: (p, most, own) => [
      store('x_indptr', p, most),
      when(eq(next(p), variable('x_n')), [store('x_indptr', next(p), binary('max', most, own))]),
    ],
  })
  if (parent.positions === 0) q.clear(indptr)
  q.release(ends)
  return indptr
}

/** The mask of each parent position. */
function bitsOf(frame: Frame, { axis, coordinate, extent }: Dimension, parent: Place, at: Expr): Column {
  const { queue: q, n } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const words = Math.ceil(extent / 32)
  const mask = q.column(parent.positions * words, 'i32', `${axis.name}_mask`)
  q.clear(mask)
  const t = frame.terms([at, parent.at, coordinate])
  q.launch({
    ...t,
    key: `mask ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_mask: update(mask) },
    sizes: { ...t.sizes, x_words: words },
    body: (e) => {
      const [, p, c] = t.at(e) as [Expr, Expr, Expr]
      const word = add(mul(p, variable('x_words')), div(c, int(32)))
      const bit = call('shift_left', [int(1), mod(c, int(32))])
      // Each bit is added once: entries of one coordinate are neighbours.
      return [
        when(
          differs((x) => [t.at(x)[0]!], e),
          [atomic('+', 'x_mask', word, bit)],
        ),
      ]
    },
  })
  return mask
}

/** Fixed width, the coordinate `extent` where a segment has fewer. */
async function sparseFixed(
  frame: Frame,
  d: Dimension,
  parent: Place,
  below: readonly Dimension[],
): Promise<Made> {
  const { axis, coordinate } = d
  const { queue: q, n } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const t = frame.terms([parent.at, coordinate, ...(isRepeating(axis) ? below.map((c) => c.coordinate) : [])])
  const rank = q.column(n, 'i32', `ranks on ${axis.name}`)
  scan(q, {
    ...t,
    key: `ranks ${t.key}`,
    n,
    op: '+',
    columns: { ...t.columns, x_rank: write(rank) },
    value: (e) => flag(differs(t.at, e)),
    reset: (e) => differs((x) => [t.at(x)[0]!], e),
    body: (e, sum, own) => [store('x_rank', e, add(sum, add(own, int(-1))))],
  })
  const widest = q.cells()
  reduce(q, {
    key: 'widest',
    n,
    op: 'max',
    columns: { x_rank: natural(rank) },
    values: (e) => [next(get('x_rank', e))],
    count: 1,
    cells: widest,
  })
  const [needed = 0] = await q.numbers([widest])
  const width = d.width ?? needed
  if (width < needed) tooNarrow(axis, width, needed)
  const name = `@rank ${axis.name}`
  frame.set(name, rank)
  const at = add(mul(parent.at, sizeOf(frame, 'width', axis, width)), variable(name))
  return fixed(frame, d, width, at, parent.positions * width)
}

/** Width 1, for positions that have one coordinate each: checked by reading back what was written. */
async function onlyOnes(frame: Frame, d: Dimension, parent: Place): Promise<Made> {
  const { queue: q, n } = frame
  invariant(parent.at, `${d.axis.name} has a parent`)
  const made = fixed(frame, d, 1, parent.at, parent.positions)
  const { indices } = made.level
  invariant(indices, 'a sparse level has indices')
  const t = frame.terms([parent.at, d.coordinate])
  const clash = q.cells()
  reduce(q, {
    ...t,
    key: `clash ${t.key}`,
    n,
    op: 'max',
    columns: { ...t.columns, x_indices: natural(indices) },
    values: (e) => {
      const [p, c] = t.at(e) as [Expr, Expr]
      return [flag(binary('ne', get('x_indices', p), c))]
    },
    count: 1,
    cells: clash,
  })
  const [found = 0] = await q.numbers([clash])
  if (found > 0) tooNarrow(d.axis, 1, 2)
  return made
}

/** Indices, and padding where there are none. */
function fixed(frame: Frame, d: Dimension, width: number, at: Expr, positions: number): Made {
  const { axis, coordinate, extent } = d
  const { queue: q, n } = frame
  checkPositions(axis, positions)
  const indices = q.column(positions, 'i32', `${axis.name}_indices`)
  fill(q, indices, extent)
  const t = frame.terms([at, coordinate])
  q.launch({
    ...t,
    key: `place ${t.key}`,
    threads: n,
    columns: { ...t.columns, x_indices: write(indices) },
    body: (e) => {
      const [to, c] = t.at(e) as [Expr, Expr]
      return [store('x_indices', to, c)]
    },
  })
  return { level: { ...none, axis, extent, width, positions, indices }, at, positions }
}

/** All elements become an integer. */
export function fill(q: Queue, column: Column, value: number): void {
  q.launch({
    key: 'fill',
    threads: column.length,
    columns: { x_to: write(column) },
    sizes: { x_value: value },
    body: (e) => [store('x_to', e, variable('x_value'))],
  })
}

function checkPositions(axis: StoredAxis, positions: number): void {
  if (positions <= 2 ** 31 - 1) return
  fail({
    code: 'convert/too-large',
    message: `axis ${axis.name} would have ${positions} positions`,
    expected: `at most ${2 ** 31 - 1}: positions are 32-bit`,
    hint: 'store fewer positions: a smaller width or block, or a sparse axis instead of a dense one',
  })
}

function tooNarrow(axis: StoredAxis, width: number, needed: number): never {
  fail({
    code: 'bind/width',
    message: `axis ${axis.name} has the width ${width}, but a position of its parent stores ${needed} coordinates${needed === 2 ? ' or more' : ''}`,
    expected: `an integer width of at least ${needed}`,
    hint: 'leave the width to be measured, or use sparse_variable',
  })
}

export function unsupported(axis: StoredAxis, what: string): never {
  fail({
    code: 'convert/unsupported',
    message: `axis ${axis.name} ${what}, which is built on the host only`,
    expected: 'axes that kernels can build',
    hint: 'bind the tensor from the host',
  })
}
