/** What a format's text says of every segment of an axis, checked on what was built. */
import { fail } from '../../ast/diagnostic.ts'
import { segment } from '../read/expand.ts'
import { paddedPositions } from '../read/padding.ts'
import { type Level, wordsOf } from '../storage.ts'

/** `full`: no coordinate is absent. `compact`: there is no padding. */
export type Claim = 'full' | 'compact'

/**
 * Checks one axis of a tree, whose levels are given from the root. Segments under padding hold nothing and are
 * not looked at.
 * @throws SptError `format/claim`, with the coordinates of the segment
 */
export function checkClaim(chain: readonly Level[], axis: string, claim: Claim): void {
  const depth = chain.findIndex((l) => l.axis.name === axis)
  const level = chain[depth]!
  const segments = depth === 0 ? 1 : chain[depth - 1]!.positions
  const padded = depth === 0 ? null : paddedPositions(chain.slice(0, depth))[depth - 1]!
  for (let p = 0; p < segments; p++) {
    if (padded?.[p] === 1) continue
    if (claim === 'full') {
      const c = firstAbsent(level, p)
      if (c < level.extent) refuse(chain, depth, p, `is claimed full, but does not store the coordinate ${c}`)
    } else if (level.axis.kind === 'sparse_fixed') {
      const [lo, hi] = segment(level, p)
      if (hi > lo && level.indices![hi - 1] === level.extent)
        refuse(chain, depth, p, 'is claimed compact, but has padding')
    }
  }
}

/** The smallest coordinate that a segment does not hold; the extent where it holds all. */
function firstAbsent(level: Level, p: number): number {
  const { axis, extent, indices, mask } = level
  const [lo, hi] = segment(level, p)
  if (axis.kind === 'dense_fixed') return extent
  // Coordinates ascend while a level is built.
  if (!indices && !mask) return hi - lo
  if (mask) {
    const words = wordsOf(extent)
    for (let c = 0; c < extent; c++) if (((mask[p * words + (c >>> 5)]! >>> (c & 31)) & 1) === 0) return c
    return extent
  }
  let c = 0
  for (let q = lo; q < hi && indices![q]! <= c; q++) if (indices![q] === c) c++
  return c
}

function refuse(chain: readonly Level[], depth: number, p: number, what: string): never {
  const { axis } = chain[depth]!
  const above = chain.slice(0, depth)
  const at = coordinatesOf(above, p)
  const where = depth === 0 ? '' : ` at (${above.map((l) => l.axis.name).join(', ')}) = (${at.join(', ')})`
  fail({
    code: 'format/claim',
    message: `axis ${axis.name}${where} ${what}`,
    ...(axis.span ? { span: axis.span } : {}),
    expected: 'what the format says of its axis to hold of the tensor',
    hint: 'leave the claim out, or choose a format that fits the tensor',
  })
}

/** Coordinates on the way from the root to position q of the last of these levels. */
export function coordinatesOf(chain: readonly Level[], q: number): number[] {
  const out: number[] = []
  let at = q
  for (let d = chain.length - 1; d >= 0; d--) {
    const level = chain[d]!
    const parents = d === 0 ? 1 : chain[d - 1]!.positions
    const p = parentOfPosition(level, parents, at)
    const lo = segment(level, p)[0]
    out.unshift(level.indices ? level.indices[at]! : level.mask ? bitAt(level, p, at - lo) : at - lo)
    at = p
  }
  return out
}

function parentOfPosition(level: Level, parents: number, q: number): number {
  if (!level.indptr) return Math.floor(q / Math.max(1, level.width ?? level.extent))
  let lo = 0
  let hi = parents - 1
  while (lo < hi) {
    const middle = (lo + hi + 1) >>> 1
    if (level.indptr[middle]! <= q) lo = middle
    else hi = middle - 1
  }
  return lo
}

/** Which coordinate the k-th set bit of a segment is. */
function bitAt(level: Level, p: number, k: number): number {
  const words = wordsOf(level.extent)
  let left = k
  for (let c = 0; c < level.extent; c++)
    if (((level.mask![p * words + (c >>> 5)]! >>> (c & 31)) & 1) === 1 && left-- === 0) return c
  return level.extent
}
