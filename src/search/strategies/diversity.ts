/** Diversifies points by kind: errors of a prior are correlated among similar points. */
import type { Point } from '../types.ts'

/** Times the least cost, beyond which the best of a kind is no rival. */
const RIVAL = 3

export interface Costed {
  readonly point: Point
  readonly cost: number
}

/** Kind of a point: its first decision between names (a format, a schedule, a sketch). */
const kindOf = (point: Point): string =>
  `${Object.values(point).find((value) => typeof value === 'string') ?? ''}`

/** Number of kinds with a point that costs little more than the cheapest. */
export function rivals(order: readonly Costed[]): number {
  const least = order[0]?.cost ?? 0
  return new Set(order.filter(({ cost }) => cost <= RIVAL * least).map(({ point }) => kindOf(point))).size
}

/**
 * The first points of an order by cost, the n-th of a kind as if it cost n times as much. Costs are times: where some are none,
 * the first as they are.
 */
export function varied(order: readonly Costed[], most: number): readonly Point[] {
  if (!((order[0]?.cost ?? 0) > 0)) return order.slice(0, most).map(({ point }) => point)
  const kinds = new Map<string, Costed[]>()
  for (const one of order) {
    const kind = kindOf(one.point)
    const of = kinds.get(kind)
    if (of) of.push(one)
    else kinds.set(kind, [one])
  }
  const open = [...kinds.values()].map((of) => ({ of, taken: 0 }))
  const out: Point[] = []
  while (out.length < most) {
    let best: { readonly kind: (typeof open)[number]; readonly cost: number } | undefined
    for (const kind of open) {
      const cost = (kind.of[kind.taken]?.cost ?? Number.NaN) * (kind.taken + 1)
      if (Number.isFinite(cost) && !(best && best.cost <= cost)) best = { kind, cost }
    }
    if (!best) break
    out.push(best.kind.of[best.kind.taken++]!.point)
  }
  return out
}
