/** The pages of docs/, and the tests that execute the blocks of a page (chapter.ts). */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { describe, expect, test } from 'vitest'
import { blocksOf, moduleOf, picturesOf, renewed, run } from './chapter.ts'

/** Paths of all pages under a folder, sorted, with `/`. */
export const pagesIn = (folder: string): readonly string[] =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !/(?:^|[\\/])(?:node_modules|\.vitepress)[\\/]/.test(name))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`)
    .toSorted()

export const read = (page: string): string => readFileSync(page, 'utf8')

/** The pages of the language, its formats and its schedules, in the order in which their examples depend on each other. */
export const languagePages = (): readonly string[] =>
  [
    ...[
      'language/index',
      'language/kernels',
      'language/typed-kernels',
      'formats/index',
      'formats/queries',
      'formats/compositions',
    ],
    ...[
      'steps/index',
      'steps/copies',
      'steps/work-partitioning',
      'steps/parts-and-roles',
      'language/choices',
    ],
    ...['language/spaces', 'language/memories', 'language/instructions', 'language/instruction-parameters'],
  ].map((name) => read(`docs/reference/${name}.md`))

/** The text of a page without its fenced blocks. */
export const proseOf = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '')

/** Words in code between sentences. */
export const namedIn = (text: string): ReadonlySet<string> =>
  new Set(
    [...proseOf(text).matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/[A-Za-z_]\w*/g) ?? []),
  )

export const isExecuted = (text: string): boolean => / (?:run|output-of)=/.test(text)

/**
 * Tests of a page, or of every page under a folder that has blocks to run: output and pictures are compared with the page (types are
 * checked by page-types.test.ts, of all pages at once). `UPDATE_GOLDEN=1 npx vitest run test/docs` renews them; read the difference.
 */
export function executes(path: string): void {
  const pages = (path.endsWith('.md') ? [path] : pagesIn(path)).filter((page) => isExecuted(read(page)))
  describe.each(pages)('%s', (page) => {
    test('prints the output shown', async () => {
      const text = read(page)
      const blocks = blocksOf(text)
      const source = blocks.map((b) => (b.kind === 'sh' || b.kind === 'ts' ? b.text : '')).join('\n')
      const writes = (name: string): boolean =>
        [`--svg ${name}`, `'${name}'`, `--out ${dirname(name)}\n`].some((words) => source.includes(words))
      const { printed, made } = await run(blocks, picturesOf(text).filter(writes))
      if (process.env.UPDATE_GOLDEN) {
        writeFileSync(page, renewed(text, printed))
        for (const [name, picture] of made) writeFileSync(join(dirname(page), name), picture)
        return
      }
      expect(renewed(text, printed)).toBe(text)
      const shown = blocks.filter((b) => b.kind === 'output').map((b) => b.name)
      expect(new Set(shown).size).toBe(shown.length)
      expect([...printed].flatMap(([name, output]) => (output === '' ? [] : [name])).toSorted()).toEqual(
        shown.toSorted(),
      )
      for (const [name, picture] of made) expect(picture).toBe(read(join(dirname(page), name)))
    })
  })
}

/** All that `executes` is called with, in the files of test/docs. */
export const executedPages = (): readonly string[] =>
  ['README.md', ...pagesIn('docs')].filter((page) => isExecuted(read(page)))

/** Errors of the type checker in the TypeScript of pages, with the packages' names resolved to the sources. */
export function typeErrors(pages: readonly string[]): readonly string[] {
  const modules = new Map(
    pages.map((page) => [
      resolve(`test/docs/${page.replaceAll('/', '-')}.ts`),
      moduleOf(blocksOf(read(page))),
    ]),
  )
  const config = resolve('test/docs/page.json')
  const compilerOptions = {
    noEmit: true,
    // As in a reader's program; this repository is stricter.
    noUncheckedIndexedAccess: false,
    exactOptionalPropertyTypes: false,
    moduleDetection: 'force',
    paths: { 'sparsetile/*': ['../../src/*.ts'] },
  }
  const files = new Map([
    ...modules,
    [
      config,
      JSON.stringify({
        extends: '../../tsconfig.json',
        compilerOptions,
        include: [],
        files: [...modules.keys()],
      }),
    ],
  ])
  const api = new API({
    fs: {
      fileExists: (name) => (files.has(name) ? true : undefined),
      readFile: (name) => files.get(name),
    },
  })
  try {
    const program = api.updateSnapshot({ openProjects: [config] }).getProject(config)?.program
    return [...modules].flatMap(([path, text], k) => {
      if (!program?.getSourceFile(path)) throw new Error(`${path} is not in the program`)
      return [...program.getSyntacticDiagnostics(path), ...program.getSemanticDiagnostics(path)].map(
        (d) => `${pages[k]}, line ${text.slice(0, d.pos).split('\n').length} of its TypeScript: ${d.text}`,
      )
    })
  } finally {
    api.close()
  }
}
