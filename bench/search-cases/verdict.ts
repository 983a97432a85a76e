/** What is said of a case of which many points were measured: what was chosen, what the model picks, what few trials find. */
import { Random } from '../../src/run/bind/sources/random-tensors.ts'
import { type Point, pointKey, search } from '../../src/search.ts'
import { geometricMean } from '../gpu/statistics.ts'
import { correlationOf, pickOf } from '../model/verdict.ts'
import { pointOf, Table } from '../strategies/table.ts'
import { nameOf, type Tried } from './case.ts'

export interface Verdict {
  readonly case: string
  /** Kernels that were measured. */
  readonly points: number
  readonly failed: number
  /** Microseconds of the fastest, and what it is. */
  readonly best: number
  readonly name: string
  /** The fastest's time over theirs. `null`: there is none. */
  readonly chosen: number | null
  readonly picked: number | null
  readonly library: number | null
  readonly byHand: number | null
  /** Spearman's, of expected and measured times. */
  readonly correlation: number | null
  /** Of each seed: quality of the fastest found in so many trials, by the model's order and by chance. */
  readonly model: readonly number[]
  readonly random: readonly number[]
}

const TRIALS = 16
const NOISE = 0.02

/** Times of finals replace those of before. */
function timesOf(lines: readonly Tried[]): ReadonlyMap<string, Tried> {
  const out = new Map<string, Tried>()
  for (const t of lines) {
    if (t.status !== 'ok') continue
    const before = out.get(t.candidate)
    if (t.isFinal || !before || (!before.isFinal && before.median! > t.median!))
      out.set(t.candidate, { ...before, ...t })
  }
  return out
}

const fastest = (of: readonly Tried[]): Tried | undefined =>
  of.reduce<Tried | undefined>((b, t) => (b && b.median! <= t.median! ? b : t), undefined)

export async function verdictOf(lines: readonly Tried[], seeds: number): Promise<Verdict> {
  const times = timesOf(lines)
  const all = [...times.values()]
  const own = all.filter((t) => t.of !== 'library')
  const best = fastest(all)!
  const quality = (t: Tried | undefined): number | null => (t ? best.median! / t.median! : null)
  const guesses = own.flatMap(({ candidate, median, predicted }) =>
    predicted === undefined ? [] : [{ candidate, time: median!, expected: predicted }],
  )
  const chosen = lines.find((t) => t.of === 'chosen')
  const unasked = quality(chosen && times.get(chosen.candidate))
  const listed = new Set(lines.filter((t) => t.of === 'listed').map((t) => t.candidate))
  const [model, random] = await Promise.all(
    (['model', 'random'] as const).map((strategy) => replays(own, strategy, best.median!, seeds)),
  )
  return {
    case: nameOf(best),
    points: all.length,
    failed: lines.filter((t) => t.status !== 'ok').length,
    best: best.median!,
    name: best.candidate,
    chosen: unasked,
    picked: guesses.length > 0 ? best.median! / pickOf(guesses).time : null,
    library: quality(fastest(all.filter((t) => t.of === 'library'))),
    byHand: quality(fastest(own.filter((t) => listed.has(t.candidate)))),
    correlation: guesses.length > 2 ? correlationOf(guesses) : null,
    // What runs unasked is compared at the end of every search.
    model: guesses.length > 0 ? model!.map((q) => Math.max(q, unasked ?? 0)) : [],
    random: random!,
  }
}

/** Searches on what was measured, as if nothing else were in the space; `model` with a trial less, that of what runs unasked. */
async function replays(
  own: readonly Tried[],
  strategy: 'model' | 'random',
  best: number,
  seeds: number,
): Promise<number[]> {
  const rows = new Map<string, { readonly point: Point; readonly ms: number }>()
  const expected = new Map<string, number>()
  for (const t of own) {
    const point = pointOf(t.candidate) ?? { schedule: t.candidate }
    rows.set(pointKey(point), { point, ms: t.median! / 1000 })
    if (t.predicted !== undefined) expected.set(pointKey(point), t.predicted)
  }
  if (strategy === 'model' && expected.size === 0) return []
  const worst = Math.max(...expected.values(), 1)
  const on = new Table('measured', [...rows.values()])
  const out: number[] = []
  for (let seed = 1; seed <= seeds; seed++) {
    const noise = new Random(seed * 7919 + 1)
    const { best: found } = await search({
      space: on.space,
      strategy,
      trials: strategy === 'model' ? TRIALS - 1 : TRIALS,
      seed,
      prior:
        strategy === 'model' ? (points) => points.map((p) => expected.get(pointKey(p)) ?? worst) : undefined,
      evaluate: async (asked) =>
        asked.map(({ point }) => on.outcome(point, Math.exp(NOISE * noise.normal()))),
    })
    out.push(found ? best / 1000 / on.ms(found.point)! : 0)
  }
  return out
}

/** Of shares; a search that found nothing counts as a thousandth. */
const meanShare = (of: readonly number[]): number => geometricMean(of.map((x) => Math.max(x, 1e-3)))

const HEAD = [
  'case',
  'points',
  'best us',
  'chosen',
  "model's pick",
  'by hand',
  'library',
  'Spearman',
  `model ${TRIALS}`,
  'worst seed',
  `random ${TRIALS}`,
  'the fastest',
]
const WIDTHS = [34, 6, 8, 6, 12, 7, 7, 8, 8, 10, 9, 0]
const line = (cells: readonly string[]): string =>
  cells.map((c, k) => (k === 0 ? c.padEnd(WIDTHS[0]!) : c.padStart(WIDTHS[k]!))).join('  ')

export const headLine = (): string => line(HEAD)
export function verdictLine(v: Verdict): string {
  const share = (x: number | null): string => (x === null ? '-' : x.toFixed(2))
  const all = (x: readonly number[], of: (x: readonly number[]) => number): string =>
    x.length === 0 ? '-' : of(x).toFixed(2)
  return line([
    v.case,
    `${v.points}`,
    v.best.toPrecision(4),
    share(v.chosen),
    share(v.picked),
    share(v.byHand),
    share(v.library),
    share(v.correlation),
    all(v.model, meanShare),
    all(v.model, (x) => Math.min(...x)),
    all(v.random, meanShare),
    v.name,
  ])
}

/** Geometric means, and what is the worst. */
export function summaryLines(of: readonly Verdict[]): string[] {
  const mean = (what: string, pick: (v: Verdict) => number | null): string => {
    const values = of.flatMap((v) => pick(v) ?? [])
    return values.length === 0
      ? `${what}: none`
      : `${what}: ${meanShare(values).toFixed(3)}, at worst ${Math.min(...values).toFixed(3)} (${values.length} cases)`
  }
  const over = (x: readonly number[]): number | null => (x.length === 0 ? null : meanShare(x))
  const correlations = of.flatMap((v) => v.correlation ?? [])
  return [
    mean('chosen / best', (v) => v.chosen),
    mean("the model's pick of the pool / best", (v) => v.picked),
    mean('by hand / best', (v) => v.byHand),
    mean('library / best', (v) => v.library),
    mean(`${TRIALS} trials with the model / best`, (v) => over(v.model)),
    mean(`${TRIALS} random trials / best`, (v) => over(v.random)),
    `Spearman within a case: mean ${(correlations.reduce((a, b) => a + b, 0) / Math.max(1, correlations.length)).toFixed(3)}, least ${Math.min(...correlations).toFixed(3)}`,
  ]
}
