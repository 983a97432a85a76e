/**
 * The site of docs/. The sidebar follows the sections of index.md; a page that only another index.md lists (the cookbook)
 * is nested in that section. `npm run docs` builds it; a dead link fails the build.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, posix, relative, resolve, sep } from 'node:path'
import { type DefaultTheme, defineConfig } from 'vitepress'
import { slug } from './slug.ts'
import { spt } from './spt.ts'

const DOCS = resolve(import.meta.dirname, '..')
const { repository } = JSON.parse(readFileSync(resolve(DOCS, '../package.json'), 'utf8')) as {
  repository?: { url: string }
}
/** The repository's files on the web, for links that leave docs/; without one they become text. */
const FILES = repository && `${repository.url.replace(/^git\+|\.git$/g, '')}/blob/main/`
const API = existsSync(resolve(DOCS, 'public/api/index.html'))

const LINK = /^- \[([^\]]+)\]\(([^)#\s]+\.md)\)/gm
const linksIn = (page: string, text: string): readonly { text: string; link: string }[] =>
  [...text.matchAll(LINK)].map(([, title, to]) => ({
    text: title!.replaceAll('`', ''),
    link: posix.join('/', posix.dirname(page), to!),
  }))

/** Entries of the pages that a folder's index.md lists in addition to those of docs/index.md. */
function entries(page: string, text: string, listed: ReadonlySet<string>): DefaultTheme.SidebarItem[] {
  return linksIn(page, text).map((item) => {
    const own = item.link.slice(1)
    if (!own.endsWith('/index.md') || !existsSync(resolve(DOCS, own))) return item
    const below = linksIn(own, readFileSync(resolve(DOCS, own), 'utf8')).filter(
      ({ link }) => posix.dirname(link) === posix.dirname(item.link) && !listed.has(link),
    )
    return below.length === 0 ? item : { ...item, collapsed: true, items: below }
  })
}

function sidebar(): DefaultTheme.SidebarItem[] {
  const home = readFileSync(resolve(DOCS, 'index.md'), 'utf8')
  const listed = new Set(linksIn('index.md', home).map(({ link }) => link))
  return home
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.slice(0, section.indexOf('\n')),
      collapsed: false,
      items: entries('index.md', section, listed),
    }))
}

export default defineConfig({
  title: 'sparsetile',
  description: 'A compiler for sparse tensor kernels',
  cleanUrls: false,
  lastUpdated: false,
  vite: { build: { chunkSizeWarningLimit: 2000 }, publicDir: resolve(DOCS, 'public') },
  markdown: {
    anchor: { slugify: slug },
    languages: [spt as never],
    languageAlias: { smtlib: 'text' },
    config(md) {
      // Links to files outside of docs/ are right in the repository, not on the site.
      md.core.ruler.push('outside', (state) => {
        const page = relative(DOCS, (state.env as { path: string }).path).replaceAll(sep, '/')
        for (const token of state.tokens)
          for (const [k, child] of (token.children ?? []).entries()) {
            if (child.type !== 'link_open') continue
            const to = child.attrGet('href') ?? ''
            const path = posix.join(dirname(page), to)
            if (/^[a-z]+:|^[#/]/.test(to) || !path.startsWith('../')) continue
            if (FILES) child.attrSet('href', FILES + path.slice(3))
            else {
              child.tag = 'span'
              child.attrs = [['title', `${path.slice(3)} in the repository`]]
              const close = token.children!.findIndex((c, n) => n > k && c.type === 'link_close')
              token.children![close]!.tag = 'span'
              child.type = 'span_open'
              token.children![close]!.type = 'span_close'
            }
          }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: sidebar(),
    nav: [
      { text: 'Docs', link: '/' },
      ...(API ? [{ text: 'API', link: '/api/index.html', target: '_self' }] : []),
      { text: 'Glossary', link: '/project/glossary' },
    ],
  },
})
