/** What the pages name is there: files, folders, headings, scripts; and no page or room is left out. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const chapters = readdirSync('docs').filter((name) => name.endsWith('.md'))
const pages = ['README.md', 'ARCHITECTURE.md', 'bench/README.md', ...chapters.map((name) => `docs/${name}`)]
const text = new Map(pages.map((page) => [page, readFileSync(page, 'utf8')]))
const proseOf = (page: string): string => text.get(page)!.replace(/^```.*?^```/gms, '')
/** Pages for those who change the compiler: what looks like a path there is one. */
const maps = ['ARCHITECTURE.md', 'docs/internals.md', 'docs/extending.md']
const rooms = [
  'src',
  'bench',
  'test',
  'scripts',
  'docs',
  'kernels',
  'grammar',
  'data',
  'examples',
  'notebooks',
]
const held = rooms.flatMap((room) => [
  `/${room}`,
  ...readdirSync(room, { recursive: true }).map((path) => `/${room}/${String(path).replaceAll('\\', '/')}`),
])
const foldersIn = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? [e.name] : []))

const headings = (page: string): ReadonlySet<string> =>
  new Set(
    [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) =>
      title!
        .toLowerCase()
        .replace(/[^\p{L}\p{N}_\- ]/gu, '')
        .replaceAll(' ', '-'),
    ),
  )

test.each(pages)('links of %s', (page) => {
  for (const [, to] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^https?:/.test(to!)) continue
    const [file, heading] = to!.split('#') as [string, string?]
    const path = file === '' ? page : join(dirname(page), file)
    expect(existsSync(path), to).toBe(true)
    if (heading !== undefined) expect(headings(path.replaceAll('\\', '/')), to).toContain(heading)
  }
})

test.each(pages)('scripts that %s calls', (page) => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8'))
  for (const [, script] of text.get(page)!.matchAll(/npm run (?:-s )?([\w:-]+)/g))
    expect(Object.keys(scripts)).toContain(script)
  for (const [, name] of text.get(page)!.matchAll(/dist\/bench\/([\w/-]+)\.js/g))
    if (name !== 'NAME') expect(held).toContain(`/bench/${name}.ts`)
})

test.each(maps)('files that %s names', (page) => {
  for (const [, named] of proseOf(page).matchAll(/`([\w./-]+)`/g)) {
    const path = named!.replace(/\/$/, '')
    if (path.startsWith('.') || !/[a-z]\/|\.(?:ts|mjs|json|md|ohm)$/.test(named!)) continue
    expect(
      held.some((x) => x.endsWith(`/${path}`)),
      named,
    ).toBe(true)
  }
})

test('every page of docs/ is in the README, every room of src/ in the architecture', () => {
  const readme = text.get('README.md')!
  for (const name of chapters) expect(readme).toContain(`(docs/${name})`)
  const architecture = text.get('ARCHITECTURE.md')!
  for (const room of [...foldersIn('src'), ...foldersIn('src/search')])
    expect(architecture).toContain(`${room}/\``)
})
