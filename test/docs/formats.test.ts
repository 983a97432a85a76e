/**
 * The chapter on formats: every block is a file, is run, or is what a run printed; pictures are drawn by runs.
 * `UPDATE_GOLDEN=1 npx vitest run test/docs` writes what is printed and drawn anew; read the difference.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { API } from 'typescript/unstable/sync'
import { beforeAll, describe, expect, test } from 'vitest'
import { blocksOf, moduleOf, picturesOf, renewed, run } from './chapter.ts'

const PATH = resolve('docs/formats.md')
const page = readFileSync(PATH, 'utf8')
const blocks = blocksOf(page)
const pictures = picturesOf(page)
const outputs = blocks.filter((b) => b.kind === 'output')

describe('the chapter on formats', () => {
  let printed: ReadonlyMap<string, string> = new Map()
  let made: ReadonlyMap<string, string> = new Map()
  beforeAll(async () => {
    ;({ printed, made } = await run(blocks, pictures))
    if (!process.env.UPDATE_GOLDEN) return
    writeFileSync(PATH, renewed(page, printed))
    for (const [name, text] of made) writeFileSync(join(dirname(PATH), name), text)
  }, 120_000)

  test('every block takes part', () => {
    expect(blocks.filter((b) => b.kind === 'other').map((b) => `line ${b.line}`)).toEqual([])
    expect(blocks.length).toBe([...page.matchAll(/^```/gm)].length / 2)
    expect(outputs.length).toBeGreaterThan(15)
  })

  test('what is printed is shown', () => {
    const shown = outputs.map((b) => b.name)
    const made = [...printed].filter(([, text]) => text !== '').map(([name]) => name)
    expect(new Set(shown).size).toBe(shown.length)
    expect(shown.toSorted()).toEqual(made.toSorted())
  })

  test.each(outputs.map((b) => [b.name, b] as const))('%s', (name, block) => {
    if (process.env.UPDATE_GOLDEN) return
    expect(printed.get(name), `line ${block.line}`).toBe(block.text)
  })

  test.each(pictures)('%s', (name) => {
    expect(made.get(name)).toBe(readFileSync(join(dirname(PATH), name), 'utf8'))
  })

  test('the TypeScript has the right types', () => {
    expect(complaints(moduleOf(blocks))).toEqual([])
  }, 120_000)
})

/** What the type checker says of a module that imports the package by its name. */
function complaints(text: string): string[] {
  const page = resolve('test/docs/page.ts')
  const config = resolve('test/docs/page.json')
  const compilerOptions = {
    noEmit: true,
    // As in a program of a reader's; this repository is stricter.
    noUncheckedIndexedAccess: false,
    exactOptionalPropertyTypes: false,
    paths: { 'sparsetile/node': ['../../src/node.ts'] },
  }
  const made = new Map([
    [page, text],
    [config, JSON.stringify({ extends: '../../tsconfig.json', compilerOptions, include: [], files: [page] })],
  ])
  const api = new API({
    fs: {
      fileExists: (name) => (made.has(name) ? true : undefined),
      readFile: (name) => made.get(name),
    },
  })
  try {
    const program = api.updateSnapshot({ openProjects: [config] }).getProject(config)?.program
    if (!program?.getSourceFile(page)) throw new Error('no page')
    return [...program.getSyntacticDiagnostics(page), ...program.getSemanticDiagnostics(page)].map(
      (d) => `${text.slice(0, d.pos).split('\n').length}: ${d.text}`,
    )
  } finally {
    api.close()
  }
}
