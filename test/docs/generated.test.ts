/** Pages that follow from the sources: the command line from --help, the environment variables from their uses. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { cliPages } from '../../scripts/cli-pages.mjs'
import { spt } from '../cli/support.ts'
import { pagesIn, read } from './site.ts'

test('docs/reference/cli equals the output of --help (UPDATE_GOLDEN=1 renews it)', async () => {
  const pages: ReadonlyMap<string, string> = await cliPages(
    async (argv: readonly string[]) => (await spt(argv)).out,
  )
  if (process.env.UPDATE_GOLDEN) for (const [path, text] of pages) writeFileSync(path, text)
  expect(pagesIn('docs/reference/cli')).toEqual([...pages.keys()].toSorted())
  for (const [path, text] of pages) expect(read(path), path).toBe(text)
})

test('the page lists exactly the environment variables of the sources', () => {
  const files = ['src', 'bench', 'test', 'scripts'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|mjs|js)$/.test(name))
      .map((name) => readFileSync(`${folder}/${name}`, 'utf8')),
  )
  const used = new Set(
    [...files, read('vitest.config.ts')].flatMap((text) => text.match(/\bSPT_[A-Z_]+/g) ?? []),
  )
  const described = [...read('docs/reference/environment.md').matchAll(/^\| `(SPT_[A-Z_]+)`/gm)].map(
    (m) => m[1]!,
  )
  expect(described.toSorted()).toEqual([...used].filter((name) => name !== 'SPT_').toSorted())
})
