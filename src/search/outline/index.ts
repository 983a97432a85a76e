/** Outline of a space: its decisions with their values and dependencies, and the number of points. */
import { expectArgument, expectOptions } from '../../ast/expect-argument.ts'
import { COUNT_LIMIT, type Random } from '../points.ts'
import type { PointSpace } from '../types.ts'
import { wholeOutline } from './enumeration.ts'
import { sampledOutline, seeded } from './sampling.ts'
import type { Outline, OutlinedDecision } from './types.ts'

export type { Outline, OutlinedDecision } from './types.ts'

export interface OutlineOptions {
  /** Decisions to look at, beyond which the space is sampled; `COUNT_LIMIT`, of spaces without `remainderKey` 2,000. */
  readonly limit?: number | undefined
  /** Of samples; the same each time. */
  readonly random?: Random | undefined
}

/** Limit for spaces without `remainderKey`, which can be enumerated only if they are small. */
const FEW = 2000

/**
 * Decisions of a space. Large spaces are sampled: rare decisions and values may be missing, and the number of points is an
 * estimate.
 * @throws SptError as `space.next`
 */
export function outline(space: PointSpace, options: OutlineOptions = {}): Outline {
  expectOptions('outline', options, ['limit', 'random'])
  const { limit = space.remainderKey ? COUNT_LIMIT : FEW, random } = options
  expectArgument(Number.isSafeInteger(limit) && limit > 0, 'limit', limit, 'a number of decisions: 10000')
  const found = wholeOutline(space, limit) ?? sampledOutline(space, random ?? seeded())
  return { ...found, decisions: found.decisions.map((d) => withoutImplied(d, found.decisions)) }
}

/** Removes dependencies that follow from other dependencies of the decision. */
function withoutImplied(d: OutlinedDecision, all: readonly OutlinedDecision[]): OutlinedDecision {
  const asks = new Map(all.map((o) => [o.name, o.dependsOn]))
  const isImplied = ({ name, values }: OutlinedDecision['dependsOn'][number]): boolean =>
    d.dependsOn.some((a) =>
      asks.get(a.name)?.some((b) => b.name === name && b.values.length <= values.length),
    )
  return { ...d, dependsOn: d.dependsOn.filter((a) => !isImplied(a)) }
}
