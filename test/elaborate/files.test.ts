/** Programs of several files, and the kernels that are shipped. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { type Elaborated, elaborate } from '../../src/elaborate/index.ts'
import { print1 } from '../../src/ir/print/print-stage1.ts'
import { loadProgram } from '../../src/schedule/steps/language.ts'
import { verify1 } from '../../src/verifiers/stage1.ts'
import { kernelOf } from './support.ts'

const load = async (files: Record<string, string>): Promise<Elaborated> =>
  elaborate(
    await loadProgram('main.spt', async (path) => {
      const text = files[path]
      if (text === undefined) throw new Error(`no ${path}`)
      return text
    }),
  )

const LIBRARY = `
  monoid largest(v: f32, at: i32) {
    identity (-inf, -1)
    combine (a, b) = (max(a.v, b.v), select(a.v < b.v, b.at, a.at))
  }
  format rows over (i, j) {
    axis io = dense_fixed(i)
    axis jo = sparse_variable(io, j)
    map (i, j) -> (i, j)
    inverse (io, jo) -> (io, jo)
  }
  kernel argmax(m: size, n: size) {
    axis i = dense_fixed(m)
    axis j = sparse_variable(i, n)
    buffer A: f32[i, j] in
    buffer v: f32[i] out
    buffer p: i32[i] out
    iterate it [i, j] as SR { (v[i], p[i]) largest= (A[i, j], j) }
  }
  schedule argmax.base(n = 4, k) { A as rows(); split i by n * k }
  schedule argmax.fast() { use base(2, 3); bind i to block.x }`

test('importing a kernel imports its monoid, its schedules and their formats, under any name', async () => {
  const all = await load({
    'main.spt': 'import { argmax as best } from "./library.spt"',
    'library.spt': LIBRARY,
  })
  expect([...all.kernels.keys()]).toEqual(['best'])
  expect(all.kernels.get('best')!.name).toBe('best')
  expect([...all.formats.keys()]).toEqual([])
  const schedules = all.schedules.get('best')!
  expect([...schedules.keys()]).toEqual(['base', 'fast'])
  const [applied] = schedules.get('base')!.formats.values()
  expect(applied!.format.over).toEqual(['i', 'j'])
  expect(schedules.get('fast')!.uses.get('base')!.steps).toHaveLength(2)
})

test('a composition names the formats of its own file', async () => {
  const all = await load({
    'main.spt':
      'import { both } from "./library.spt" format rows over (i) { axis a = dense_fixed(i) map (i) -> (i) inverse (a) -> (a) }',
    'library.spt': `${LIBRARY} format both over (i, j) { part rows where (i < j) part rows }`,
  })
  const both = all.formats.get('both')!
  expect(both.kind === 'composition' && both.parts).toMatchObject([
    { kind: 'part', use: { format: { name: 'rows', over: ['i', 'j'] } } },
    { kind: 'part', where: null },
  ])
})

test('a name that two files declare is an error at its use', async () => {
  const monoid = (name: string) => `monoid ${name}(v: f32) { identity 0; combine (a, b) = a.v + b.v }`
  const files = {
    'main.spt': `import "./a.spt"
      import "./b.spt"
      kernel k(m: size) {
        axis i = dense_fixed(m)
        buffer x: f32[i] in
        buffer y: f32[] out
        iterate it [i] as R { y[] total= x[i] }
      }`,
    'a.spt': monoid('total'),
    'b.spt': monoid('total'),
  }
  await expect(load(files)).rejects.toThrow('check/ambiguous')
  await expect(load({ ...files, 'b.spt': monoid('other') })).resolves.toBeDefined()
})

test('errors of several files are all reported', async () => {
  const files = {
    'main.spt': 'import "./b.spt"\nkernel k(m: size) { axis i = dense_fixed(mm) }',
    'b.spt': 'kernel l(m: size) { axis i = dense_fixed(nn) }',
  }
  const error = await load(files).catch((e: unknown) => e)
  expect(error).toBeInstanceOf(SptError)
  expect((error as SptError).diagnostics.map((d) => d.span?.source).sort()).toEqual(['b.spt', 'main.spt'])
})

describe('packaged kernels', () => {
  const folder = new URL('../../kernels/', import.meta.url)
  const names = readdirSync(folder).filter((f) => f.endsWith('.spt'))
  test.each(names)('%s is accepted, verified, printed and read back', async (name) => {
    const all = elaborate(
      await loadProgram(name, async (path) => readFileSync(new URL(path, folder), 'utf8')),
    )
    for (const kernel of all.kernels.values()) {
      verify1(kernel)
      expect(print1(kernelOf(print1(kernel)))).toBe(print1(kernel))
    }
  })
})
