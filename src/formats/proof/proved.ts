/** Properties proved of a format for every tensor, which need not be checked on data. */
import type { StoredAxis } from '../../ir/coordinates/axis.ts'
import type { FormatInstance } from '../../ir/formats/format.ts'
import { sourceOf } from '../../ir/formats/queries.ts'
import { factsOf } from './format-facts.ts'
import { proveInjective, proveInverse, proveRange } from './prove.ts'

export interface Proved {
  /** The inverse undoes the map, in exact integers, for coordinates within their extents. */
  readonly inverse: boolean
  /** The map stays within the extents of the axes. */
  readonly range: boolean
}

const UNPROVED: Proved = { inverse: false, range: false }
const cache = new WeakMap<FormatInstance, Proved>()

/**
 * The proved properties of an instance over these axes, cached. Lists are given with the data, so nothing is assumed
 * about them.
 */
export function provedOf(instance: FormatInstance, over: readonly StoredAxis[]): Proved {
  const cached = cache.get(instance)
  if (cached) return cached
  const lists =
    instance.tables.some((t) => t.kind === 'list') ||
    instance.queries.some((q) => sourceOf(q, 'list') !== undefined)
  const facts = lists ? null : factsOf(over, instance.queries, instance)
  const proved = facts
    ? { inverse: proveInverse(instance, over, facts), range: proveRange(instance, facts) }
    : UNPROVED
  cache.set(instance, proved)
  return proved
}

const injectiveCache = new WeakMap<FormatInstance, boolean>()

/**
 * True if different coordinates on the axes of an instance over `dims` provably map to different ones of the tensor.
 */
export function isInjective(instance: FormatInstance, dims: readonly string[]): boolean {
  const cached = injectiveCache.get(instance)
  if (cached !== undefined) return cached
  const proved = proveInjective(instance, dims)
  injectiveCache.set(instance, proved)
  return proved
}
