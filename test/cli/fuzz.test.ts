/** Whatever is typed, and whatever the files hold: an exit code that has a meaning, and never a bug. */

import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { runs } from '../support/cases.ts'
import { FILES } from './cases.ts'
import { Folder, MATRIX, type Outcome, PROGRAM, spt } from './support.ts'

const folder = new Folder()
for (const [name, content] of Object.entries(FILES)) folder.file(name, content)
afterAll(() => folder.remove())

function expectHandled(r: Outcome): void {
  expect(r.err).not.toContain('compiler/internal')
  expect([0, 1, 2]).toContain(r.code)
  if (r.code !== 0) expect((r.err + r.out).trim()).not.toBe('')
}

const words = [
  ...['run', 'check', 'show', 'emit', 'fmt', 'help', 'doctr', '-', '--', '---', '', '-1', '__proto__', 'NaN'],
  ...[
    '--kernel',
    '--schedule',
    '--bind',
    '--size',
    '--capability',
    '--processors',
    '--feature',
    '--device',
    '--verify',
    '--repeat',
    '--seed',
    '--json',
  ],
  ...['--stage', '--after', '--target', '--check', '--help', '-h', '-v', '--version', '--out', '--toString'],
  ...[
    'mul',
    'gpu',
    'gpu(2)',
    'gpu(,)',
    'blocks(2)',
    '1',
    '2',
    '3',
    'cpu',
    'js',
    'wgsl',
    'cuda',
    'common-subexpressions',
  ],
  ...[
    'd=2',
    'alpha=1',
    'alpha=inf',
    'm=3',
    'n=4',
    'd=-1',
    'd=1e9',
    '__proto__=1',
    'constructor=1',
    '=',
    'A=',
  ],
  ...['mul.spt', 'several.spt', 'threads.spt', 'empty.spt', 'nothing.spt', 'a.mtx'].map((f) => folder.at(f)),
  ...['A', 'B', 'j', 'jd', 'C', 'i'].map((n) => `${n}=${folder.at('a.mtx')}`),
  `C=${folder.at('c.npy')}`,
]
const token = fc.oneof(
  { weight: 12, arbitrary: fc.constantFrom(...words) },
  { weight: 1, arbitrary: fc.string() },
)

test('any arguments', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 9 }), async (argv) => {
      expectHandled(await spt(argv, { stdin: 'kernel' }))
    }),
    { numRuns: runs(50) },
  )
})

const run = ['run', folder.at('mul.spt'), '--size', 'd=2', '--size', 'alpha=1', '--size', 'n=4']

test('any arguments of a command that runs', async () => {
  folder.file('mul.spt', PROGRAM)
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 5 }), async (more) => {
      expectHandled(await spt([...run, '--bind', `A=${folder.at('a.mtx')}`, ...more]))
    }),
    { numRuns: runs(40) },
  )
})

/** Some characters gone, doubled, replaced or moved. */
const mutations = fc.array(
  fc.record({
    at: fc.nat(1000),
    length: fc.nat(12),
    insert: fc.oneof(
      fc.constant(''),
      fc.string({ maxLength: 4 }),
      fc.constantFrom('0', '-1', '9999999999', '1e400', 'nan', '(', '}', '\n', '%', 'i', 'size'),
    ),
  }),
  { minLength: 1, maxLength: 3 },
)
type Mutations = typeof mutations extends fc.Arbitrary<infer T> ? T : never
const mutated = (text: string, list: Mutations): string =>
  list.reduce((t, m) => {
    const at = m.at % (t.length + 1)
    return t.slice(0, at) + m.insert + t.slice(at + m.length)
  }, text)

test('any program', async () => {
  await fc.assert(
    fc.asyncProperty(
      mutations,
      fc.constantFrom(['check'], ['show', '--stage', '3'], ['emit', '--target', 'cuda'], ['fmt']),
      async (m, [command, ...args]) => {
        const path = folder.file('fuzz.spt', mutated(PROGRAM, m))
        expectHandled(await spt([command!, path, ...args]))
      },
    ),
    { numRuns: runs(50) },
  )
})

test('any matrix', async () => {
  folder.file('mul.spt', PROGRAM)
  await fc.assert(
    fc.asyncProperty(mutations, async (m) => {
      const path = folder.file('fuzz.mtx', mutated(MATRIX, m))
      expectHandled(await spt([...run, '--bind', `A=${path}`, '--verify', '--repeat', '1']))
    }),
    { numRuns: runs(30) },
  )
})

test.each(['graph.npz', 'two.safetensors'])('any archive: %s', async (archive) => {
  folder.file('mul.spt', PROGRAM)
  const whole = readFileSync(folder.at(archive))
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { minLength: 1, maxLength: 6 }),
      fc.nat(whole.length),
      async (changes, cut) => {
        const bytes = Uint8Array.from(whole)
        for (const [at, byte] of changes) bytes[at] = byte
        const path = folder.file(`fuzz-${archive}`, cut % 3 === 0 ? bytes.slice(0, cut) : bytes)
        const address = archive.endsWith('.npz') ? '' : '#W'
        expectHandled(await spt([...run, '--bind', `A=${path}${address}`, '--repeat', '1']))
      },
    ),
    { numRuns: runs(30) },
  )
})
