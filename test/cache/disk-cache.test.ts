/** What is kept on disk is what would be computed, or it is not taken. */
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Source, sourceOf } from '../../src/ast/diagnostics/span.ts'
import {
  cacheFolder,
  cacheKey,
  decodeEntry,
  encodeEntry,
  makeFolder,
  makeFolderSync,
  openCache,
} from '../../src/cache/disk-cache.ts'
import { treesIn } from '../../src/io/package/program-trees.ts'
import { decodeTree, encodeTree } from '../../src/io/package/tree-encoding.ts'
import { parse } from '../../src/schedule/steps/language.ts'
import { sample } from '../support/cases.ts'
import { property } from '../support/property.ts'

let folder = ''
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sparsetile-cache-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test('a folder is created with its parents, or the failure is reported at once', async () => {
  for (const [k, make] of [makeFolder, async (path: string) => makeFolderSync(path)].entries()) {
    const path = join(folder, String(k), 'a', 'b')
    await make(path)
    await make(path)
    expect(await readdir(path)).toEqual([])
    if (process.platform === 'linux') await expect(make('/proc/none/a')).rejects.toThrow(/ENOENT/)
  }
})

/** Any that a program can hold, with halves of pairs. */
const text = fc.string({ unit: 'binary' })

describe('entries', () => {
  property([fc.uint8Array({ maxLength: 200 }), fc.nat(), fc.integer({ min: 1, max: 255 })])(
    'an entry is read back, and altered, truncated or foreign entries are ignored',
    (payload, at, flip) => {
      const file = encodeEntry('k', payload)
      expect([...decodeEntry('k', file)!]).toEqual([...payload])
      expect(decodeEntry('l', file)).toBeUndefined()
      const changed = Uint8Array.from(file)
      changed[at % file.length]! ^= flip
      expect(decodeEntry('k', changed)).toBeUndefined()
      expect(decodeEntry('k', file.subarray(0, at % file.length))).toBeUndefined()
    },
  )

  property([fc.array(text), fc.array(text)])('keys differ if the parts differ', (a, b) => {
    expect(cacheKey(a) === cacheKey(b)).toBe(JSON.stringify(a) === JSON.stringify(b))
  })

  test('stores atomically, rewrites corrupt entries, and survives an unusable folder', async () => {
    const inner = join(folder, 'a', 'b')
    const cache = openCache(inner, 'kernel')
    expect(await cache.load('k')).toBeUndefined()
    expect(await cache.store('k', Uint8Array.of(1, 2))).toBe(true)
    expect([...(await cache.load('k'))!]).toEqual([1, 2])
    const [file] = await readdir(inner)
    expect(await readdir(inner)).toEqual(['k.kernel'])
    await writeFile(join(inner, file!), (await readFile(join(inner, file!))).subarray(0, -1))
    expect(await cache.load('k')).toBeUndefined()
    await Promise.all(Array.from({ length: 8 }, () => cache.store('k', Uint8Array.of(3))))
    expect([...(await cache.load('k'))!]).toEqual([3])
    expect(await readdir(inner)).toEqual(['k.kernel'])
    const blocked = openCache(join(inner, 'k.kernel', 'below'), 'kernel')
    expect(await blocked.store('x', Uint8Array.of(1))).toBe(false)
    expect(await blocked.load('x')).toBeUndefined()
    // A file system that has the parent and no room for folders: what is missing never comes to be.
    expect(await openCache('/proc/none/below', 'kernel').store('x', Uint8Array.of(1))).toBe(false)
  })

  test('the oldest entries are deleted beyond the limit', async () => {
    const cache = openCache(folder, 'e', 3)
    await openCache(folder, 'other').store('k', Uint8Array.of(1))
    for (const [k, key] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      await cache.store(key, Uint8Array.of(k))
      await utimes(join(folder, `${key}.e`), k, k)
    }
    expect((await readdir(folder)).toSorted()).toEqual(['c.e', 'd.e', 'e.e', 'k.other'])
  })

  test('the folder: option, SPT_CACHE_DIR, XDG_CACHE_HOME, home', () => {
    expect(cacheFolder(undefined, {}, '/h')).toBe('/h/.cache/sparsetile')
    expect(cacheFolder(undefined, { XDG_CACHE_HOME: '/x' }, '/h')).toBe('/x/sparsetile')
    expect(cacheFolder(undefined, { XDG_CACHE_HOME: 'relative' }, '/h')).toBe('/h/.cache/sparsetile')
    expect(cacheFolder(undefined, { SPT_CACHE_DIR: '/s', XDG_CACHE_HOME: '/x' }, '/h')).toBe('/s')
    expect(cacheFolder('/o', { SPT_CACHE_DIR: '/s' }, '/h')).toBe('/o')
    for (const off of ['', 'off', 'OFF', '0', 'none']) {
      expect(cacheFolder(undefined, { SPT_CACHE_DIR: off }, '/h')).toBeUndefined()
    }
    expect(cacheFolder(false, { SPT_CACHE_DIR: '/s' }, '/h')).toBeUndefined()
  })
})

