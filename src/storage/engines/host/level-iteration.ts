/** Level iteration: parents of positions, set bits of masks, stream compaction. */

import { ready } from '../../../ast/work.ts'
import { allocate, borrowExact } from '../../../columns/allocate.ts'
import { ENTRY, Frame } from '../../../columns/column-engine.ts'
import { type Expr, variable } from '../../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../../ir/expressions/expr-tree.ts'
import type { TypedArray } from '../../../ir/values/arrays.ts'
import { MASK_BITS, wordsFor } from '../../../ir/values/packed-fields.ts'
import { type F, forEachChunk, type Host, newValues } from './map-reduce.ts'

export const parentsOf: Host['parentsOf'] = (indptr, parents, positions) => {
  const out = borrowExact(positions, 'positions')
  for (let p = 0; p < parents; p++) {
    const end = indptr[p + 1]!
    for (let q = indptr[p]!; q < end; q++) out[q] = p
  }
  return out
}

export const bitsOf: Host['bitsOf'] = ({ mask, positions, extent }, parents) => {
  const words = wordsFor(extent, MASK_BITS)
  const out = {
    parents: borrowExact(positions, 'positions'),
    coordinates: borrowExact(positions, 'positions'),
  }
  let q = 0
  for (let p = 0; p < parents; p++)
    for (let w = 0; w < words; w++)
      for (let word = mask![p * words + w]!; word !== 0; word &= word - 1) {
        out.parents[q] = p
        out.coordinates[q++] = w * 32 + 31 - Math.clz32(word & -word)
      }
  return out
}

export const compact: Host['compact'] = (positions, condition, columns, sizes) => {
  const entry = selectPositions(positions, condition)
  const out = new Frame<TypedArray>(positions.engine, entry.length, sizes)
  // Expressions over all positions, evaluated at the kept ones.
  const selected = positions.sibling(entry.length)
  selected.set('@position', entry, false)
  for (const [name, e] of columns) {
    const atPosition = rewriteExpr(e, (x) =>
      x.kind === 'var' && x.name === ENTRY ? variable('@position') : undefined,
    )
    out.set(name, newValues(selected, atPosition))
  }
  out.setEntry(entry)
  return ready(out)
}

function selectPositions(positions: F, condition: Expr): Int32Array {
  const out = allocate(positions.n, 'positions')
  let count = 0
  forEachChunk(positions, [condition], ([holds], lo, n) => {
    for (let k = 0; k < n; k++) {
      out[count] = lo + k
      count += holds![k] !== 0 ? 1 : 0
    }
  })
  return out.slice(0, count)
}
