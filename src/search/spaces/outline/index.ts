/** Outline of a space: its decisions with their values and dependencies, and the number of points. */
import { expectArgument, expectOptions } from '../../../ast/diagnostics/expect-argument.ts'
import type { PointSpace } from '../../types.ts'
import { COUNT_LIMIT, type Random } from '../points.ts'
import { type Outline, type OutlinedDecision, wholeOutline } from './enumeration.ts'
import { sampledOutline, seeded } from './sampling.ts'

export type { Outline, OutlinedDecision } from './enumeration.ts'

export interface OutlineOptions {
  /**
   * Number of decisions up to which the space is enumerated, otherwise sampled; default `COUNTED_VALUES`, or 2,000 for
   * spaces without `rest`.
   */
  readonly limit?: number | undefined
  /** Generator for samples; default: a fixed seed. */
  readonly random?: Random | undefined
}

/** Limit for spaces without `remainderKey`, which can be enumerated only if they are small. */
const SMALL_LIMIT = 2000

/**
 * Decisions of a space. Large spaces are sampled: rare decisions and values may be missing, and the number of points is an
 * estimate.
 * @throws SptError as `space.next`
 */
export function outline(space: PointSpace, options: OutlineOptions = {}): Outline {
  expectOptions('outline', options, ['limit', 'random'])
  const { limit = space.remainderKey ? COUNT_LIMIT : SMALL_LIMIT, random } = options
  expectArgument(Number.isSafeInteger(limit) && limit > 0, 'limit', limit, 'a number of decisions: 10000')
  const result = wholeOutline(space, limit) ?? sampledOutline(space, random ?? seeded())
  return { ...result, decisions: result.decisions.map((d) => withoutImplied(d, result.decisions)) }
}

/** Removes dependencies that follow from other dependencies of the decision. */
function withoutImplied(d: OutlinedDecision, all: readonly OutlinedDecision[]): OutlinedDecision {
  const dependencies = new Map(all.map((o) => [o.name, o.dependsOn]))
  const isImplied = ({ name, values }: OutlinedDecision['dependsOn'][number]): boolean =>
    d.dependsOn.some((a) =>
      dependencies.get(a.name)?.some((b) => b.name === name && b.values.length <= values.length),
    )
  return { ...d, dependsOn: d.dependsOn.filter((a) => !isImplied(a)) }
}
