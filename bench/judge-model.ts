/**
 * How good choices are, by whole families left out: for each family of matrices a model is trained on all others and chooses
 * on it; on real matrices one that was trained on all families. Shares of the best that was measured, geometric mean and
 * worst: of what ran unasked when that was measured (`auto then`), of what `auto` of the kernels takes now with that model,
 * and of what the model takes of all that was measured.
 *
 * ```
 * node dist/bench/judge-model.js [--device cuda|webgpu] [--data FOLDER] [--measured FILE.jsonl.gz,…] [--kernels FOLDER]
 * ```
 * `--data`: of the real matrices; without it, the generated families alone. `--kernels`: whose choices are judged.
 */
import { isDrawn, measured, samplesOf } from './model/dataset.ts'
import { type Judged, judgedCases } from './model/judging.ts'
import { REAL } from './model/learning.ts'
import { drawnPoints } from './model/sketch-points.ts'
import { type Choice, correlationOf, pickOf, type Summary, summaryOf } from './model/verdict.ts'
import { option, packageFile, table, together } from './support.ts'

const folder = option('data')
const records = measured().filter((r) => folder !== undefined || isDrawn(r))
const samples = await samplesOf(records, folder ?? '.', (text) => console.error(text))
const cases: Judged[] = []
for await (const c of judgedCases(
  records,
  samples,
  await drawnPoints(records[0]!.device, records[0]!.chip),
  option('kernels') ?? packageFile('kernels'),
  folder ?? '.',
))
  cases.push(c)

const of = (list: readonly Judged[], time: (c: Judged) => readonly [string, number] | null) =>
  summaryOf(
    list.flatMap((c): Choice[] => {
      const chosen = time(c)
      return chosen ? [{ name: `${c.name} ${chosen[0]}`, share: c.best / chosen[1] }] : []
    }),
  )
const WAYS: readonly (readonly [string, (c: Judged) => readonly [string, number] | null])[] = [
  ['auto then', (c) => (c.standard === null ? null : ['auto', c.standard])],
  ['auto now', (c) => c.chosen && [c.chosen.candidate, c.chosen.time]],
  [
    'of all',
    (c) => {
      const pick = pickOf(c.guesses)
      return [pick.candidate, pick.time]
    },
  ],
]
const figure = (s: Summary | null): string => (s ? `${s.mean.toFixed(3)} (${s.worst.toFixed(2)})` : '')

const rows: string[][] = []
const worst: string[] = []
for (const [title, within] of [
  ['families', (c: Judged) => c.group !== REAL],
  ['real', (c: Judged) => c.group === REAL],
] as const) {
  const own = cases.filter(within)
  const groups = together(own, (c) => `${c.suite} ${c.width}`)
  for (const [name, list] of [...groups, ['all', own] as readonly [string, readonly Judged[]]]) {
    if (list.length === 0) continue
    const summaries = WAYS.map(([, time]) => of(list, time))
    const rank = list.reduce((n, c) => n + correlationOf(c.guesses), 0) / list.length
    rows.push([title, name, String(list.length), ...summaries.map(figure), rank.toFixed(2)])
    const now = summaries[1]
    if (now) worst.push(`${title}, ${name}: ${now.worst.toFixed(2)} ${now.worstOf} (${now.cases} cases)`)
  }
}
console.log(table(['', 'cases of', 'n', ...WAYS.map(([name]) => name), 'Spearman'], rows))
console.log('worst of auto now:')
for (const line of worst) console.log(`  ${line}`)
