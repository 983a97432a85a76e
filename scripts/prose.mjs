// Prose lint with a ratchet, a part of `npm run lint`: rates of scripts/prose/rules.mjs for each group of texts may not get
// worse than scripts/prose/figures.json, until they reach the writing guide's targets.
//   npm run lint                     compares; prints file:line, the phrase and the better word
//   npm run prose -- FILE…           every phrase that these files or folders hold
//   npm run lint -- --record         renews the figures; refused while one is worse
//   node scripts/prose.mjs --commits subjects of commits since the base that the figures name
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { comments, help, markdown, messages } from './prose/blocks.mjs'
import { MEASURES, phrases, wordsOf } from './prose/rules.mjs'

const TABLE = 'scripts/prose/figures.json'
const git = (...args) => execFileSync('git', args, { encoding: 'utf8', maxBuffer: 1 << 26 }).trimEnd()

/** The blocks of a file by group: `[group, blocks]`. */
export function groupsOf(file, source) {
  if (file.endsWith('.md')) {
    const group = file === 'README.md' ? 'readme' : file === 'ARCHITECTURE.md' ? 'architecture' : 'docs'
    return [[group, markdown(file, source)]]
  }
  return [
    [`comments/${/^src\/([\w-]+)\//.exec(file)?.[1] ?? 'src'}`, comments(file, source)],
    ['messages', messages(file, source)],
    ...(file.startsWith('src/cli/') ? [['help', help(file, source)]] : []),
  ]
}

/** Each group's words, and by measure the phrases found. */
export function measure(files, read = (file) => readFileSync(file, 'utf8')) {
  const groups = new Map()
  for (const file of files)
    for (const [name, blocks] of groupsOf(file, read(file))) {
      if (blocks.length === 0) continue
      if (!groups.has(name)) groups.set(name, { words: 0, hits: new Map() })
      const group = groups.get(name)
      for (const block of blocks) {
        group.words += wordsOf(block.text)
        for (const [key, m] of Object.entries(MEASURES)) {
          if (m.groups && !m.groups.test(name)) continue
          if (!group.hits.has(key)) group.hits.set(key, [])
          group.hits.get(key).push(...phrases(m, block).map((p) => ({ file, ...p })))
        }
      }
    }
  return groups
}

/** A measure with a limit is a count; the others are rates per 1,000 words. */
export const rateOf = (key, count, words) =>
  MEASURES[key].limit ? count : Math.round((10000 * count) / Math.max(1, words)) / 10

/**
 * Whether a figure `[count, rate]` is worse than the recorded one. The count has to be worse as well: deleting good
 * sentences raises a rate and harms nobody.
 */
export function worse(key, [count, rate], recorded) {
  const { atLeast, target } = MEASURES[key]
  if (recorded === undefined) return false
  return atLeast
    ? rate < target && rate < recorded[1] && count < recorded[0]
    : rate > target && rate > recorded[1] && count > recorded[0]
}

function figures(groups) {
  const table = {}
  for (const name of [...groups.keys()].sort()) {
    const { words, hits } = groups.get(name)
    table[name] = Object.fromEntries([...hits].map(([k, h]) => [k, [h.length, rateOf(k, h.length, words)]]))
  }
  return table
}

// One measure a line, as the formatter of the repository writes it.
const format = (table) =>
  `${JSON.stringify(table, null, 2).replace(/\[\s+([\d.]+),\s+([\d.]+)\s+\]/g, '[$1, $2]')}\n`

/** Lines added since a commit, as `file:line`. */
function addedSince(commit) {
  const added = new Set()
  let file = ''
  for (const row of git('diff', '-U0', '--no-color', commit, '--', '*.md', 'src').split('\n')) {
    if (row.startsWith('+++ ')) file = row.slice(6)
    const hunk = /^@@ .*\+(\d+)(?:,(\d+))? @@/.exec(row)
    if (hunk) for (let k = 0; k < Number(hunk[2] ?? 1); k++) added.add(`${file}:${Number(hunk[1]) + k}`)
  }
  return added
}

/** Subjects that are not `area: imperative summary` of at most 72 characters. */
export const badSubjects = (subjects) =>
  subjects.filter((s) => s.length > 72 || !/^[a-z0-9/_.-]+(, [a-z0-9/_.-]+)*: [a-z].{3,}$/.test(s))

function commits(base) {
  try {
    git('cat-file', '-e', `${base}^{commit}`)
  } catch {
    console.log(`commit subjects: not checked, because ${base} is not in this clone`)
    return 0
  }
  const bad = badSubjects(
    git('log', '--no-merges', '--format=%s', `${base}..HEAD`).split('\n').filter(Boolean),
  )
  for (const subject of bad)
    console.error(
      `commit subject: ${subject}\n  expected \`area: imperative summary\`, at most 72 characters`,
    )
  return bad.length > 0 ? 1 : 0
}

const show = (h) => console.log(`${h.file}:${h.line}: ${h.phrase}${h.better ? `  →  ${h.better}` : ''}`)

function compare(groups, table, recorded) {
  const bad = Object.entries(table).flatMap(([name, row]) =>
    Object.entries(row).flatMap(([key, now]) =>
      worse(key, now, recorded[name]?.[key]) ? [[name, key, now]] : [],
    ),
  )
  if (bad.length === 0) return 0
  const base = git('log', '-1', '--format=%H', '--', TABLE)
  const added = base ? addedSince(base) : new Set()
  for (const [name, key, [count, rate]] of bad) {
    const was = recorded[name][key]
    console.error(`prose: ${name}: ${MEASURES[key].title}: ${rate} (${count}), was ${was[1]} (${was[0]})`)
    const hits = groups.get(name).hits.get(key)
    const fresh = hits.filter((h) => added.has(`${h.file}:${h.line}`))
    if (!MEASURES[key].atLeast) (fresh.length > 0 ? fresh : hits).slice(0, 40).forEach(show)
  }
  return 1
}

const sources = (...paths) =>
  git('ls-files', '-co', '--exclude-standard', '--', ...paths)
    .split('\n')
    .filter((f) => /\.(?:md|ts)$/.test(f) && !/^(?:test|data)\//.test(f))

function main(args) {
  const recorded = JSON.parse(readFileSync(TABLE, 'utf8'))
  if (args[0] === '--commits') return commits(recorded.commits)
  const files = args.filter((a) => !a.startsWith('--'))
  if (files.length > 0) {
    for (const [name, { words, hits }] of measure(sources(...files)))
      for (const [key, list] of hits) {
        console.log(
          `== ${name}: ${MEASURES[key].title}: ${rateOf(key, list.length, words)} (target ${MEASURES[key].target})`,
        )
        if (!MEASURES[key].atLeast) list.forEach(show)
      }
    return 0
  }
  const groups = measure(sources('*.md', 'src'))
  const table = figures(groups)
  const failed = compare(groups, table, recorded)
  if (!args.includes('--record') || failed) return failed
  // The better of both: a figure only improves.
  for (const [name, row] of Object.entries(table))
    for (const [key, now] of Object.entries(row)) {
      const was = recorded[name]?.[key] ?? now
      const best = MEASURES[key].atLeast ? Math.max : Math.min
      row[key] = [best(was[0], now[0]), best(was[1], now[1])]
    }
  writeFileSync(TABLE, format({ commits: recorded.commits, ...table }))
  return 0
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  process.exitCode = main(process.argv.slice(2))
