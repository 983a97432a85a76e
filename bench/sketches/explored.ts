/** Points of a space of sketches, tried until the time is over. */
import type { Kernel } from '../../src/node.ts'
import { Random } from '../../src/run/bind/random-tensors.ts'
import { draw, neighbours, pointKey } from '../../src/search/points.ts'
import type { SketchSpace } from '../../src/search/sketches.ts'
import type { Point } from '../../src/search/types.ts'
import { costPrior, type Prediction } from '../../src/search.ts'
import type { Timed, Trials } from './trials.ts'

export interface Explored {
  readonly tried: number
  readonly found: readonly Timed[]
}

/** Points that are drawn, those first of which the model expects most. */
const DRAWN = 120
/** The share of the time, or of the points, after which only neighbours of the best are tried. */
const LATE = 0.5

/**
 * First the guess, its other forms and what is near them; then points at random, every other one as the likeliest of many
 * where there is a model; in the second half neighbours of the best.
 */
export async function explored(
  space: SketchSpace,
  trials: Trials,
  limits: { readonly until: number; readonly points: number; readonly seed: number },
  model: ((k: Kernel) => Prediction) | undefined,
): Promise<Explored> {
  const { until, points: most } = limits
  const random = new Random(limits.seed)
  const seen = new Set<string>()
  const found: { readonly candidate: Timed; readonly point: Point }[] = []
  const start = performance.now()
  const isLate = (): boolean => performance.now() - start > (until - start) * LATE || seen.size > most * LATE
  const attempt = async (name: string, point: Point): Promise<void> => {
    if (seen.has(pointKey(point))) return
    seen.add(pointKey(point))
    const candidate = await trials.time(name, () => space.kernel(point))
    if (candidate) found.push({ candidate, point })
    if (name === 'guess') console.log(`${space.name}: guess ${candidate?.ms.toFixed(4)} ms`)
  }
  await attempt('guess', space.guess)
  const forms = space.forms()
  for (const [k, point] of forms.entries()) await attempt(`form ${k}`, point)
  const near = forms.map((f) => [...space.near(f)])
  for (let k = 0; !isLate() && near.some((list) => list.length > 0); k++) {
    const point = near[k % near.length]!.shift()
    if (point) await attempt(`near ${k % near.length}`, point)
  }
  const likely = model ? likeliest(space, model, () => random.next()) : []
  for (let idle = 0; seen.size < most && performance.now() < until && idle < 100; ) {
    const before = seen.size
    const best = [...found].sort((a, b) => a.candidate.ms - b.candidate.ms).slice(0, 4)
    const close = isLate() ? best.flatMap(({ point }) => neighbours(space, point)) : []
    const fresh = close.find((p) => !seen.has(pointKey(p)))
    const next = seen.size % 2 === 0 ? likely.shift() : undefined
    const point = fresh ?? next ?? draw(space, () => random.next())
    if (!point) break
    await attempt(pointKey(point), point)
    idle = seen.size > before ? 0 : idle + 1
  }
  return { tried: seen.size, found: found.map((f) => f.candidate) }
}

function likeliest(space: SketchSpace, model: (k: Kernel) => Prediction, random: () => number): Point[] {
  const drawn = Array.from({ length: DRAWN }, () => draw(space, random)).filter((p) => p !== null)
  const all = [...new Map(drawn.map((p) => [pointKey(p), p])).values()]
  const expected = costPrior(space, model)(all)
  return all
    .map((point, k) => ({ point, ms: expected[k]! }))
    .filter(({ ms }) => Number.isFinite(ms))
    .sort((a, b) => a.ms - b.ms)
    .map(({ point }) => point)
}
