/** What a space decides, as a list: each decision with its values and what it is asked after, and how many points there are. */
import { expectArgument, expectOptions } from '../../ast/expect-argument.ts'
import { COUNTED_VALUES, type Random } from '../points.ts'
import type { PointSpace } from '../types.ts'
import { sampledOutline, seeded } from './sampled.ts'
import type { Outline, OutlinedDecision } from './types.ts'
import { wholeOutline } from './whole.ts'

export type { Outline, OutlinedDecision } from './types.ts'

export interface OutlineOptions {
  /** Decisions to look at, beyond which the space is sampled; `COUNTED_VALUES`, of spaces without `rest` 2,000. */
  readonly limit?: number | undefined
  /** Of samples; the same each time. */
  readonly random?: Random | undefined
}

/** Where nothing says what goes on alike, only what is small can be gone through. */
const FEW = 2000

/**
 * What a space decides. One that is too large is sampled: decisions and values that are rare may be missing, and points are
 * estimated.
 * @throws SptError as `space.next`
 */
export function outline(space: PointSpace, options: OutlineOptions = {}): Outline {
  expectOptions('outline', options, ['limit', 'random'])
  const { limit = space.rest ? COUNTED_VALUES : FEW, random } = options
  expectArgument(Number.isSafeInteger(limit) && limit > 0, 'limit', limit, 'a number of decisions: 10000')
  const found = wholeOutline(space, limit) ?? sampledOutline(space, random ?? seeded())
  return { ...found, decisions: found.decisions.map((d) => withoutImplied(d, found.decisions)) }
}

/** What follows from another decision that it is asked after goes without saying. */
function withoutImplied(d: OutlinedDecision, all: readonly OutlinedDecision[]): OutlinedDecision {
  const asks = new Map(all.map((o) => [o.name, o.after]))
  const isImplied = ({ name, values }: OutlinedDecision['after'][number]): boolean =>
    d.after.some((a) => asks.get(a.name)?.some((b) => b.name === name && b.values.length <= values.length))
  return { ...d, after: d.after.filter((a) => !isImplied(a)) }
}
