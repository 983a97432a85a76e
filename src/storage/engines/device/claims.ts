/** What a format's text says of every segment of an axis, checked on the device's arrays. */

import { binary, type Expr, eq, mul, sub, variable } from '../../../ir/expr.ts'
import { type Claim, checkClaim } from '../../levels/claims.ts'
import type { Level } from '../../storage.ts'
import { type Column, natural, type Use } from './column-types.ts'
import { before, flag, get, next } from './kernel.ts'
import { type DeviceLevel, isRepeating } from './level.ts'
import type { Queue } from './queue.ts'
import { reduce } from './scan.ts'

/**
 * `chain`: the levels of a tree from the root to the axis.
 * @throws SptError `format/claim`, with the coordinates of the segment
 */
export async function checkClaimOn(q: Queue, chain: readonly DeviceLevel[], claim: Claim): Promise<void> {
  if (await evident(q, chain, claim)) return
  // Segments under padding are empty and yet hold what is claimed: the host tells them apart, and says where.
  const levels: Level[] = []
  for (const l of chain)
    levels.push({
      ...l,
      indptr: await down(q, l.indptr),
      indices: await down(q, l.indices),
      mask: await down(q, l.mask),
    })
  checkClaim(levels, chain.at(-1)!.axis.name, claim)
}

async function down(q: Queue, c: Column | null): Promise<Int32Array | null> {
  const a = c ? await q.download(c) : null
  return a instanceof Int32Array ? a : null
}

/** Whether the claim holds of every segment, those under padding too: by their lengths. */
async function evident(q: Queue, chain: readonly DeviceLevel[], claim: Claim): Promise<boolean> {
  const level = chain.at(-1)!
  const { axis, indptr, indices, extent, width } = level
  const parents = chain.at(-2)?.positions ?? 1
  if (claim === 'full') {
    if (axis.kind === 'dense_fixed' || parents === 0 || extent === 0) return true
    if (isRepeating(axis)) return false
    if (indptr)
      return none(q, 'full', parents, { x_indptr: natural(indptr) }, { x_extent: extent }, (p) =>
        binary('ne', sub(get('x_indptr', next(p)), get('x_indptr', p)), variable('x_extent')),
      )
    if (width !== null && width < extent) return false
  } else if (axis.kind !== 'sparse_fixed' || width === 0 || parents === 0) return true
  if (!indices || width === null) return false
  // Coordinates ascend, padding is last: one element of each segment tells.
  const told = claim === 'full' ? extent : width
  return none(
    q,
    'padded',
    parents,
    { x_indices: natural(indices) },
    { x_width: width, x_told: told, x_extent: extent },
    (p) =>
      eq(
        get('x_indices', binary('add', mul(p, variable('x_width')), before(variable('x_told')))),
        variable('x_extent'),
      ),
  )
}

async function none(
  q: Queue,
  key: string,
  n: number,
  columns: Readonly<Record<string, Use>>,
  sizes: Readonly<Record<string, number>>,
  holds: (p: Expr) => Expr,
): Promise<boolean> {
  const cell = q.cells()
  reduce(q, {
    key: `claim ${key}`,
    n,
    op: 'max',
    columns,
    sizes,
    values: (p) => [flag(holds(p))],
    count: 1,
    cells: cell,
  })
  const [found] = await q.numbers([cell])
  return found === 0
}
