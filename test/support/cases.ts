/**
 * Seed and number of cases of property tests. `vitest.config.ts` draws a new seed for every run and prints it; `SPT_SEED`
 * replays one. `SPT_RUNS` multiplies the number of cases of every property and the size of every sample of an
 * enumeration: 1/3 in `npm test`, 20 in `npm run test:long`. Above 1 all elements of enumerations are tested.
 */
import { Random } from '../../src/run/bind/sources/random-tensors.ts'

export const SEED = Number(process.env.SPT_SEED ?? 1)
const TIMES = Number(process.env.SPT_RUNS ?? 1)

/** Whether this is a long run: properties have more cases, enumerations are complete. */
export const LONG = TIMES > 1

/** Number of cases of a property, at least 1; `usual` where `SPT_RUNS` is 1. */
export const runs = (usual: number): number => Math.max(1, Math.ceil(usual * TIMES))

/** The same of a property whose case takes more than 50 ms: half as many in short runs. */
export const costly = (usual: number): number => (TIMES < 1 ? runs(usual / 2) : runs(usual))

/** Of `of` costly tests, whether a short run has the `k`-th: another one for each seed. Long runs have all. */
export const isTurnOf = (k: number, of: number): boolean => LONG || SEED % of === k % of

/** A random sample of `runs(usual)` elements, in their order; all of them in long runs. */
export function sample<T>(all: readonly T[], usual: number): readonly T[] {
  const count = runs(usual)
  if (LONG || all.length <= count) return all
  const random = new Random(SEED)
  const order = all.map((_, k) => [random.next(), k] as const).sort(([a], [b]) => a - b)
  return order
    .slice(0, count)
    .map(([, k]) => k)
    .sort((a, b) => a - b)
    .map((k) => all[k]!)
}

/**
 * A lower bound for a count over all cases of a property: `usual` if `SPT_RUNS` is 1. For fewer cases half of its share,
 * since small counts vary more from seed to seed.
 */
export const scaled = (usual: number): number => (TIMES >= 1 ? usual : Math.floor((usual * TIMES) / 2))
