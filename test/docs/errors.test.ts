/** The error index has a section for each code of `src/`, and its examples yield their codes. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parseProgram } from '../../src/api/programs/program.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { readPackaged } from '../../src/ast/imports/resolve-path.ts'
import { errorPage, INDEX } from '../../src/cli/commands/explain.ts'
import * as onDevice from '../../src/device.ts'
import { packagedFormatsNamed } from '../../src/io/package/package.ts'
import * as node from '../../src/node.ts'
import * as notebook from '../../src/notebook.ts'
import * as pruning from '../../src/prune.ts'
import * as searching from '../../src/search.ts'
import { spt } from '../cli/support.ts'

readPackaged(packagedFormatsNamed)

const pages = readdirSync(INDEX).map((name) => readFileSync(INDEX + name, 'utf8'))
const headings = pages.flatMap((page) => [...page.matchAll(/^## (.*)$/gm)].map((m) => m[1]!))
const areas = new Set(headings.map((code) => code.split('/')[0]!))
/** The folders that the package is made from. */
const source = ['src', 'bench/families']
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((f) => `${folder}/${f}`),
  )
  .filter((f) => f.endsWith('.ts'))
  .map((f) => readFileSync(f, 'utf8').replace(/\/\*[\s\S]*?\*\/|^\s*\/\/.*$/gm, ''))
  .join('\n')
const literals = [
  ...source.matchAll(
    /(?<!from |import\()['"`]([a-z]+\/[a-z0-9-]+)['"`]|(?:error|warning)\[([a-z]+\/[a-z0-9-]+)\]/g,
  ),
].map((m) => (m[1] ?? m[2])!)
const isMentioned = new Set(literals)
/** Codes of which a part is computed: `check/unknown-${what}`. */
const computed = [
  ...source.matchAll(/(?:code: |(?:report|fail(?:As|At|With)|refuse)\(\s*)`([a-z]+\/[a-z-]*)\$\{/g),
].map((m) => m[1]!)
/** Literals of the form of a code that are something else. */
const OTHER = ['search/tune', 'image/png', 'bench/strategies']

test('codes and sections correspond one to one', () => {
  expect(headings.filter((code, k) => headings.indexOf(code) !== k)).toEqual([])
  const known = new Set(headings)
  expect(literals.filter((c) => areas.has(c.split('/')[0]!) && !known.has(c) && !OTHER.includes(c))).toEqual(
    [],
  )
  const codes = [
    ...source.matchAll(/(?:\bcode: |\b(?:fail(?:As|At|With)|refuse)\(\s*(?:kernel, )?)'([^']+\/[^']+)'/g),
  ].map((m) => m[1]!)
  expect(codes.filter((c) => !known.has(c))).toEqual([])
  expect(headings.filter((c) => !isMentioned.has(c) && !computed.some((head) => c.startsWith(head)))).toEqual(
    [],
  )
})

test('no page exceeds 250 lines', () => {
  for (const page of pages) expect(page.split('\n').length).toBeLessThanOrEqual(251)
})

test('each section has an example, or the reason for its absence', () => {
  const sections = pages.flatMap((page) => [...errorPage(page).sections])
  const without = sections.filter(([, text]) => !/^```/m.test(text) && !/^No example: .+\.$/m.test(text))
  expect(without.map(([code]) => code)).toEqual([])
})

/** The code of the first error of a program: in its declarations, its formats, or the schedules that need no arguments. */
function codeOf(text: string): string | undefined {
  try {
    const program = parseProgram(text)
    for (const name of program.kernels) {
      const kernel = program.kernel(name)
      for (const schedule of kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required)))
        void kernel.schedule(schedule).compilation.plan
    }
    return undefined
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
}

const SCOPE: Readonly<Record<string, unknown>> = {
  ...node,
  ...onDevice,
  ...notebook,
  ...pruning,
  ...searching,
}
const AsyncFunction = (async () => {}).constructor as new (
  ...args: string[]
) => (...args: unknown[]) => Promise<void>

/** The code of the first error of calls in TypeScript (without types), with the exports of the package in scope. */
async function codeOfCalls(text: string): Promise<string | undefined> {
  try {
    await new AsyncFunction(...Object.keys(SCOPE), `'use strict'\n{${text}}`)(...Object.values(SCOPE))
    return undefined
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics[0]!.code
    throw e
  }
}

interface Example {
  readonly code: string
  readonly wrong: string
  readonly right: string
  readonly calls: boolean
}

/** Differences of the index: lines with `-` are the mistake, lines with `+` replace them. */
const examples = pages.flatMap((page): Example[] => {
  const { shared, sections } = errorPage(page)
  const common = shared.replace(/^```.*\n?/gm, '')
  const version = (before: string, lines: string, other: string) =>
    before + lines.replace(new RegExp(`^[${other}].*\n`, 'gm'), '').replace(/^./gm, '')
  const ofPage = shared.startsWith('```ts') ? 'ts' : 'spt'
  return [...sections].flatMap(([code, section]) =>
    [...section.matchAll(/^```diff(?: (ts))?\n(.*?)^```$/gms)].map(([, language = ofPage, lines]) => {
      const before = language === ofPage ? common : ''
      const [wrong, right] = [version(before, lines!, '+'), version(before, lines!, '-')]
      return { code, wrong, right, calls: language === 'ts' }
    }),
  )
})
const named = (calls: boolean) => examples.filter((e) => e.calls === calls).map((e) => [e.code, e] as const)

describe('an example of the error index', () => {
  test.each(named(false))('%s', (code, { wrong, right }) => {
    expect(codeOf(wrong)).toBe(code)
    expect(codeOf(right)).toBeUndefined()
  })
  test.each(named(true))('%s (calls)', async (code, { wrong, right }) => {
    expect(await codeOfCalls(wrong)).toBe(code)
    expect(await codeOfCalls(right)).toBeUndefined()
  })
})

test('each command of the index is a test case of the command line, with its message', () => {
  const tested = readFileSync('test/cli/errors.golden', 'utf8')
    .replaceAll('FOLDER/', '')
    .replace(/^exit \d\n/gm, '')
  const shown = pages.flatMap((page) => [...page.matchAll(/^```console\n(.*?)^```$/gms)].map((m) => m[1]!))
  expect(shown.filter((text) => !tested.includes(text))).toEqual([])
})

test('spt explain prints the section of a code, and suggests similar codes', async () => {
  const { code, out } = await spt(['explain', 'error[check/unknown-name]'])
  expect([code, out.startsWith('## check/unknown-name\n')]).toEqual([0, true])
  const near = await spt(['explain', 'check/unknown-nam'])
  expect([near.code, near.err]).toEqual([2, expect.stringContaining('did you mean: `check/unknown-name`?')])
  expect((await spt(['explain', 'sched/not-nested'])).err).toContain('spt explain schedule/not-nested')
})