describe('trees', () => {
  const kernels = fileURLToPath(new URL('../../kernels/', import.meta.url))
  const files = readdirSync(kernels, { recursive: true, encoding: 'utf8' }).filter((f) => f.endsWith('.spt'))
  const read = (file: string) => ({ name: file, text: readFileSync(join(kernels, file), 'utf8') })

  test.each(sample(files, 30))('%s equals its parsed source', (file) => {
    const source = read(file)
    const tree = parse(source)
    expect(decodeTree(encodeTree(tree), source)).toStrictEqual(tree)
  })

  test.each(sample(files, 4))('%s under another name', (file) => {
    const source = read(file)
    const other = { ...source, name: '$& "0"' }
    expect(decodeTree(encodeTree(parse(source)), other)).toStrictEqual(parse(other))
  })

  test('values that JSON cannot represent are kept, and cannot be forged by a program', () => {
    const monoid = 'monoid m(v: f32) { identity (nan); combine (a, b) = a.v + inf + nan + 1 }'
    const source = { name: 'a.spt', text: `// "source":0 "value":-1 "value":null\n${monoid}\n` }
    const other = { ...source, name: 'b.spt' }
    expect(decodeTree(encodeTree(parse(source)), other)).toStrictEqual(parse(other))
  })

  test('cached locations know their source, except for packaged files', () => {
    const source = read('spmv.spt')
    const spansOf = (s: Source) => decodeTree(encodeTree(parse(s)), s).decls.map((d) => d.span)
    const texts = (s: Source) => new Set(spansOf(s).map((span) => sourceOf(span)?.text))
    expect(texts(source)).toEqual(new Set([source.text]))
    expect(texts({ ...source, name: 'sparsetile/kernels/spmv.spt' })).toEqual(new Set([undefined]))
  })

  test('entries of another build, another source or a broken file are ignored', async () => {
    const cache = openCache(folder, 'tree')
    const [one, other] = [read('spmm.spt'), read('spmv.spt')]
    const trees = treesIn([openCache(join(folder, 'shipped'), 'tree'), cache], '1')
    await trees.store(one, parse(one))
    await trees.store(other, parse(other))
    expect(await trees.load(one)).toStrictEqual(parse(one))
    expect(await treesIn([cache], '2').load(one)).toBeUndefined()
    expect(await trees.load({ ...one, text: `${one.text} ` })).toBeUndefined()
    const names = await readdir(folder)
    const good = await Promise.all(names.map((n) => readFile(join(folder, n))))
    expect(good.length).toBe(2)
    const broken = [
      [good[1]!, good[0]!],
      good.map((b) => b.subarray(0, -1)),
      good.map((b) => Buffer.concat([b, b])),
      good.map(() => Buffer.alloc(0)),
    ]
    for (const contents of broken) {
      for (const [k, name] of names.entries()) await writeFile(join(folder, name), contents[k]!)
      expect([await trees.load(one), await trees.load(other)]).toEqual([undefined, undefined])
    }
  })
})
