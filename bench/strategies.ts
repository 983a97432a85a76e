/**
 * Strategies against random search with as many trials, on tables of which every point is known: how far the best that they
 * found is from the fastest, trial by trial, over many seeds.
 *
 *   node dist/bench/strategies.js [--tables PATH,…] [--seeds 20] [--trials 64] [--least 50] [--json PATH]
 *
 * Tables: synthetic landscapes, what was recorded on cpu (`strategies/spmm-cpu.jsonl`), and files of `--tables`, lines of
 * `strategies/record.ts` or of `collect`, of which cases of at least `--least` points count. Measurements are noisy by
 * 2 %, more for short ones (`halving`), whose cost is their share. The prior is drawn: as good as a rank correlation of
 * about 0.8 with the times. What a strategy does not find of random's is said at the end: where the difference of the mean log
 * quality, 95 % of it over seeds and tables, is not above 0, it does not beat random.
 */
import { Random } from '../src/run/bind/sources/random-tensors.ts'
import { type Point, pointKey, search } from '../src/search.ts'
import { LANDSCAPES } from './strategies/landscapes.ts'
import { readTables, type Table } from './strategies/table.ts'
import { count, option, packageFile, table, writeJson } from './support.ts'

const NOISE = 0.02
/** Noise of the prior's logarithms, over the deviation of those of the times. */
const PRIOR_NOISE = 0.75

const CONTESTANTS: readonly {
  readonly name: string
  readonly strategy: string
  readonly withPrior: boolean
}[] = [
  { name: 'random', strategy: 'random', withPrior: false },
  { name: 'exhaustive', strategy: 'exhaustive', withPrior: false },
  { name: 'evolutionary', strategy: 'evolutionary', withPrior: false },
  { name: 'surrogate', strategy: 'surrogate', withPrior: false },
  { name: 'halving', strategy: 'halving', withPrior: false },
  { name: 'exhaustive + prior', strategy: 'exhaustive', withPrior: true },
  { name: 'evolutionary + prior', strategy: 'evolutionary', withPrior: true },
  { name: 'surrogate + prior', strategy: 'surrogate', withPrior: true },
  { name: 'halving + prior', strategy: 'halving', withPrior: true },
  { name: 'model', strategy: 'model', withPrior: true },
]

/** Expected times that are right in a part of what tells points apart. */
function priorOf({ rows }: Table, seed: number): (points: readonly Point[]) => readonly number[] {
  const random = new Random(seed)
  const logs = rows.flatMap((r) => (r.ms === undefined ? [] : [Math.log(r.ms)]))
  const mean = logs.reduce((a, b) => a + b, 0) / logs.length
  const deviation = Math.sqrt(logs.reduce((a, l) => a + (l - mean) ** 2, 0) / logs.length)
  const noisy = new Map(
    rows.map(({ point, ms }) => {
      const log = ms === undefined ? mean : Math.log(ms)
      return [pointKey(point), Math.exp(log + PRIOR_NOISE * deviation * random.normal())]
    }),
  )
  return (points) => points.map((p) => noisy.get(pointKey(p))!)
}

/** The quality (time of the fastest point over that of the best so far; 0: none) after each whole trial. */
async function curve(
  on: Table,
  strategy: string,
  withPrior: boolean,
  trials: number,
  seed: number,
): Promise<number[]> {
  const random = new Random(seed * 7919 + 1)
  const out: number[] = []
  let spent = 0
  await search({
    space: on.space,
    strategy,
    trials,
    seed,
    prior: withPrior ? priorOf(on, seed) : undefined,
    evaluate: async (asked) =>
      asked.map(({ point, share }) =>
        on.outcome(point, Math.exp((NOISE / Math.sqrt(share)) * random.normal())),
      ),
    onProgress({ best, latestTrials }) {
      if (latestTrials.length === 0) return
      spent += latestTrials.reduce((n, t) => n + (t.share ?? 1), 0)
      const quality = best ? on.best / on.ms(best.point)! : 0
      while (out.length < Math.floor(spent + 1e-9)) out.push(quality)
      out[out.length - 1] = quality
    },
  })
  while (out.length < trials) out.push(out.at(-1) ?? 0)
  return out.slice(0, trials)
}

