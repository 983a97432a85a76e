/**
 * The cost model, judged by leaving out: for each family of matrices, and each real one, trees are learned on all others and
 * choose among the measured kernels of its cases.
 *
 * ```
 * node dist/bench/judge-model.js [--data FOLDER] [--measured FILE.jsonl.gz]
 * ```
 * `--data`: of the real matrices; without it, the generated families alone.
 */
import { treesAt } from '../src/search/model/trees.ts'
import { familyOf, isDrawn, samplesOf } from './model/dataset.ts'
import { H100, judged, kept, learned, type Row, rowOf } from './model/learning.ts'
import { option } from './support.ts'

const measured = option('measured') ?? 'bench/model/measured/h100.jsonl.gz'
const folder = option('data')
const records = kept(measured).filter((r) => folder !== undefined || isDrawn(r))
const samples = await samplesOf(records, folder ?? '.', (text) => console.error(text))
const rows = samples.map((s) => rowOf(s, H100))

const predicted = new Map<Row, number>()
for (const family of new Set(rows.map((r) => familyOf(r.sample)))) {
  const trees = learned(rows.filter((r) => familyOf(r.sample) !== family))
  for (const r of rows)
    if (familyOf(r.sample) === family) predicted.set(r, r.analytic * Math.exp(treesAt(trees, r.features)))
}
const analytic = new Map(rows.map((r) => [r, r.analytic]))

const suites = [...new Set(rows.map((r) => r.sample.suite))]
const groups: readonly (readonly [string, (r: Row) => boolean])[] = [
  ...suites.map((s) => [s, (r: Row) => r.sample.suite === s] as const),
  ['all', () => true],
  ['real matrices', (r) => !isDrawn(r.sample)],
]
for (const [what, by] of [
  ['terms alone', analytic],
  ['with trees, family left out', predicted],
] as const) {
  console.log(`${what}: best / chosen (geometric mean, worst), best of four, Spearman`)
  for (const [name, keep] of groups) {
    const own = rows.filter(keep)
    if (own.length === 0) continue
    const v = judged(own, by)
    if (v.cases === 0) continue
    console.log(
      `  ${name.padEnd(14)} ${v.mean.toFixed(3)} ${v.worst.toFixed(2)}  ${v.four.toFixed(3)}  ${v.spearman.toFixed(2)}  of ${v.cases} cases; worst ${v.worstOf}`,
    )
  }
}
