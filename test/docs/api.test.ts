/** The pages of the API name every export, type and method. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { Binding } from '../../src/api/built/binding.ts'
import { Built } from '../../src/api/built/built.ts'
import { ConvertedTensor } from '../../src/api/inputs/converted-tensor.ts'
import { SptFormat } from '../../src/api/inputs/format-values.ts'
import { Kernel } from '../../src/api/kernels/kernel.ts'
import { Part } from '../../src/api/kernels/nests.ts'
import { SptProgram } from '../../src/api/programs/program.ts'
import * as onDevice from '../../src/device.ts'
import * as sparsetile from '../../src/node.ts'
import * as space from '../../src/search/spaces/function-space.ts'
import * as points from '../../src/search/spaces/points.ts'
import * as survey from '../../src/search/spaces/survey.ts'
import * as text from '../../src/search/text.ts'
import { namedIn, pagesIn, read } from './site.ts'

const pages = [...pagesIn('docs/reference/api'), ...pagesIn('docs/how-to')]
const named = namedIn(pages.map(read).join('\n'))
const missing = (names: Iterable<string>): string[] => [...names].filter((n) => !named.has(n))

test('every export, including types, is documented', () => {
  const files = [
    'index',
    'node',
    'device',
    'types',
    ...['spaces/points', 'spaces/function-space', 'spaces/survey', 'types'].map((f) => `search/${f}`),
  ]
  const exported = files.map((f) => readFileSync(`src/${f}.ts`, 'utf8')).join('\n')
  const listed = exported.matchAll(/^export (?:type )?\{([^}]*)\}|^export (?:type|interface) (\w+)/gm)
  const types = [...listed].flatMap(([, list, one]) =>
    (list ?? one)!
      .split(',')
      .map((n) => n.trim().replace(/^type |^\w+ as /g, ''))
      .filter((n) => n !== ''),
  )
  expect(types).toContain('BindOptions')
  const modules: object[] = [sparsetile, onDevice, points, space, survey, text, sparsetile.devices]
  const names = modules.flatMap((m) => Object.keys(m))
  expect(missing([...names, ...types])).toEqual([])
})

/** Of a class and those that it extends; `protected` is for the compiler only. */
const INTERNAL = new Set([
  'constructor',
  'bindOnHost',
  'compileAll',
  'dispatching',
  'open',
  'upload',
  'invoke',
  'call',
  'apply',
  'repeated',
  'code',
  'surroundings',
  'onCoordinates',
  'onCoord',
  'onLoop',
  'current',
  'after',
  'with',
  'compiledAs',
  'init',
])
function membersOf(type: { readonly prototype: object }): string[] {
  const out: string[] = []
  for (let p = type.prototype; p !== Object.prototype; p = Object.getPrototypeOf(p) as object)
    out.push(...Object.getOwnPropertyNames(p))
  // Names with `_` are those of steps in `.spt`, which report the name in TypeScript.
  return out.filter((n) => !INTERNAL.has(n) && !/[a-z]_/.test(n))
}

const { ResidentParts } = onDevice
test.each([
  ['Kernel', Kernel],
  ['SptProgram', SptProgram],
  ['Built', Built],
  ['Binding', Binding],
  ['SptFormat', SptFormat],
  ['ConvertedTensor', ConvertedTensor],
  ['Part', Part],
  ['ResidentParts', ResidentParts],
] as const)('every member of %s is on a page', (_, type) => {
  expect(missing(membersOf(type as unknown as { readonly prototype: object }))).toEqual([])
})