/** Of sorted values. */
const quantile = (sorted: readonly number[], q: number): number => {
  const at = q * (sorted.length - 1)
  const low = sorted[Math.floor(at)]!
  return low + (sorted[Math.ceil(at)]! - low) * (at - Math.floor(at))
}

const percent = (x: number): string => (100 * x).toFixed(0)

/** Nothing found counts as a tenth of the best. */
const logOf = (quality: number): number => Math.log(Math.max(quality, 0.1))

const seeds = count('seeds', 20)
const trials = count('trials', 64)
const least = count('least', 50)
const POINTS = [4, 8, 16, 32, 64, 128, 256].filter((n) => n <= trials)
const files = [packageFile('bench/strategies/spmm-cpu.jsonl'), ...(option('tables')?.split(',') ?? [])]
const tables = [...LANDSCAPES(), ...files.flatMap((f) => readTables(f, least))]
/** Mean log quality over the numbers of trials, minus random's, by strategy: for each table, of each seed. */
const gains = new Map<string, number[][]>()
const figures: object[] = []

for (const on of tables) {
  const rows: string[][] = []
  let random: number[][] = []
  for (const { name, strategy, withPrior } of CONTESTANTS) {
    const curves: number[][] = []
    for (let seed = 1; seed <= seeds; seed++) curves.push(await curve(on, strategy, withPrior, trials, seed))
    if (name === 'random') random = curves
    const at = POINTS.map((n) => curves.map((c) => c[n - 1]!).sort((a, b) => a - b))
    rows.push([
      name,
      ...at.map(
        (q) => `${percent(quantile(q, 0.5))} (${percent(quantile(q, 0.1))}–${percent(quantile(q, 0.9))})`,
      ),
    ])
    const gain = curves.map((c, k) =>
      POINTS.reduce((sum, n) => sum + (logOf(c[n - 1]!) - logOf(random[k]![n - 1]!)) / POINTS.length, 0),
    )
    gains.set(name, [...(gains.get(name) ?? []), gain])
    figures.push({ table: on.name, strategy: name, trials: POINTS, quality: at })
  }
  console.log(
    `\n${on.name}: ${on.rows.length} points, quality in % of the fastest, median (10–90 %) of ${seeds} seeds`,
  )
  console.log(table(['after trials', ...POINTS.map(String)], rows))
}

/** Half the width of 95 % of means over tables: seeds of a table are its own sample. */
function interval(of: readonly (readonly number[])[]): { readonly mean: number; readonly half: number } {
  const means = of.map((g) => g.reduce((a, b) => a + b, 0) / g.length)
  const mean = means.reduce((a, b) => a + b, 0) / means.length
  const variance = of.reduce((sum, g, k) => {
    const own = g.reduce((a, x) => a + (x - means[k]!) ** 2, 0) / Math.max(1, g.length - 1)
    return sum + own / g.length
  }, 0)
  return { mean, half: (1.96 * Math.sqrt(variance)) / of.length }
}

console.log('\nAgainst random over all tables: quality over its quality, mean over the numbers of trials')
const verdicts = CONTESTANTS.filter((c) => c.name !== 'random').map(({ name }) => {
  const { mean, half } = interval(gains.get(name)!)
  const worst = Math.min(...gains.get(name)!.map((g) => g.reduce((a, b) => a + b, 0) / g.length))
  return {
    name,
    ratio: Math.exp(mean),
    low: Math.exp(mean - half),
    high: Math.exp(mean + half),
    worst: Math.exp(worst),
  }
})
console.log(
  table(
    ['strategy', 'ratio', '95 %', 'worst table', ''],
    verdicts.map((v) => [
      v.name,
      v.ratio.toFixed(3),
      `${v.low.toFixed(3)}–${v.high.toFixed(3)}`,
      v.worst.toFixed(3),
      v.low > 1 ? 'beats random' : 'does NOT beat random',
    ]),
  ),
)
writeJson({ curves: figures, verdicts })
