/** Positions of nonunique levels: new positions within runs of equal coordinates. */
import { hasIndices, hasWidth, type StoredAxis } from '../ir/axis.ts'
import { type Expr, variable } from '../ir/expr.ts'
import { type Column, ENTRY, type Frame } from './column-engine.ts'
import type { Starts } from './engine-operands.ts'
import type { Dimension } from './levels.ts'

export const isRepeating = (axis: StoredAxis): boolean => hasIndices(axis) && !axis.unique

/** Each entry is the first of a run. */
const EACH: Starts = { keys: [variable(ENTRY)], cut: null }

/**
 * Additional starts of positions for each remaining axis of a tree, under `above`, whose entries are in order; `null`:
 * none. Above a `sparse_fixed` child a position covers as many child positions as the child is wide (any number if the
 * width is measured); otherwise it covers one tuple of all coordinates. Equal tuples get separate positions if they are
 * kept `apart`.
 */
export function nonuniqueStarts<C extends Column>(
  frame: Frame<C>,
  rest: readonly Dimension[],
  above: Expr | null,
  apart: boolean,
): readonly (Starts | null)[] {
  const out: (Starts | null)[] = rest.map(() => null)
  const down = (depth: number): Expr[] => [
    ...(above ? [above] : []),
    ...rest.slice(0, depth).map((d) => d.coordinate),
  ]
  const all = down(rest.length)
  // If another axis starts positions within a run too, widths are counted from there.
  const alone = rest.filter((d) => isRepeating(d.axis)).length === 1
  // A child starts new positions within a run of its parent, so the deepest axis is processed first.
  for (let d = rest.length - 1; d >= 0; d--) {
    if (!isRepeating(rest[d]!.axis)) continue
    const child = rest[d + 1]
    if (!hasWidth(child?.axis)) {
      out[d] = apart ? EACH : { keys: all, cut: null }
      continue
    }
    const keys = down(d + 1)
    const again = apart && !isRepeating(child.axis) ? all : null
    if (child.width === null && !again) {
      out[d] = { keys, cut: null }
      continue
    }
    const inner = out[d + 1]
    if (child.width === 1 && alone && (!again || d + 2 === rest.length)) {
      // A position has one child position, which starts with it and has rank 0.
      out[d] = again ? EACH : { keys: [...keys, child.coordinate], cut: null }
      const rank = `@rank ${child.axis.name}`
      frame.deferred.set(rank, () => frame.engine.filled(frame.n, 0, rank))
      continue
    }
    const cut = `@cut ${child.axis.name}`
    frame.engine.cuts(frame, cut, alone && !again ? `@rank ${child.axis.name}` : null, {
      within: keys,
      starts: { keys: [...keys, child.coordinate, ...(inner?.keys ?? [])], cut: inner?.cut ?? null },
      width: child.width ?? 0,
      again,
    })
    out[d] = { keys, cut: variable(cut) }
  }
  return out
}
