/** Points of a space of sketches, tried until the time is over. */
import { pointKey } from '../../src/search/spaces/points.ts'
import type { SketchSpace } from '../../src/search/spaces/sketches.ts'
import { strategyNamed } from '../../src/search/strategies/index.ts'
import type { Point, Trial } from '../../src/search/types.ts'
import { costPrior, type predictor } from '../../src/search.ts'
import type { Timed, Trials } from './trials.ts'

export interface Explored {
  readonly tried: number
  readonly found: readonly Timed[]
}

interface Limits {
  /** As `performance.now()`. */
  readonly until: number
  readonly points: number
  readonly seed: number
  /** That rank points (`PriorOptions`). */
  readonly threads: number | undefined
}

/** Points that are asked for at a time, as `tune` does. */
const BATCH = 8

/** First the guess and its other forms, then what the strategy asks for: by the cost model, where there is one. */
export async function explored(
  space: SketchSpace,
  trials: Trials,
  limits: Limits,
  model: ReturnType<typeof predictor> | undefined,
): Promise<Explored> {
  const { until, points: most, seed, threads } = limits
  const seen = new Set<string>()
  const found: Timed[] = []
  const attempt = async (name: string, point: Point): Promise<Trial> => {
    seen.add(pointKey(point))
    const timed = await trials.time(name, () => space.kernel(point))
    if (name === 'guess') console.log(`${space.name}: guess ${timed?.ms.toFixed(4)} ms`)
    if (!timed) return { point, outcome: { status: 'rejected', code: 'bench/refused', message: '' } }
    found.push(timed)
    const timing = { median: timed.ms, interval: null, samples: [timed.ms] }
    return { point, outcome: { status: 'measured', timing } }
  }
  const known = [await attempt('guess', space.defaultPoint)]
  for (const [k, point] of space.shortlist().entries())
    if (!seen.has(pointKey(point))) known.push(await attempt(`form ${k}`, point))
  const seconds = (until - performance.now()) / 1000
  const prior = model && costPrior(space, model, { threads })
  const strategy = strategyNamed(prior ? 'model' : 'surrogate')(space, { seed, prior, seconds })
  // What is told before is not asked again, and counts as points that were tried at first.
  strategy.tell(known)
  while (seen.size < most && performance.now() < until) {
    const asked = strategy.ask(Math.min(BATCH, most - seen.size))
    if (asked.length === 0) break
    const told: Trial[] = []
    for (const point of asked) told.push(await attempt(pointKey(point), point))
    strategy.tell(told)
  }
  return { tried: seen.size, found }
}
