/** The page of the API: it runs, and names everything that is exported and everything that can be called. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { CompiledSchedule } from '../../src/api/compiled.ts'
import * as sparsetile from '../../src/node.ts'
import * as space from '../../src/search/function-space.ts'
import * as points from '../../src/search/points.ts'
import * as survey from '../../src/search/survey.ts'
import * as text from '../../src/search/text.ts'
import { blocksOf, renewed, run } from './chapter.ts'

const path = 'docs/api.md'
const page = readFileSync(path, 'utf8')
const blocks = blocksOf(page)

test('its blocks run, and print what it says', async () => {
  const { printed } = await run(blocks)
  if (process.env.UPDATE_GOLDEN) writeFileSync(path, renewed(page, printed))
  else expect(renewed(page, printed)).toBe(page)
}, 120_000)

/** Names that stand in code, between sentences. */
const prose = page.replace(/^```[\s\S]*?^```$/gm, '')
const named = new Set([...prose.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.match(/[A-Za-z_]\w*/g)))
const missing = (names: Iterable<string>): string[] => [...names].filter((n) => !named.has(n))

test('every export is in it, types as well', () => {
  const files = [
    'index',
    'node',
    ...['points', 'function-space', 'survey', 'types'].map((f) => `search/${f}`),
  ]
  const exported = files.map((f) => readFileSync(`src/${f}.ts`, 'utf8')).join('\n')
  const listed = exported.matchAll(/^export (?:type )?\{([^}]*)\}|^export (?:type|interface) (\w+)/gm)
  const types = [...listed].flatMap(([, list, one]) =>
    (list ?? one)!
      .split(',')
      .map((n) => n.trim().replace(/^type /, ''))
      .filter((n) => n !== ''),
  )
  expect(types).toContain('RunInputs')
  const modules: object[] = [sparsetile, points, space, survey, text, sparsetile.devices]
  const names = modules.flatMap((m) => Object.keys(m))
  expect(missing([...names, ...types])).toEqual([])
})

/** Of a class and those that it extends; `protected` is for the compiler only. */
const INTERNAL = new Set([
  'constructor',
  'surroundings',
  'onCoordinates',
  'onCoord',
  'onLoop',
  'current',
  'after',
  'with',
  'init',
])
function membersOf(type: { readonly prototype: object }): string[] {
  const out: string[] = []
  for (let p = type.prototype; p !== Object.prototype; p = Object.getPrototypeOf(p) as object)
    out.push(...Object.getOwnPropertyNames(p))
  return out.filter((n) => !INTERNAL.has(n))
}

const {
  Kernel,
  SptProgram,
  PreparedKernel,
  CompiledChoice,
  SptFormat,
  ConvertedTensor,
  Part,
  ResidentParts,
} = sparsetile
test.each([
  ['Kernel', Kernel],
  ['SptProgram', SptProgram],
  ['CompiledKernel', CompiledSchedule],
  ['CompiledChoice', CompiledChoice],
  ['PreparedKernel', PreparedKernel],
  ['SptFormat', SptFormat],
  ['ConvertedTensor', ConvertedTensor],
  ['Part', Part],
  ['ResidentParts', ResidentParts],
] as const)('everything that %s has is in it', (_, type) => {
  expect(missing(membersOf(type as unknown as { readonly prototype: object }))).toEqual([])
})
