/** Diversifies points by kind: errors of a prior are correlated among similar points. */
import type { Point } from '../types.ts'

/** Ratio to the least cost up to which the best point of a kind is a rival. */
const RIVAL_FACTOR = 3

export interface Costed {
  readonly point: Point
  readonly cost: number
}

/** Kind of a point: its first decision between names (a format, a schedule, a sketch). */
const kindOf = (point: Point): string =>
  `${Object.values(point).find((value) => typeof value === 'string') ?? ''}`

/** Number of kinds with a point that costs little more than the cheapest. */
export function rivals(order: readonly Costed[]): number {
  const minCost = order[0]?.cost ?? 0
  return new Set(order.filter(({ cost }) => cost <= RIVAL_FACTOR * minCost).map(({ point }) => kindOf(point)))
    .size
}

/**
 * The first points of an order by cost, with the n-th point of a kind counted at n times its cost. Costs are times; if
 * the first is not positive, the order is unchanged.
 */
export function varied(order: readonly Costed[], count: number): readonly Point[] {
  if (!((order[0]?.cost ?? 0) > 0)) return order.slice(0, count).map(({ point }) => point)
  const kinds = new Map<string, Costed[]>()
  for (const candidate of order) {
    const kind = kindOf(candidate.point)
    const of = kinds.get(kind)
    if (of) of.push(candidate)
    else kinds.set(kind, [candidate])
  }
  const open = [...kinds.values()].map((of) => ({ of, used: 0 }))
  const selected: Point[] = []
  while (selected.length < count) {
    let best: { readonly kind: (typeof open)[number]; readonly cost: number } | undefined
    for (const kind of open) {
      const cost = (kind.of[kind.used]?.cost ?? Number.NaN) * (kind.used + 1)
      if (Number.isFinite(cost) && !(best && best.cost <= cost)) best = { kind, cost }
    }
    if (!best) break
    selected.push(best.kind.of[best.kind.used++]!.point)
  }
  return selected
}
