import { describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { render } from '../../src/ast/diagnostics/render.ts'
import { resolve, scopeOf } from '../../src/ast/imports/linked-program.ts'
import { resolvePath } from '../../src/ast/imports/resolve-path.ts'
import { loadProgram, programOf } from '../../src/schedule/steps/language.ts'

type Texts = Readonly<Record<string, string>>
const reader = (texts: Texts) => async (path: string) => {
  const text = texts[path]
  if (text === undefined) throw new Error('no such file')
  return text
}
const load = (texts: Texts, entry = 'main.spt') => loadProgram(entry, reader(texts))
async function refusal(texts: Texts, entry?: string): Promise<string> {
  const error = await load(texts, entry).then(
    () => undefined,
    (e) => e,
  )
  if (!(error instanceof SptError)) throw new Error(`no refusal: ${error}`)
  return render(error.diagnostics, error.sources ?? [])
}
const id = (name: string) => ({ name, span: { source: 'main.spt', start: 0, end: 1 } })

const FORMAT = (name: string) =>
  `format ${name} over (i) { axis o = dense_fixed(i) map (i) -> (i) inverse (o) -> (o) }`

describe('imports', () => {
  test('a whole file, some names, other names; schedules come with their kernel', async () => {
    const p = await load({
      'main.spt': 'import "./lib/a.spt" import { g as h } from "lib/b.spt" kernel k() {} schedule k.one {}',
      'lib/a.spt': `import "../lib/./b.spt" ${FORMAT('f')} schedule g.fast {}`,
      'lib/b.spt':
        'kernel g() {} monoid m(x: f32) { identity 0 combine (a, b) = a.x + b.x } schedule g.slow {}',
    })
    expect([...p.files.keys()]).toEqual(['main.spt', 'lib/a.spt', 'lib/b.spt'])
    expect([...p.kernels.keys()]).toEqual(['k', 'h'])
    expect([...p.formats.keys()]).toEqual(['f'])
    expect([...p.monoids.keys()]).toEqual([])
    expect([...p.schedules.get('k')!.keys()]).toEqual(['one'])
    expect([...p.schedules.get('h')!.keys()]).toEqual(['slow', 'fast'])
    expect([...scopeOf(p, p.formats.get('f')!).monoids.keys()]).toEqual(['m'])
    expect([...p.scopes.get('lib/a.spt')!.schedules.get('g')!.keys()]).toEqual(['slow', 'fast'])
    expect(p.sources.get('lib/a.spt')!.text).toContain('format f')
  })

  test('cycles are allowed, and a file may import itself', async () => {
    const p = await load({
      'main.spt': 'import "a.spt" import "main.spt" kernel k() {}',
      'a.spt': 'import { k } from "main.spt" kernel a() {} schedule k.s {}',
    })
    expect([...p.kernels.keys()]).toEqual(['k', 'a'])
    expect([...p.schedules.get('k')!.keys()]).toEqual(['s'])
    expect((await load({ 'k/main.spt': 'import "../k/main.spt"' }, './k\\main.spt')).files.size).toBe(1)
  })

  test('own names and names imported by name shadow those of wholly imported files', async () => {
    const p = await load({
      'main.spt': 'import "a.spt" import "b.spt" import { y } from "b.spt" kernel x() {}',
      'a.spt': 'kernel x() {} kernel y() {} kernel z() {}',
      'b.spt': 'kernel x() {} kernel y() {} kernel z() {}',
    })
    expect(p.kernels.get('x')!.span.source).toBe('main.spt')
    expect(p.kernels.get('y')!.span.source).toBe('b.spt')
    expect(p.kernels.has('z')).toBe(false)
    expect(() => resolve(p, 'kernels', id('z'))).toThrow('several files declare `z`')
    expect(resolve(p, 'kernels', id('x')).name.name).toBe('x')
    expect(() => resolve(p, 'formats', id('x'))).toThrow('`x` is a kernel, not a format')
    expect(() => resolve(p, 'monoids', id('w'))).toThrow('there is no monoid `w`')
  })

  test('missing file', async () => {
    expect(await refusal({ 'main.spt': 'import "a.spt"' })).toMatchInlineSnapshot(`
      "error[import/unreadable]: cannot read \`a.spt\`: no such file
       --> main.spt:1:8
        |
      1 | import "a.spt"
        |        ^^^^^^^
        = hint: paths are relative to the importing file"
    `)
    expect(await refusal({}, 'main.spt')).toMatchInlineSnapshot(`
      "error[import/unreadable]: cannot read \`main.spt\`: no such file
        = hint: in a browser, paths are relative to the page; a \`read\` function defines how paths resolve"
    `)
  })

  test('missing name', async () => {
    expect(
      await refusal({
        'main.spt': 'import { formt, k } from "a.spt"',
        'a.spt': `import { k } from "b.spt" ${FORMAT('format')}`,
        'b.spt': 'kernel k() {}',
      }),
    ).toMatchInlineSnapshot(`
      "error[link/missing-name]: \`a.spt\` does not declare \`formt\`
       --> main.spt:1:10
        |
      1 | import { formt, k } from "a.spt"
        |          ^^^^^
        = did you mean: \`format\`?

      error[link/missing-name]: \`a.spt\` does not declare \`k\`
       --> main.spt:1:17
        |
      1 | import { formt, k } from "a.spt"
        |                 ^
        = known: \`format\`
        = hint: \`a.spt\` imports \`k\` from \`b.spt\`: import from that file"
    `)
  })

  test('duplicate names', async () => {
    expect(
      await refusal({
        'main.spt': 'import { k } from "a.spt"\nkernel k() {}\nkernel j() {}\nkernel j() {}',
        'a.spt': 'kernel k() {}\nschedule k.s {}\nschedule k.s {}',
      }),
    ).toMatchInlineSnapshot(`
      "error[link/duplicate-name]: \`j\` is declared twice
       --> main.spt:4:8
        |
      3 | kernel j() {}
        |        - first here
      4 | kernel j() {}
        |        ^
        = hint: rename one of them; an import can: \`import { x as y } from "…"\`

      error[link/duplicate-name]: \`k\` is declared twice
       --> main.spt:1:10
        |
      1 | import { k } from "a.spt"
        |          ^
      2 | kernel k() {}
        |        - first here
        = hint: rename one of them; an import can: \`import { x as y } from "…"\`

      error[link/duplicate-name]: schedule \`k.s\` is declared twice
       --> a.spt:3:12
        |
      2 | schedule k.s {}
        |            - first here
      3 | schedule k.s {}
        |            ^
        = hint: rename one of them; an import can: \`import { x as y } from "…"\`"
    `)
  })

  test('a schedule of no kernel', async () => {
    expect(
      await refusal({ 'main.spt': `kernel all() {}\nschedule al.s {}\n${FORMAT('f')}\nschedule f.s {}` }),
    ).toMatchInlineSnapshot(`
      "error[link/unknown-name]: there is no kernel \`al\`
       --> main.spt:2:10
        |
      2 | schedule al.s {}
        |          ^^
        = did you mean: \`all\`?
        = hint: declare the kernel in this file, or import the kernel

      error[link/unknown-name]: \`f\` is a format, not a kernel
       --> main.spt:4:10
        |
      4 | schedule f.s {}
        |          ^
        = known: \`all\`
        = hint: declare the kernel in this file, or import the kernel"
    `)
  })

  test('syntax errors of all files are reported together', async () => {
    const text = await refusal({
      'main.spt': 'import "a.spt" import "b.spt"',
      'a.spt': 'kernel',
      'b.spt': '}',
    })
    expect(text.match(/error\[/g)).toHaveLength(2)
  })

  test('an endless chain of imports', async () => {
    let read = 0
    const next = async (): Promise<string> => `import "${++read}.spt"`
    const long = await loadProgram('a.spt', next).catch((e) => e)
    expect(long).toBeInstanceOf(SptError)
    expect(long.message).toMatch(/^import\/too-many-files: .* would be file 1001 of the program$/)
    expect(read).toBe(1000)
    const all = { 'main.spt': Array.from({ length: 999 }, (_, k) => `import "${k}.spt"`).join('\n') }
    expect((await loadProgram('main.spt', async (p) => (p === 'main.spt' ? all[p] : ''))).files.size).toBe(
      1000,
    )
    all['main.spt'] += ' import "more.spt"'
    expect(await refusal(all)).toContain('import "more.spt"')
  })

  test('a single text', () => {
    expect([...programOf({ name: 'text', text: 'kernel k() {}' }).kernels.keys()]).toEqual(['k'])
    expect(() => programOf({ name: 'text', text: 'import "a.spt"' })).toThrow('cannot be imported')
  })

  test.each([
    ['a/b.spt', './c.spt', 'a/c.spt'],
    ['a/b.spt', '../c.spt', 'c.spt'],
    ['b.spt', '../c.spt', '../c.spt'],
    ['../b.spt', '../c.spt', '../../c.spt'],
    ['/a/b.spt', '../../c.spt', '/c.spt'],
    ['a/b.spt', '/c.spt', '/c.spt'],
    ['a/b.spt', 'std:c.spt', 'std:c.spt'],
    ['https://h.org/x/b.spt', '../c.spt', 'https://h.org/c.spt'],
    ['', '.', '.'],
    ['a.spt', './', '.'],
    ['a/b.spt', '..', '.'],
    ['.', './c.spt', 'c.spt'],
    ['C:\\k\\b.spt', 'c.spt', 'C:/k/c.spt'],
  ])('%s imports %s: %s', (from, path, expected) => {
    expect(resolvePath(from, path)).toBe(expected)
  })
})
