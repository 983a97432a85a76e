// Writes docs/performance.svg: speedups over cuSPARSE from the times of an H100 that are stored in bench/.
//   node scripts/performance-chart.mjs
// A case is one matrix and one width. Baseline: the fastest algorithm of cuSPARSE. "Fastest schedule": the best of the schedules
// that were timed in the same session. "auto": the default schedule, timed in another session, for the cases that have a time.
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { gunzipSync } from 'node:zlib'

const SESSIONS = ['model/measured/h100', 'search-cases/h100-unseen']
const AUTO = ['model/measured/h100-cuda-choices', 'model/measured/h100-cuda-numberings']
const SUITES = { spmm: 'SpMM', sddmm: 'SDDMM', spmv: 'SpMV' }

const records = (name) =>
  gunzipSync(readFileSync(`bench/${name}.jsonl.gz`))
    .toString()
    .trim()
    .split('\n')
    .map((line) => ({ session: name, ...JSON.parse(line) }))
    .filter((r) => r.status === 'ok' && r.suite in SUITES)
const caseOf = (r) => `${r.suite} ${r.data} ${r.width}`
function grouped(rows) {
  const cases = new Map()
  for (const r of rows) cases.set(caseOf(r), [...(cases.get(caseOf(r)) ?? []), r])
  return cases
}
const fastest = (rows) => Math.min(...rows.map((r) => r.median))

/** By suite: `{ fastest, auto }`, speedups over cuSPARSE sorted from the worst case to the best. */
export function speedups() {
  const measured = SESSIONS.flatMap(records)
  const auto = grouped(AUTO.flatMap(records).filter((r) => r.candidate.endsWith('.auto')))
  const out = Object.fromEntries(Object.keys(SUITES).map((suite) => [suite, { fastest: [], auto: [] }]))
  for (const [key, rows] of grouped(measured)) {
    const peers = rows.filter((r) => r.candidate.startsWith('cuSPARSE'))
    if (peers.length === 0) continue
    const { suite } = rows[0]
    const ours = rows.filter(
      (r) => !r.candidate.startsWith('cuSPARSE') && peers.some((p) => p.session === r.session),
    )
    out[suite].fastest.push(fastest(peers) / fastest(ours))
    if (auto.has(key)) out[suite].auto.push(fastest(peers) / fastest(auto.get(key)))
  }
  for (const { fastest: a, auto: b } of Object.values(out))
    for (const list of [a, b]) list.sort((x, y) => x - y)
  return out
}

const mean = (list) => Math.exp(list.reduce((sum, x) => sum + Math.log(x), 0) / list.length)
const COLOURS = { fastest: '#1f5fa8', auto: '#b3541e' }
const [WIDTH, HEIGHT, LEFT, TOP, BOTTOM] = [760, 380, 60, 70, 320]
const y = (x) => TOP + ((BOTTOM - TOP) * Math.log(4 / x)) / Math.log(4 / 0.5)
const text = (x, at, content, more = '') => `<text x="${x}" y="${at}" ${more}>${content}</text>`

/** One column of dots, with its geometric mean and its worst case. */
function column(list, x, colour) {
  const dots = list.map(
    (s, k) =>
      `<circle cx="${x - 14 + 7 * (k % 5)}" cy="${y(s).toFixed(1)}" r="3" fill="${colour}" fill-opacity="0.5"/>`,
  )
  const centre = y(mean(list)).toFixed(1)
  return [
    ...dots,
    `<line x1="${x - 24}" x2="${x + 24}" y1="${centre}" y2="${centre}" stroke="${colour}" stroke-width="3"/>`,
    text(
      x + 28,
      (y(mean(list)) + 4).toFixed(1),
      `${mean(list).toFixed(2)}×`,
      `fill="${colour}" font-weight="bold"`,
    ),
    text(x, BOTTOM - 8, `worst ${list[0].toFixed(2)}×`, 'text-anchor="middle" font-size="11"'),
  ]
}

export function chart() {
  const ticks = [0.5, 0.7, 1, 1.5, 2, 3, 4].flatMap((s) => [
    `<line x1="${LEFT}" x2="${WIDTH - 20}" y1="${y(s).toFixed(1)}" y2="${y(s).toFixed(1)}" stroke="${s === 1 ? '#222' : '#ddd'}"/>`,
    text(LEFT - 8, (y(s) + 4).toFixed(1), `${s}×`, 'text-anchor="end"'),
  ])
  const groups = Object.entries(speedups()).flatMap(([suite, lists], k) => {
    const x = LEFT + 70 + 225 * k
    return [
      ...column(lists.fastest, x, COLOURS.fastest),
      ...column(lists.auto, x + 95, COLOURS.auto),
      text(x + 48, BOTTOM + 24, SUITES[suite], 'text-anchor="middle" font-weight="bold" font-size="15"'),
      text(
        x + 48,
        BOTTOM + 42,
        `${lists.fastest.length} cases, ${lists.auto.length} for auto`,
        'text-anchor="middle" font-size="11"',
      ),
    ]
  })
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" width="${WIDTH}" height="${HEIGHT}" font-family="sans-serif" font-size="13" fill="#222">`,
    '<title>Speedups over cuSPARSE on an H100</title>',
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`,
    text(
      LEFT,
      24,
      'Speedup over the fastest algorithm of cuSPARSE (= 1×), f32, H100, log scale',
      'font-weight="bold" font-size="14"',
    ),
    text(LEFT, 46, '● fastest schedule of the measured ones', `fill="${COLOURS.fastest}"`),
    text(LEFT + 290, 46, '● auto: default schedule, without a search', `fill="${COLOURS.auto}"`),
    ...ticks,
    ...groups,
    '</svg>',
  ].join('\n')}\n`
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  writeFileSync('docs/performance.svg', chart())
