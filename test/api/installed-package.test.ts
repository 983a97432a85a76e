/** Files of the package by name, handles that stay in their thread, and what `doctor` looks for. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { load as loadAnywhere } from '../../src/index.ts'
import { oldNodeMessage } from '../../src/io/package/package.ts'
import { coords, devices, load, readTensor, SptError } from '../../src/node.ts'
import { findArchive } from '../../src/runtime/webgpu/swiftshader.ts'
import { Folder, spt } from '../cli/support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const SPMM = 'sparsetile/kernels/spmm.spt'
const IMPORTS = `import "sparsetile/kernels/formats.spt" import { spmm } from "${SPMM}"`
const refusal = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'accepted',
    (e: unknown) => (e instanceof SptError ? e.message : `no refusal: ${e}`),
  )

test('a path, and imports of a file or of a source, may name the package', async () => {
  const path = folder.file('sub/mine.spt', IMPORTS)
  for (const program of [await load(SPMM), await load(path), await load(IMPORTS)])
    expect(program.kernels).toContain('spmm')
  expect((await load(path)).formats.has('csr')).toBe(true)
  // A file of the package keeps that name, so that two ways to it are one file.
  expect([...(await load(path)).sources.keys()]).toContain('sparsetile/kernels/formats.spt')
  expect((await readTensor('sparsetile/data/cora.mtx')).shape).toEqual([2708, 2708])
})

test('in Node a reader is not called for packaged files; in a browser it is called for every file', async () => {
  const asked: string[] = []
  const read = async (path: string): Promise<string> => {
    asked.push(path)
    return path === 'a.spt' ? 'import "sub/b.spt" kernel a() {}' : path === 'sub/b.spt' ? 'kernel b() {}' : ''
  }
  const text = 'import "./a.spt" import "sparsetile/kernels/spmv.spt"'
  await load(text, { read })
  expect(asked).toEqual(['a.spt', 'sub/b.spt'])
  asked.length = 0
  await loadAnywhere(text, { read })
  expect(asked).toEqual(['a.spt', 'sparsetile/kernels/spmv.spt', 'sub/b.spt'])
  expect(await refusal(loadAnywhere(IMPORTS))).toMatch(
    /^import\/unreadable: .* is not a program of the package/,
  )
  // Without a build there are no modules of programs.
  expect(await refusal(loadAnywhere(SPMM))).toMatch(/^import\/unreadable: .* is not a program of the package/)
  expect(await refusal(load('import "./a.spt"'))).toMatch(/^import\/unreadable: .* without a path/)
})

test('a path that climbs stays in the package', async () => {
  expect(await refusal(load('sparsetile/../../etc/passwd.spt'))).toContain("'sparsetile/etc/passwd.spt'")
  expect(await refusal(readTensor('sparsetile/../../secret.mtx'))).toMatch(/^io\/not-found/)
})

test('the command line takes paths into the package', async () => {
  const { code, out, err } = await spt(
    ['run', SPMM, '--bind', 'A=sparsetile/data/cora.mtx', '--size', 'd=2', '--verify'],
    {},
  )
  expect({ code, err }).toEqual({ code: 0, err: '' })
  expect(out).toContain('agrees with the reference')
  expect((await spt(['run', SPMM, '--bind', 'A=sparsetile/data/cra.mtx'])).err).toContain('`cora.mtx`')
})

test('a copy of a handle is rejected with what to send instead, and that works', async () => {
  const program = await load(SPMM)
  const kernel = program.kernel('spmm').split('i', 8)
  const compiled = await kernel.build(await devices.cpu())
  const prepared = await compiled.bind({ A: coords([1, 1], [[0], [0]], [1]), d: 1 }, { seed: 0 })
  const format = (await load('sparsetile/kernels/formats.spt')).format('csr')
  for (const handle of [program, kernel, prepared, format, format.convert(coords([1, 1], [[0], [0]], [1]))])
    expect(() => structuredClone(handle)).toThrow('kernel.toJSON()')
  const sent = structuredClone({ text: readFileSync('kernels/spmm.spt', 'utf8'), steps: kernel.toJSON() })
  const there = (await load(sent.text, { name: SPMM })).kernel('spmm').replay(sent.steps)
  expect(there.show(2)).toBe(kernel.show(2))
  expect(JSON.parse(JSON.stringify(kernel))).toEqual(sent.steps)
})

test('the package of the software driver is found by its folder, and defects are reported', () => {
  const made = (name: string, archive: string | null): string => {
    const root = folder.at(name)
    mkdirSync(join(root, 'bin/x64'), { recursive: true })
    writeFileSync(join(root, 'package.json'), `{ "version": "1.2.3", "main": "./nowhere/else.cjs" }`)
    if (archive) writeFileSync(join(root, archive), '')
    return root
  }
  const plain = made('plain', 'bin/swiftshader.tar.br')
  const bare = made('bare', null)
  expect(findArchive([folder.at('nowhere'), bare, plain])).toEqual({
    path: join(plain, 'bin/swiftshader.tar.br'),
    version: '1.2.3',
  })
  expect(findArchive([made('other', 'bin/x64/swiftshader.tar.br')])).toMatchObject({ version: '1.2.3' })
  expect(findArchive([bare])).toMatchObject({
    reason: expect.stringMatching(/is installed \(1\.2\.3 in .*bare\), but has no bin\/swiftshader\.tar\.br/),
    hint: expect.stringMatching(/npm i @sparticuz\/chromium@\d+/),
  })
  expect(findArchive([])).toMatchObject({
    reason: expect.stringContaining('is not installed'),
    hint: expect.stringMatching(/^npm i @sparticuz\/chromium@[\d.]+$/),
  })
})

test('an old version of Node is reported', () => {
  expect(oldNodeMessage('18.20.1')).toMatch(/this is Node 18\.20\.1, and sparsetile needs 20\.19/)
  expect(oldNodeMessage('20.18.3')).not.toBeNull()
  for (const fine of ['20.19.0', '20.20.2', '22.1.0', '24.0.0']) expect(oldNodeMessage(fine)).toBeNull()
})
