/** Levels with equally many positions under each parent position, padded. */
import { fail, invariant } from '../../../ast/diagnostic.ts'
import type { StoredAxis } from '../../../ir/axis.ts'
import { add, binary, type Expr, int, mul, variable } from '../../../ir/expr.ts'
import { checkPadding } from '../../levels/levels.ts'
import { natural, write } from './column-types.ts'
import { conditionOf, type Starts } from './duplicate-entries.ts'
import type { Frame } from './frame.ts'
import { flag, get, next, store } from './kernel.ts'
import { checkPositions, type Dimension, fill, type Made, none, type Place, sizeOf } from './level.ts'
import { differs } from './order.ts'
import { reduce, scan } from './scan.ts'

/** Fixed width, padding where a segment has fewer. */
export async function sparseFixed(
  frame: Frame,
  d: Dimension,
  parent: Place,
  starts: Starts | null,
): Promise<Made> {
  const { axis, coordinate } = d
  const { queue: q, n } = frame
  invariant(parent.at, `${axis.name} has a parent`)
  const name = `@rank ${axis.name}`
  if (d.width !== null && d.width > 0 && frame.columns.has(name)) {
    // The parent began a new position wherever the width was used up (`duplicate-entries.ts`).
    const at = add(mul(parent.at, sizeOf(frame, 'width', axis, d.width)), variable(name))
    return fixed(frame, d, d.width, at, parent.positions * d.width)
  }
  const begins = conditionOf(frame, [parent.at, coordinate], starts)
  const rank = q.column(n, 'i32', `ranks on ${axis.name}`)
  scan(q, {
    ...begins,
    key: `ranks ${begins.key}`,
    n,
    op: '+',
    columns: { ...begins.columns, x_rank: write(rank) },
    value: (e) => flag(begins.cond(e)),
    reset: (e) => differs((x) => begins.at(x).slice(0, 1), e),
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
  frame.set(name, rank)
  const at = add(mul(parent.at, sizeOf(frame, 'width', axis, width)), variable(name))
  return fixed(frame, d, width, at, parent.positions * width)
}

/** Width 1, for positions that have one coordinate each: checked by reading back what was written. */
export async function onlyOnes(frame: Frame, d: Dimension, parent: Place): Promise<Made> {
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
  const { axis, coordinate, extent, padding } = d
  const { queue: q, n } = frame
  checkPositions(axis, positions)
  if (axis.kind === 'sparse_fixed') checkPadding(axis, padding, extent, positions)
  const indices = q.column(positions, 'i32', `${axis.name}_indices`)
  fill(q, indices, padding)
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

function tooNarrow(axis: StoredAxis, width: number, needed: number): never {
  fail({
    code: 'bind/width',
    message: `axis ${axis.name} has the width ${width}, but a position of its parent stores ${needed} coordinates${needed === 2 ? ' or more' : ''}`,
    expected: `an integer width of at least ${needed}`,
    hint: 'leave the width to be measured, or use sparse_variable',
  })
}
