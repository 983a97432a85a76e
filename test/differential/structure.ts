/** What chains of axes hold: positions, and the coordinates of buffers over them. */
import type { Chain, Program } from './model.ts'

/** Coordinates as a dictionary has them. */
export const key = (at: readonly number[]): string => at.join(',')

/** A position of a chain: its coordinate on a level, and the positions below. */
export interface Position {
  readonly at: number
  readonly below: readonly Position[]
}

/**
 * The positions of a level, in order: of a `nonunique` axis one for as many positions of its
 * child axis as that is wide, one for each path below where that has no width. */
export function positions(chain: Chain, depth = 0, stored = chain.stored): Position[] {
  const level = chain.levels[depth]
  if (!level) return []
  const found = [...new Set(stored.map((s) => s[depth]!))].sort((a, b) => a - b)
  const dense = (n: number): number[] => Array.from({ length: n }, (_, c) => c)
  const at =
    level.kind === 'dense_fixed'
      ? dense(level.extent.value)
      : level.kind === 'dense_variable'
        ? dense(found.length === 0 ? 0 : found.at(-1)! + 1)
        : level.kind === 'run' && found.length > 0
          ? dense(found.at(-1)! + 1).slice(found[0])
          : found
  return at.flatMap((c) => {
    const under = stored.filter((s) => s[depth] === c)
    if (!level.nonunique) return [{ at: c, below: positions(chain, depth + 1, under) }]
    const width = chain.levels[depth + 1]?.width
    if (width === undefined) return under.map((s) => ({ at: c, below: positions(chain, depth + 1, [s]) }))
    const children = positions(chain, depth + 1, under)
    return Array.from({ length: Math.ceil(children.length / width) }, (_, k) => ({
      at: c,
      below: children.slice(k * width, (k + 1) * width),
    }))
  })
}

/** The paths of positions down to a depth. */
export function paths(from: readonly Position[], depth: number): Position[][] {
  if (depth === 0) return [[]]
  return from.flatMap((p) => paths(p.below, depth - 1).map((rest) => [p, ...rest]))
}

/** The coordinates that a chain stores down to a depth, each once, in order. */
function coordinates(chain: Chain, depth: number): number[][] {
  const all = paths(positions(chain), depth).map((path) => path.map((p) => p.at))
  const seen = new Map(all.map((c) => [key(c), c]))
  const before = (a: readonly number[], b: readonly number[]): number => {
    const k = a.findIndex((x, d) => x !== b[d])
    return k < 0 ? 0 : a[k]! - b[k]!
  }
  return [...seen.values()].sort(before)
}

/** Runs of chains' axes, side by side, that a buffer over these axes is over. */
function* runs(p: Program, axes: readonly string[]): Generator<readonly [chain: Chain, depth: number]> {
  for (let k = 0; k < axes.length; ) {
    const chain = chainOf(p, axes[k]!)
    let depth = 1
    while (depth < chain.levels.length && chain.levels[depth]!.axis === axes[k + depth]) depth++
    yield [chain, depth]
    k += depth
  }
}

/** The coordinates that a buffer over these axes has. */
export function elements(p: Program, axes: readonly string[]): number[][] {
  let found: number[][] = [[]]
  for (const [chain, depth] of runs(p, axes)) {
    const own = coordinates(chain, depth)
    found = found.flatMap((f) => own.map((o) => [...f, ...o]))
  }
  return found
}

/** Whether coordinates tell the elements of such a buffer apart: under a nonunique axis, they may not. */
export const toldApart = (p: Program, axes: readonly string[]): boolean =>
  [...runs(p, axes)].every(
    ([chain, depth]) => paths(positions(chain), depth).length === coordinates(chain, depth).length,
  )

export const chainOf = (p: Program, axis: string): Chain =>
  p.chains.find((c) => c.levels.some((l) => l.axis === axis))!
