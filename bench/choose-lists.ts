/**
 * Lists for `fastest` of dispatch tables (`data/choices/`), made forward greedily of what was measured: each time the
 * schedule that brings what
 * the cost model takes of the list nearest to the best of all. What is printed of each is judged on what it was not made of:
 * for each family, the list is made of the others, and chosen from by a model that has not seen the family.
 *
 * ```
 * node dist/bench/choose-lists.js [--device cuda|webgpu] [--data FOLDER] [--measured FILE.jsonl.gz,…] [--most 8]
 * ```
 */
import { isDrawn, measured, samplesOf } from './model/dataset.ts'
import { type Judged, judgedCases } from './model/judging.ts'
import { REAL } from './model/learning.ts'
import { greedy, type Listed, listed, pickFrom } from './model/lists.ts'
import { drawnPoints } from './model/sketch-points.ts'
import { type Choice, summaryOf } from './model/verdict.ts'
import { count, option, together } from './support.ts'

const MOST = count('most', 8)
const folder = option('data')
const records = measured().filter((r) => folder !== undefined || isDrawn(r))
const samples = await samplesOf(records, folder ?? '.', (text) => console.error(text))
const cases: Judged[] = []
const points = await drawnPoints(records[0]!.device, records[0]!.chip)
for await (const c of judgedCases(records, samples, points, null, folder ?? '.')) cases.push(c)

/** Below it a group of threads has less than a row's features to do. */
const NARROW = 64

/** Cases of which one list is made. */
function kindOf({ suite, width }: Judged): string {
  if (suite !== 'spmm') return suite
  return width < NARROW ? `${suite}, d < ${NARROW}` : `${suite}, d ≥ ${NARROW}`
}

function print(title: string, cases: readonly Listed[], time: (c: Listed) => number | null): void {
  const shares = cases.flatMap((c): Choice[] => {
    const t = time(c)
    return t === null ? [] : [{ name: c.case.name, share: c.case.best / t }]
  })
  const s = summaryOf(shares)
  if (s) console.log(`  ${title.padEnd(34)} ${s.mean.toFixed(3)} (${s.worst.toFixed(2)})  of ${s.cases}`)
}

for (const [kind, own] of together(cases, kindOf)) {
  const all = listed(own)
  const families = all.filter((c) => c.case.group !== REAL)
  const list = greedy(families, MOST)
  console.log(`${kind}:\n"fastest": ${JSON.stringify(list, null, 2)}`)
  const others = new Map<string, readonly string[]>()
  for (const group of new Set(families.map((c) => c.case.group)))
    others.set(
      group,
      greedy(
        families.filter((c) => c.case.group !== group),
        MOST,
      ),
    )
  for (const [name, some] of [
    ['families', families],
    ['real', all.filter((c) => c.case.group === REAL)],
  ] as const) {
    const of = (l: readonly string[]) => (c: Listed) => pickFrom(c, l)?.time ?? null
    print(`${name}: auto then`, some, (c) => c.case.standard)
    print(`${name}: of a list of the others`, some, (c) => of(others.get(c.case.group) ?? list)(c))
    print(`${name}: of this list`, some, of(list))
    print(`${name}: its first alone`, some, of(list.slice(0, 1)))
    print(`${name}: the best of it`, some, (c) => {
      const times = list.flatMap((l) => c.guesses.get(l)?.time ?? [])
      return times.length > 0 ? Math.min(...times) : null
    })
  }
}
