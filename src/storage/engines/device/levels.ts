/**
 * The levels of axis trees from entries on a device: the arrays that `storage/levels/build.ts` makes on the host, element
 * for element. Runs of equal coordinates are flags, their numbers scans; segments end where the parent changes.
 */
import { invariant } from '../../../ast/diagnostic.ts'
import { hasIndices } from '../../../ir/axis.ts'
import { when } from '../../../ir/build.ts'
import { add, binary, type Expr, eq, int, load, lt, mul, variable } from '../../../ir/expr.ts'
import { natural, read, update, write } from './column-types.ts'
import { type Starts, startsOf } from './duplicate-entries.ts'
import type { Frame } from './frame.ts'
import { atomic, flag, get, next, store } from './kernel.ts'
import {
  checkPositions,
  type DeviceLevel,
  type Dimension,
  isRepeating,
  type Made,
  MOST_POSITIONS,
  none,
  type Place,
  sizeOf,
  tooManyPositions,
} from './level.ts'
import { onlyOnes, sparseFixed } from './levels-fixed.ts'
import { packed } from './levels-packed.ts'
import { orderBy } from './order.ts'
import { reduce, scan } from './scan.ts'

/**
 * Builds one tree, parents first, and leaves the entries in an order that its levels need.
 * @throws SptError `bind/width`, `convert/too-large`
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
  const starts = startsOf(frame, tree)
  let place: Place = { at: null, positions: 1 }
  const levels: DeviceLevel[] = []
  for (const [k, d] of tree.entries()) {
    const made = await makeLevel(frame, d, place, starts[k] ?? null, direct)
    levels.push(made.level)
    place = made
  }
  for (const { cut } of starts.filter((x) => x !== null)) if (cut?.kind === 'var') frame.drop(cut.name)
  invariant(place.at, 'a tree has an axis')
  return { levels, at: place.at, positions: place.positions }
}

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
  starts: Starts | null,
  direct: boolean,
): Made | Promise<Made> {
  switch (d.axis.kind) {
    case 'dense_fixed':
      return denseFixed(frame, d, parent)
    case 'dense_variable':
      return denseVariable(frame, d, parent)
    case 'sparse_variable':
    case 'bitmap':
      return packed(frame, d, parent, starts)
    case 'sparse_fixed':
      return direct ? onlyOnes(frame, d, parent) : sparseFixed(frame, d, parent, starts)
  }
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
  const wrapped = q.cells()
  // Lengths are below 2^31: where the sum passes that first, it is negative.
  if (parent.positions * extent > MOST_POSITIONS)
    reduce(q, {
      key: 'wrapped',
      n: parent.positions + 1,
      op: 'max',
      columns: { x_indptr: read(indptr) },
      values: (p) => [flag(lt(get('x_indptr', p), int(0)))],
      count: 1,
      cells: wrapped,
    })
  const [positions = 0, found = 0] = await q.numbers([total, wrapped])
  if (parent.positions * extent > MOST_POSITIONS && found > 0) tooManyPositions(axis)
  q.release(lengths)
  const table = `@indptr ${axis.name}`
  frame.tables.set(table, indptr)
  const at = add(load(table, [parent.at], 'i32'), coordinate)
  return { level: { ...none, axis, extent, positions, indptr }, at, positions }
}
