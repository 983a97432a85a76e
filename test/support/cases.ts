/**
 * Which cases tests take, and how many. Every run draws a seed of its own; `SPT_SEED` replays one by its number.
 * `SPT_RUNS` multiplies the number of cases of every law; above 1, samples of enumerations are the whole of them.
 */
import { Random } from '../../src/run/bind/random-tensors.ts'

/** Drawn and printed by vitest.config.ts. */
export const SEED = Number(process.env.SPT_SEED ?? 1)
const TIMES = Number(process.env.SPT_RUNS ?? 1)

/** Whether this is a long run: laws take more cases, enumerations are complete. */
export const LONG = TIMES > 1

/** Cases of a law that usually takes so many. */
export const runs = (usual: number): number => Math.max(1, Math.ceil(usual * TIMES))

/** `usual` of `all`, in their order: others in every run. All of them in long runs. */
export function sample<T>(all: readonly T[], usual: number): readonly T[] {
  if (LONG || all.length <= usual) return all
  const random = new Random(SEED)
  const order = all.map((_, k) => [random.next(), k] as const).sort(([a], [b]) => a - b)
  return order
    .slice(0, usual)
    .map(([, k]) => k)
    .sort((a, b) => a - b)
    .map((k) => all[k]!)
}
