/** Programs that nobody vouches for: no texts for targets, no files outside of a root, none that never end. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { load as browserLoad } from '../../src/index.ts'
import { dense, type LoadOptions, load, readTensor, writeTensor } from '../../src/node.ts'
import { parseSharedProgram, shareProgram } from '../../src/search/studies/rebuild.ts'
import type { Instr } from '../../src/types.ts'
import { Folder, spt } from '../cli/support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

const kernel = (name: string): string => `
kernel ${name}(m: size) {
  axis i = dense_fixed(m)
  buffer A: f32[i] inout
  iterate t [i] as S { A[i] = 2.0 * A[i] }
}
`
const INSTR = `
memory held: f32[32] in register of 32 threads {
  element (lane, slot) -> (lane)
}
instr twice(x: f32[32] in held) by 32 threads {
  iterate t [l] as S { x[l] = 2.0 * x[l] }
  cuda \`$x[0] *= 2;\`
}
`
const OPAQUE = `
memory object: f32[8, 8] in register of 32 threads {
  wgsl \`thing\`
}
`
const codes = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work
  } catch (e) {
    if (e instanceof SptError) return e.diagnostics.map((d) => `${d.code}${d.span ? '@' : ''}`).join()
    throw e
  }
  return 'loaded'
}

describe('texts for targets', () => {
  const off = { instructions: false }
  test.each([
    ['an instruction', INSTR],
    ['an object of a target', OPAQUE],
  ])('%s', async (_, text) => {
    expect(await codes(load(text + kernel('k'), off))).toMatch(/^(check\/instruction-text@,?)+$/)
  })
  test.each([
    ['a file of the package', 'import "sparsetile/kernels/instructions/lanes.spt"'],
    ['one name of such a file', 'import { swizzled } from "sparsetile/kernels/instructions/copies.spt"'],
    ['a kernel that has a schedule with one', 'import "sparsetile/kernels/gemm-tf32.spt"'],
    ['the same', 'import "sparsetile/kernels/spmm.spt"'],
  ])('packaged instructions are not device code of the program: %s', async (_, text) => {
    expect(await codes(load(text + kernel('k'), off))).toBe('loaded')
    expect(await codes(load(text + kernel('k') + INSTR, off))).toMatch(/^check\/instruction-text@$/)
    const given = { ...off, read: async () => INSTR }
    expect(await codes(load(`${text}\nimport "mine.spt"${kernel('k')}`, given))).toBe(
      'check/instruction-text@',
    )
    // A browser has no files of the package to compare with.
    const read = (path: string) => readFile(path.replace('sparsetile/', ''), 'utf8')
    expect(await codes(browserLoad(text + kernel('k'), { ...off, read }))).toMatch(/instruction-text/)
  })
  test('a file with a packaged name is judged by its content and its imports', async () => {
    const name = 'sparsetile/kernels/instructions/copies.spt'
    const text = await readFile('kernels/instructions/copies.spt', 'utf8')
    expect(await codes(load(text, { ...off, name }))).toBe('loaded')
    for (const other of [
      { name, text: `${text}${INSTR}` },
      { name: 'sparsetile/kernels/other.spt', text },
      { name: 'sparsetile/test/copies.spt', text },
      { name: 'copies.spt', text },
    ])
      expect(await codes(load(other.text, { ...off, name: other.name }))).toMatch(/instruction-text/)
    const shared = shareProgram(await load('sparsetile/kernels/spmm.spt'))
    expect(await codes(parseSharedProgram(shared, false))).toBe('loaded')
    const [first, ...others] = shared.sources
    for (const at of others.keys()) {
      const changed = others.map((s, k) => (k === at ? { ...s, text: `${s.text}\n` } : s))
      const again = { ...shared, sources: [first!, ...changed] }
      expect(await codes(parseSharedProgram(again, false))).toMatch(/instruction-text/)
      expect(await codes(parseSharedProgram(again))).toBe('loaded')
    }
  })
  test('programs without device code', async () => {
    expect(await codes(load(`import "sparsetile/kernels/sddmm.spt"${kernel('k')}`, off))).toBe('loaded')
    const memory = 'memory tile: f32[8, 8] in shared { address (i, j) -> 8 * i + j }'
    expect(await codes(load(memory + kernel('k'), off))).toBe('loaded')
  })
  test('steps of other programs and of traces', async () => {
    const path = 'sparsetile/kernels/gemm-tf32.spt'
    const open = (await load(path)).kernel()
    const name = open.schedules.find((s) =>
      open.steps(s).some((x) => x.stage === 2 && x.step.kind === 'tensorize'),
    )!
    const { sources } = await load(path)
    const texts = new Map([...sources.values()].map((s) => [s.name, s.text]))
    const bare = [...texts].find(([n]) => n.endsWith('gemm-tf32.spt'))![1]
    const own = bare.slice(bare.indexOf('kernel '), bare.indexOf('\nschedule '))
    const closed = (await load(own, off)).kernel()
    const trace = JSON.parse(JSON.stringify(open.schedule(name)))
    expect(() => closed.replay(trace)).toThrow('check/instruction-text')
    expect(() => closed.apply(open.steps(name))).toThrow('check/instruction-text')
    expect((await load(own)).kernel().replay(trace).trace.length).toBeGreaterThan(0)

    // The program's own: those of its schedules, whatever file they are of, and nothing that is only called like them.
    const packaged = (await load(path, off)).kernel()
    expect(packaged.schedule(name).trace).toEqual(open.schedule(name).trace)
    expect(packaged.replay(trace).trace).toEqual(open.schedule(name).trace)
    expect(packaged.apply(open.steps(name)).trace).toEqual(open.schedule(name).trace)
    const through = (await load(`import { gemm_tf32 } from "${path}"`, off)).kernel()
    expect(through.replay(trace).trace).toEqual(open.schedule(name).trace)
    const at = trace.findIndex((s: { step?: object }) => s.step && 'instr' in s.step)
    const altered = (change: (instr: Instr) => unknown) => {
      const again = structuredClone(trace)
      again[at].step.instr = change(again[at].step.instr)
      return again
    }
    const changes: readonly ((i: Instr) => unknown)[] = [
      (i) => ({ ...i, texts: i.texts.map((t) => ({ ...t, pieces: [...t.pieces, ';'] })) }),
      (i) => ({ ...i, texts: i.texts.slice(1) }),
      (i) => ({ ...i, operands: i.operands.map((o) => ({ ...o, shape: o.shape.map((n) => 2 * n) })) }),
      (i) => ({ ...i, threads: i.threads + 1 }),
      (i) => ({ ...i, name: 'other' }),
      (i) => ({ ...i, name: `${i.name}(f16)` }),
    ]
    expect(packaged.replay(altered((i) => i)).trace.length).toBe(trace.length)
    for (const [k, change] of changes.entries())
      expect(() => packaged.replay(altered(change)), `change ${k}`).toThrow('check/instruction-text')
  })
  test('on the command line', async () => {
    const file = folder.file('instr.spt', INSTR + kernel('k'))
    for (const argv of [
      ['check', file, '--no-instr'],
      ['run', file, '--no-instr', '--size', 'm=3'],
      ['emit', file, '--no-instr', '--target', 'js'],
      ['show', file, '--no-instr'],
      ['explain', file, '--no-instr', '--size', 'm=3'],
    ]) {
      const { code, err } = await spt(argv)
      expect([code, err]).toEqual([1, expect.stringContaining('instr.spt:7:3')])
    }
    expect((await spt(['check', file])).code).toBe(0)
    const packaged = folder.file('packaged.spt', `import "sparsetile/kernels/spmm.spt"${kernel('k')}`)
    expect(await spt(['check', packaged, '--no-instr'])).toMatchObject({ code: 0, err: '' })
  })
})

describe('a root of imports', () => {
  const root = folder.at('root')
  mkdirSync(folder.at('root/inner'), { recursive: true })
  const inside = folder.file('root/in.spt', kernel('inside'))
  const outside = folder.file('out.spt', kernel('outside'))
  folder.file('root-beside/x.spt', kernel('beside'))
  folder.file('root/reaches.spt', `import "../out.spt"`)
  symlinkSync(outside, folder.at('root/link.spt'))
  symlinkSync(folder.path, folder.at('root/up'))
  symlinkSync(root, folder.at('other-name'))
  const cases: readonly (readonly [string, string])[] = [
    [inside, 'loaded'],
    [folder.at('root/inner/../in.spt'), 'loaded'],
    [folder.at('root/up/root/in.spt'), 'loaded'],
    [folder.at('other-name/in.spt'), 'loaded'],
    ['sparsetile/kernels/formats.spt', 'loaded'],
    [outside, 'import/outside-root@'],
    [folder.at('root/../out.spt'), 'import/outside-root@'],
    [folder.at('root-beside/x.spt'), 'import/outside-root@'],
    [folder.at('root/link.spt'), 'import/outside-root@'],
    [folder.at('root/up/out.spt'), 'import/outside-root@'],
    [folder.at('root/reaches.spt'), 'import/outside-root@'],
    [folder.at('nowhere.spt'), 'import/outside-root@'],
    ['/dev/zero', 'import/outside-root@'],
    [folder.at('root/nowhere.spt'), 'io/not-found@'],
    ['sparsetile/../../out.spt', 'io/not-found@'],
  ]
  test.each(cases)('%s', async (path, expected) => {
    const text = `import "${path}"${kernel('k')}`
    expect(await codes(load(text, { root }))).toBe(expected)
    const entry = folder.file('entry.spt', text)
    expect(await codes(load(entry, { root }))).toBe(expected)
    const { code, err } = await spt(['check', entry, '--import-root', root])
    expect([code, err]).toEqual(
      expected === 'loaded' ? [0, ''] : [1, expect.stringContaining(expected.slice(0, -1))],
    )
  })
  test('a reader is called only for paths inside the root', async () => {
    for (const given of [load, browserLoad]) {
      const asked: string[] = []
      const read = async (path: string): Promise<string> => {
        asked.push(path)
        return kernel('there')
      }
      const from = (path: string) =>
        codes(given(`import "${path}"`, { root: 'k', name: 'k/a.spt', read } satisfies LoadOptions))
      for (const path of ['../k2/x.spt', '%2e%2e/x.spt', '/x.spt', 'https://a/k/x.spt', '../k', '..\\x.spt'])
        expect(await from(path)).toBe('import/outside-root@')
      expect(asked).toEqual([])
      expect(await from('./b/../x.spt')).toBe('loaded')
      expect(asked).toEqual(['k/x.spt'])
    }
  })
  test('relative paths, of the root too', async () => {
    const named = relative('.', folder.at('main.spt'))
    const from = (path: string) => codes(load(`import "${path}"`, { name: named, root: relative('.', root) }))
    expect(await from('root/in.spt')).toBe('loaded')
    expect(await from('out.spt')).toBe('import/outside-root@')
  })
  test('a missing root', async () => {
    expect(await codes(load(kernel('k'), { root: folder.at('gone') }))).toBe('io/not-found')
  })
})

describe('files that are not programs', () => {
  test.runIf(process.platform === 'linux')('devices and pipes', async () => {
    const pipe = folder.at('pipe.spt')
    execFileSync('mkfifo', [pipe])
    for (const path of ['/dev/zero', '/dev/full', pipe]) {
      expect(await codes(load(folder.file('entry.spt', `import "${path}"`)))).toBe('io/not-a-file@')
      expect((await spt(['check', path])).err).toContain('io/not-a-file')
    }
  })
  test('oversized files are rejected by size, folders and binary files as such', async () => {
    const long = folder.file('long.spt', new Uint8Array(2_000_000).fill(32))
    expect(await codes(load(long))).toBe('parse/too-large')
    expect(await codes(load(folder.file('entry.spt', `import "${long}"`)))).toBe('parse/too-large@')
    expect(await codes(load(folder.file('binary.spt', 'kernel\0')))).toBe('io/not-text')
    mkdirSync(folder.at('folder.spt'))
    expect(await codes(load(folder.at('folder.spt')))).toBe('io/is-folder')
    expect(await codes(load(folder.file('empty.spt', '')))).toBe('loaded')
  })
})

test('a file: URL is treated as its path, also for imports and under a root', async () => {
  folder.file('urls/a.spt', `import "b.spt"${kernel('a')}`)
  folder.file('urls/b.spt', kernel('b'))
  const url = pathToFileURL(folder.at('urls/a.spt'))
  const root = folder.at('urls')
  for (const path of [url, url.href])
    expect([...(await load(path, { root })).kernels].sort()).toEqual(['a', 'b'])
  expect(await codes(load(url, { root: folder.at('urls2') }))).toMatch(/^io\/not-found/)
  const outside = `import "${pathToFileURL(folder.at('urls/b.spt')).href}"`
  mkdirSync(folder.at('urls3'))
  expect(await codes(load(outside, { root: folder.at('urls3') }))).toMatch(/^import\/outside-root/)
  const file = pathToFileURL(folder.at('urls/t.npy'))
  await writeTensor(file, dense([2], [1, 2]))
  expect([...(await readTensor(file.href)).values!]).toEqual([1, 2])
})
