/** A script runs the same whatever code the cache has for it, and code that is not its own is never run. */
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { encodeEntry, openCache } from '../../src/cache/disk-cache.ts'
import { runScript } from '../../src/cli/script.ts'
import { Folder } from './support.ts'

const folder = new Folder()
const cacheAt = folder.at('cache')
const cache = openCache(cacheAt, 'code')
beforeEach(() => rmSync(cacheAt, { recursive: true, force: true }))
afterAll(() => folder.remove())

/** Of one length whatever the answer is: V8 by itself takes the code of one for that of another. */
const script = (answer: string): string => `exports.answer = () => { return '${answer}' }`

interface Exports {
  answer(): string
}

/** Runs the script, and keeps its code. */
async function answerOf(text: string, name = 'script.cjs'): Promise<string> {
  const { exports, storeCode: keep } = await runScript<Exports>(folder.file(name, text), 'test', cache)
  const answer = exports.answer()
  await keep()
  return answer
}

const entries = (): string[] => readdirSync(cacheAt).map((f) => join(cacheAt, f))

/** The one entry's key and what it has. */
function kept() {
  const [path] = entries() as [string]
  const key = /([^/\\]+)\.code$/.exec(path)![1]!
  return { path, key, load: async () => Buffer.from((await cache.load(key))!) }
}

test('code is cached once per source, independent of its path', async () => {
  expect(await answerOf(script('one'))).toBe('one')
  const { path } = kept()
  expect(await answerOf(script('one'), 'elsewhere.cjs')).toBe('one')
  expect(entries()).toEqual([path])
})

test('the cached code runs: the key alone identifies a source', async () => {
  await answerOf(script('one'))
  const load = kept().load
  const { exports } = await runScript<Exports>(folder.file('script.cjs', script('six')), 'test', {
    ...cache,
    load,
  })
  expect(exports.answer()).toBe('one')
})

test('a different source has different code, however similar', async () => {
  expect(await answerOf(script('one'))).toBe('one')
  expect(await answerOf(script('two'))).toBe('two')
  expect(entries()).toHaveLength(2)
})

test.each<[string, (b: Buffer) => Buffer]>([
  ['truncated', (b) => b.subarray(0, b.length >> 1)],
  ['empty', (b) => b.subarray(0, 0)],
  ['altered', (b) => b.fill(7, b.length >> 1, (b.length >> 1) + 8)],
])('an entry that is %s is ignored, and written anew', async (_, broken) => {
  await answerOf(script('one'))
  const { path, load } = kept()
  writeFileSync(path, broken(readFileSync(path)))
  expect(await answerOf(script('one'))).toBe('one')
  await expect(load()).resolves.toBeInstanceOf(Buffer)
})

test('cached code that V8 rejects is replaced', async () => {
  await answerOf(script('one'))
  const { path, key, load } = kept()
  const code = await load()
  // The first words say of which V8 it is, with which flags.
  writeFileSync(path, encodeEntry(key, Buffer.from(code).fill(7, 0, 16)))
  expect(await answerOf(script('one'))).toBe('one')
  expect((await load()).subarray(0, 16)).toEqual(code.subarray(0, 16))
})

test('runs without a writable cache', async () => {
  const path = folder.file('script.cjs', script('one'))
  for (const none of [openCache(undefined, 'code'), openCache(path, 'code')]) {
    const { exports, storeCode: keep } = await runScript<Exports>(path, 'test', none)
    expect(exports.answer()).toBe('one')
    await keep()
  }
})

test("`require` resolves relative to the file's folder", async () => {
  folder.file('beside.json', '"beside"')
  const text = `exports.answer = () => require('./beside.json') + require('node:path').basename(__filename)`
  expect(await answerOf(text, 'requiring.cjs')).toBe('besiderequiring.cjs')
})
