/** Links of the pages lead to files and headings that exist; pages are at most 250 lines and reachable from docs/index.md. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { slug } from '../../docs/.vitepress/slug.ts'
import { isExecuted, pagesIn, proseOf as withoutBlocks } from './site.ts'

const chapters = pagesIn('docs')
const pages = ['README.md', 'ARCHITECTURE.md', 'bench/README.md', 'kernels/README.md', ...chapters]
const text = new Map(pages.map((page) => [page, readFileSync(page, 'utf8')]))
const proseOf = (page: string): string => withoutBlocks(text.get(page)!)
/** Pages for those who change the compiler: what looks like a path there is one. */
const maps = ['ARCHITECTURE.md', 'docs/project/internals.md', 'docs/project/extending.md']
const folders = [
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
  'playground',
]
const held = folders.flatMap((folder) => [
  `/${folder}`,
  ...readdirSync(folder, { recursive: true }).map(
    (path) => `/${folder}/${String(path).replaceAll('\\', '/')}`,
  ),
])
const foldersIn = (folder: string): readonly string[] =>
  readdirSync(folder, { withFileTypes: true }).flatMap((e) => (e.isDirectory() ? [e.name] : []))

/** Anchors of a page: of its headings, and `<a id="…">`. */
const headings = (page: string): ReadonlySet<string> =>
  new Set([
    ...[...proseOf(page).matchAll(/^<a id="([^"]+)">/gm)].map(([, id]) => id!),
    ...[...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, title]) => slug(title!)),
  ])

/** The pages and files of the repository that a page links to, with the heading. */
const linksOf = (page: string): readonly { to: string; path: string; heading: string | undefined }[] =>
  [...proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, to]) => {
    if (/^https?:/.test(to!)) return []
    const [file, heading] = to!.split('#') as [string, string?]
    return [{ to: to!, path: file === '' ? page : join(dirname(page), file).replaceAll('\\', '/'), heading }]
  })

test.each(pages)('links of %s', (page) => {
  for (const { to, path, heading } of linksOf(page)) {
    expect(existsSync(path), to).toBe(true)
    // The site has no page for a folder.
    if (chapters.includes(page) && path.startsWith('docs/')) expect(statSync(path).isFile(), to).toBe(true)
    if (heading !== undefined) expect(headings(path), to).toContain(heading)
  }
})

test.each(chapters)('%s has a title and at most 250 lines', (page) => {
  const lines = text.get(page)!.trimEnd().split('\n')
  expect(lines[0]).toMatch(/^# \S/)
  expect(lines.length).toBeLessThanOrEqual(250)
})

const TAGS = ['a', 'details', 'summary']

/** What VitePress compiles as Vue outside of code, and cannot: interpolations, unknown tags, tags that are not closed. */
function vueIn(prose: string): readonly string[] {
  const text = prose.replace(/(`+)[\s\S]*?\1|<!--[\s\S]*?-->/g, '')
  const open: string[] = []
  const wrong = [...text.matchAll(/\{\{|<(?!https?:)(\/?)([a-z!][\w-]*)/gi)].flatMap(
    ([found, closes, tag = '']) => {
      if (!TAGS.includes(tag)) return [found]
      if (closes) return open.pop() === tag ? [] : [found]
      open.push(tag)
      return []
    },
  )
  return [...wrong, ...open.map((tag) => `<${tag}`)]
}

test.each(chapters)('the site can be built of %s', (page) => {
  expect(vueIn(proseOf(page))).toEqual([])
})

test('interpolations and tags are found outside of code', () => {
  const right =
    '`a<b>` and ``{{ `x` }}``, <a id="x"></a>, i < n, <https://x.org> <details><summary>y</summary></details>'
  expect(vueIn(right)).toEqual([])
  const wrong = ['csr<f32> stores', '</div>', '{{ i }}', '<details>', '<a><summary></a></summary>']
  expect(wrong.map((text) => vueIn(text)[0])).toEqual(['<f32', '</div', '{{', '<details', '</a'])
})

test('every page is reachable from docs/index.md, and docs/index.md from the README', () => {
  const reached = new Set(['docs/index.md'])
  for (const page of reached)
    for (const { path } of linksOf(page)) if (text.has(path) && path.startsWith('docs/')) reached.add(path)
  expect(chapters.filter((page) => !reached.has(page))).toEqual([])
  expect(text.get('README.md')).toContain('(docs/index.md)')
})

test('pages with blocks to run are in folders that the tests execute', () => {
  const folders = readdirSync('test/docs').flatMap((name) =>
    [...readFileSync(`test/docs/${name}`, 'utf8').matchAll(/^executes\('([^']+)'\)$/gm)].map(
      ([, folder]) => `${folder}/`,
    ),
  )
  const executed = chapters.filter((page) => isExecuted(text.get(page)!))
  expect(executed.length).toBeGreaterThan(25)
  expect(executed.filter((page) => !folders.some((folder) => page.startsWith(folder)))).toEqual([])
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

test('every folder of src/ is in ARCHITECTURE.md', () => {
  const architecture = text.get('ARCHITECTURE.md')!
  for (const folder of [...foldersIn('src'), ...foldersIn('src/search')])
    expect(architecture).toContain(`${folder}/\``)
})
