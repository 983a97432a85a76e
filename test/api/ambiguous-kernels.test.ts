/** Kernels that several imported files declare: they are said to be that, and not to be missing. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { load } from '../../src/node.ts'
import { refusal } from '../support/refusal.ts'

let folder = ''
const KERNEL = (name: string): string =>
  `kernel ${name}(n: size) { axis i = dense_fixed(n) buffer Y: f32[i] out iterate s [i] as S { Y[i] = 1 } }\n`
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spt-ambiguous-'))
  await writeFile(join(folder, 'a.spt'), KERNEL('k'))
  await writeFile(join(folder, 'b.spt'), KERNEL('k'))
  await writeFile(join(folder, 'both.spt'), 'import "./a.spt"\nimport "./b.spt"\n')
  await writeFile(join(folder, 'more.spt'), `import "./a.spt"\nimport "./b.spt"\n${KERNEL('own')}`)
})
afterAll(() => rm(folder, { recursive: true }))

test.each([
  ['both.spt', undefined, 'api/ambiguous-kernel'],
  ['both.spt', 'k', 'api/ambiguous-kernel'],
  ['both.spt', 'other', 'api/unknown-kernel'],
  ['more.spt', 'k', 'api/ambiguous-kernel'],
  ['more.spt', 'other', 'api/unknown-kernel'],
] as const)('%s, kernel %s: %s', async (file, name, code) => {
  const program = await load(join(folder, file))
  const said = refusal(() => program.kernel(name))
  expect(said.code).toBe(code)
  if (code !== 'api/ambiguous-kernel') return
  expect(said.message).toBe('kernel k is declared by 2 of the files that are imported')
  expect([said.span, ...said.labels!.map((l) => l.span)].map((s) => s!.source.slice(-5))).toEqual([
    'a.spt',
    'b.spt',
  ])
})

test('a kernel of the importing file shadows imported ones', async () => {
  expect((await load(join(folder, 'more.spt'))).kernel().name).toBe('own')
})
