/** Everyone's times at a glance: a row for each contestant, a column for each case. */
import { table } from '../support.ts'
import type { Case, Entry } from './case.ts'
import { time } from './statistics.ts'

/** Cases of suites whose tables say the best of each side alone; those that were not measured have the time of a few runs, in brackets. */
export function overview(cases: readonly Case[]): string {
  if (cases.length === 0) return ''
  const places = cases.map(placeOf)
  // Data of several suites may be called alike.
  const columns = cases.map((c, k) =>
    places.indexOf(places[k]!) === places.lastIndexOf(places[k]!) ? places[k]! : `${c.suite}, ${places[k]}`,
  )
  const found = new Map<string, Entry>()
  cases.forEach((c, k) => {
    for (const e of c.entries) found.set(`${e.name}\n${columns[k]}`, e)
  })
  const names = [...new Set(cases.flatMap((c) => c.entries.map((e) => e.name)))]
  const rows = names.map((name) => [name, ...columns.map((c) => cell(found.get(`${name}\n${c}`)))])
  return `\n== everyone, µs ==\n${table(['', ...columns], rows)}`
}

const placeOf = (c: Case): string => `${c.data}, ${c.at}`

function cell(e: Entry | undefined): string {
  if (!e) return '-'
  if (e.result !== 'ok') return e.result
  const chosen = e.facts?.chosen === undefined ? '' : ` (${e.facts.chosen})`
  return e.times ? `${time(e.times.event)}${chosen}` : e.scouted === null ? '-' : `[${time(e.scouted)}]`
}
