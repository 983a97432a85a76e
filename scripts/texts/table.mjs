/** The table of emitted code: reading, writing and comparing. A row is a line, so that git merges tables. */
import { readFileSync, writeFileSync } from 'node:fs'

export const TABLE = 'test/support/emitted-texts.txt'
const HEADER = [
  '# Code that the compiler emits: file, kernel.schedule, target, hash, lines, and abbreviations of the passes that',
  '# changed it. `npm run texts` compares, `npm run texts -- --record` renews. Merged lines may repeat: record again.',
]

/** Abbreviations of passes, and rows by key. */
export function readTable(path = TABLE) {
  const codes = new Map()
  const rows = new Map()
  const repeated = new Set()
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '' || line.startsWith('#')) continue
    const [file, name, target, hash, lines, passes = ''] = line.split(' ')
    if (file === 'pass') codes.set(name, target)
    else {
      const key = `${file} ${name} ${target}`
      if (rows.has(key)) repeated.add(key)
      const list = passes === '' ? [] : passes.split(',').map((c) => codes.get(c) ?? c)
      rows.set(
        key,
        hash === 'rejected' ? { key, rejected: lines } : { key, hash, lines: +lines, passes: list },
      )
    }
  }
  return { codes, rows, repeated }
}

/** Writes rows, with abbreviations of passes that remain as they are. */
export function writeTable(rows, known, path = TABLE) {
  const names = new Set([...rows.values()].flatMap((r) => r.passes ?? []))
  const codes = new Map([...known].filter(([, name]) => names.has(name)))
  const codeOf = new Map([...codes].map(([code, name]) => [name, code]))
  for (const name of [...names].filter((n) => !codeOf.has(n)).sort()) {
    const code = abbreviations(name).find((c) => !codes.has(c))
    codes.set(code, name)
    codeOf.set(name, code)
  }
  const lines = [...rows.values()]
    .map(({ key, rejected, hash, lines, passes }) =>
      rejected
        ? `${key} rejected ${rejected}`
        : `${key} ${hash} ${lines} ${passes.map((p) => codeOf.get(p)).join(',')}`.trimEnd(),
    )
    .sort()
  const legend = [...codes].map(([code, name]) => `pass ${code} ${name}`).sort()
  writeFileSync(path, `${[...HEADER, ...legend, ...lines].join('\n')}\n`)
}

/** Initials of the words, then longer beginnings, then the name. */
function abbreviations(name) {
  const words = name.split('-')
  const first = (n) => words.map((w) => w.slice(0, n)).join('')
  return [first(1), words[0].slice(0, 2) + first(1).slice(1), first(2), first(3), name]
}

/** Fields of a row that are compared. */
export const FIELDS = ['rejected', 'hash', 'lines', 'passes']
const spread = (before, after) => (before === after ? `${after}` : `${before} -> ${after}`)

/** What differs between two maps of rows, as lines to print; none if nothing does. */
export function differences(before, after) {
  const out = []
  const passes = new Map()
  const sums = new Map()
  const count = (map, key, what) => {
    const counts = map.get(key) ?? {}
    counts[what] = (counts[what] ?? 0) + 1
    map.set(key, counts)
  }
  for (const key of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const [was, now] = [before.get(key), after.get(key)]
    const target = key.slice(key.lastIndexOf(' ') + 1)
    for (const p of was?.passes ?? []) count(passes, p, 'before')
    for (const p of now?.passes ?? []) count(passes, p, 'after')
    if (!was || !now) {
      count(sums, target, was ? 'gone' : 'new')
      out.push(`${was ? 'gone   ' : 'new    '} ${key}: ${described(was ?? now)}`)
    } else if (FIELDS.some((f) => `${was[f]}` !== `${now[f]}`)) {
      count(sums, target, was.hash === now.hash && !was.rejected ? 'passes only' : 'changed')
      out.push(`changed ${key}: ${change(was, now)}`)
    }
  }
  if (out.length === 0) return []
  out.push('')
  for (const [p, { before: b = 0, after: a = 0 }] of [...passes].sort())
    if (a !== b) out.push(`pass ${p}: changes ${spread(b, a)} texts`)
  for (const [target, counts] of [...sums].sort()) {
    const lines = (rows) =>
      [...rows.values()].reduce((n, r) => n + (r.key.endsWith(` ${target}`) ? (r.lines ?? 0) : 0), 0)
    const list = Object.entries(counts).map(([what, n]) => `${n} ${what}`)
    out.push(`${target}: ${list.join(', ')}; lines ${spread(lines(before), lines(after))}`)
  }
  return out
}

const described = ({ rejected, lines }) => (rejected ? `rejected (${rejected})` : `${lines} lines`)

function change(was, now) {
  if (was.rejected || now.rejected) return `${described(was)} -> ${described(now)}`
  const lost = was.passes.filter((p) => !now.passes.includes(p))
  const gained = now.passes.filter((p) => !was.passes.includes(p))
  return [
    was.hash === now.hash ? 'same text' : `lines ${spread(was.lines, now.lines)}`,
    ...lost.map((p) => `-${p}`),
    ...gained.map((p) => `+${p}`),
  ].join(' ')
}
