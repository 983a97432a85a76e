/** Tables of cases, and everything as JSON after each of them. */
import { machine, table } from '../support.ts'
import { best, type Case, type Entry, type Ratios, ratios, standardOf } from './case.ts'
import type { Preparation } from './preparation.ts'
import { geometricMean, three, time } from './statistics.ts'
import { comparable } from './timing.ts'

export interface Facts {
  readonly chip: string
  readonly libraries: Readonly<Record<string, string>>
  /** Cases and suites that there was no time for. */
  readonly unmeasured: readonly string[]
}

interface Worst {
  readonly data: string
  readonly at: string
  readonly ratio: number
}

/** A suite's summary. */
export interface Summary {
  readonly suite: string
  readonly cases: number
  /** Without both sides' times. */
  readonly incomplete: number
  readonly geometricMean: number | null
  readonly worst: Worst | null
  /** The same of the standard choice. */
  readonly standard: number | null
  readonly standardWorst: Worst | null
  readonly flushed: number | null
  readonly byWidth: Readonly<Record<string, number>>
}

export function summarise(suite: string, cases: readonly Case[]): Summary {
  const all = cases.flatMap((c) => {
    const r = ratios(c)
    return r ? [{ c, r }] : []
  })
  const mean = (values: readonly (number | null)[]): number | null => {
    const known = values.filter((v): v is number => v !== null)
    return known.length > 0 ? geometricMean(known) : null
  }
  const worst = (of: (r: Ratios) => number | null): Worst | null =>
    all
      .flatMap(({ c, r }): Worst[] => {
        const ratio = of(r)
        return ratio === null ? [] : [{ data: c.data, at: c.at, ratio }]
      })
      .sort((a, b) => a.ratio - b.ratio)[0] ?? null
  const widths = [...new Set(all.map(({ c }) => c.at))]
  return {
    suite,
    cases: cases.length,
    incomplete: cases.length - all.length,
    geometricMean: mean(all.map(({ r }) => r.best)),
    worst: worst((r) => r.best),
    standard: mean(all.map(({ r }) => r.standard)),
    standardWorst: worst((r) => r.standard),
    flushed: mean(all.map(({ r }) => r.flushed)),
    byWidth: Object.fromEntries(
      widths.map((w) => [w, geometricMean(all.filter(({ c }) => c.at === w).map(({ r }) => r.best))]),
    ),
  }
}

const HEAD = [
  'data',
  'at',
  'peer',
  'µs',
  'ours',
  'µs',
  'ratio',
  'default',
  'cold',
  'TFLOP/s',
  'of the floor',
  'error',
]

function cells(c: Case): string[] {
  const [mine, peer, standard] = [best(c, 'ours'), best(c, 'peer'), standardOf(c)]
  const r = ratios(c)
  const [ownTime, peerTime] =
    mine && peer ? comparable(mine.times, peer.times) : [mine?.times.event, peer?.times.event]
  return [
    c.data,
    c.at,
    peer?.name ?? '-',
    time(peerTime ?? null),
    mine?.name ?? '-',
    time(ownTime ?? null),
    r ? r.best.toFixed(2) : '-',
    r?.standard ? r.standard.toFixed(2) : standard ? time(standard.times.event) : '-',
    r ? r.flushed.toFixed(2) : '-',
    ownTime === undefined ? '-' : three(c.flops / ownTime / 1e6),
    c.floor === null || ownTime === undefined ? '-' : `${((100 * c.floor) / ownTime).toFixed(0)} %`,
    mine?.error === null || mine === undefined ? '-' : mine.error.toExponential(1),
  ]
}

/** One line, for the run as it goes. */
export function line(c: Case): string {
  const [data, at, peer, peerTime, mine, ownTime, ratio, standard, cold] = cells(c)
  return `${c.suite}, ${data}, ${at}: ${peer} ${peerTime}, ${mine} ${ownTime}: ${ratio} × (default ${standard}, cold ${cold})`
}

const troubles = (cases: readonly Case[]): string[] =>
  cases.flatMap((c) =>
    c.entries
      .filter((e) => e.result !== 'ok')
      .map((e) => `${c.data} ${c.at}: ${e.name} ${e.result}: ${e.note}`),
  )

export function suiteText(suite: string, cases: readonly Case[]): string {
  const s = summarise(suite, cases)
  const ratio = (x: number | null): string => (x === null ? '-' : x.toFixed(2))
  const worst = (w: Worst | null): string => (w ? `, worst ${ratio(w.ratio)} (${w.data}, ${w.at})` : '')
  const lines = [
    `\n== ${suite} ==`,
    table(HEAD, cases.map(cells)),
    '',
    `ratio: the best peer's time over ours, over ${s.cases - s.incomplete} of ${s.cases} cases`,
    `  best candidate:  geometric mean ${ratio(s.geometricMean)}${worst(s.worst)}; cold ${ratio(s.flushed)}`,
    `  default:         geometric mean ${ratio(s.standard)}${worst(s.standardWorst)}`,
    Object.entries(s.byWidth)
      .map(([w, r]) => `${w}: ${r.toFixed(2)}`)
      .join('   '),
  ]
  const said = new Set(cases.map((c) => c.checked))
  lines.push(`checked against float64: ${[...said].slice(0, 3).join('; ')}${said.size > 3 ? '; …' : ''}`)
  const bad = [...new Set(troubles(cases))]
  if (bad.length > 0)
    lines.push(`not in the comparison (${bad.length}):`, ...bad.slice(0, 40).map((t) => `  ${t}`))
  return lines.join('\n')
}

export function preparationText(all: readonly Preparation[]): string {
  const rows = all.map((p) => [
    labelled(p.candidate, p.chosen),
    p.device,
    p.loading.toFixed(1),
    p.planning.toFixed(1),
    p.emission.toFixed(1),
    `${p.compilation.toFixed(0)}${p.cached ? ' (cached)' : ''}`,
    String(p.launches),
  ])
  return `\n== preparation, ms ==\n${table(['kernel', 'device', 'load', 'plan', 'emit', 'compile', 'launches'], rows)}`
}

/** What was chosen, behind the name of the choice. */
const labelled = (name: string, chosen: number | string | undefined): string =>
  chosen === undefined ? name : `${name} → ${chosen}`

/** Building formats on the device, from what entries say of it: a row for each format that was built. */
export function buildingText(cases: readonly Case[]): string {
  const rows = new Map<string, string[]>()
  for (const c of cases)
    for (const e of c.entries) {
      const ms = e.facts?.['build ms']
      const kernel = labelled(e.name, e.facts?.chosen)
      const key = `${c.data} ${kernel}`
      if (typeof ms === 'number' && ms > 0 && !rows.has(key))
        rows.set(key, [c.data, kernel, ms.toFixed(2), bytes(e)])
    }
  if (rows.size === 0) return ''
  return `\n== formats, built on the device ==\n${table(['data', 'kernel', 'ms', 'MB'], [...rows.values()])}`
}

const bytes = (e: Entry): string => {
  const b = e.facts?.bytes
  return typeof b === 'number' ? (b / 1e6).toFixed(1) : '-'
}

/** All figures so far as JSON: a run that is cut off leaves those of its last case. */
export function progressText(
  facts: Facts,
  cases: readonly Case[],
  preparations: readonly Preparation[],
): string {
  const suites = [...new Set(cases.map((c) => c.suite))]
  const summaries = suites.map((s) =>
    summarise(
      s,
      cases.filter((c) => c.suite === s),
    ),
  )
  const withRatios = cases.map((c) => ({ ...c, ratios: ratios(c) ?? null }))
  return `${JSON.stringify({ machine: machine(), ...facts, summaries, preparations, cases: withRatios }, null, 1)}\n`
}
