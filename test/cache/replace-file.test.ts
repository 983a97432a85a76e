/** Files are replaced whole or not at all: whatever fails leaves the old content, and no temporary file. */
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkReplaceable, onProcessEnd, replaceFile } from '../../src/cache/replace-file.ts'
import { writeFile } from '../../src/io/node-files.ts'
import { property } from '../support/property.ts'

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'spt-replace-'))
})
afterAll(() => rmSync(folder, { recursive: true }))
const at = (name: string) => join(folder, name)
const put = (name: string, text = 'old') => {
  writeFileSync(at(name), text)
  return at(name)
}
const read = (name: string) => readFileSync(at(name), 'utf8')
const bytes = (text: string) => new TextEncoder().encode(text)
const temporaries = () => readdirSync(folder).filter((f) => f.endsWith('.tmp'))
const codeOf = (work: Promise<unknown>) => work.then(() => 'ok').catch((e) => e.code as string)
const script = (name: string) => fileURLToPath(new URL(`../../dist/src/${name}`, import.meta.url))
const isRoot = process.getuid?.() === 0

property([fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 5 }), fc.option(fc.nat(5))])(
  'all chunks are written, or the old file stays',
  async (chunks, failing) => {
    const path = put('any')
    const some = async function* () {
      for (const [k, c] of chunks.entries()) {
        if (k === failing) throw new Error('the source is gone')
        yield c
      }
    }
    const fails = failing !== null && failing < chunks.length
    const failed = await replaceFile(path, some()).then(
      () => false,
      () => true,
    )
    expect([failed, temporaries()]).toEqual([fails, []])
    expect(readFileSync(path)).toEqual(fails ? Buffer.from('old') : Buffer.concat(chunks))
  },
)

test('a failed write keeps the source of a program', () => {
  // A limit on the size of files stands for a full disk; the signal that comes with it is ignored.
  const long = `${'// a comment\n'.repeat(5000)}kernel k(n: size) { axis i = dense_fixed(n)   buffer x: f32[i] out\n  iterate sum [i] as S { x[i] = 1.0 } }\n`
  const path = put('long.spt', 'x')
  writeFileSync(path, long)
  const line = `trap '' XFSZ; ulimit -f 8; SPT_CACHE_DIR=off exec "${process.execPath}" "${script('cli/main.js')}" fmt "${path}"`
  const { stderr, status } = spawnSync('bash', ['-c', line], { encoding: 'utf8' })
  // What `fmt` has to say of the program itself is another matter.
  expect([status, stderr]).toEqual([1, expect.stringContaining('EFBIG')])
  expect([readFileSync(path, 'utf8') === long, temporaries()]).toEqual([true, []])
})

test.skipIf(!existsSync('/dev/full'))('devices are written in place', async () => {
  await expect(writeFile('/dev/full', 'text')).rejects.toThrow('io/no-space')
  await writeFile('/dev/null', 'text')
  expect(statSync('/dev/null').isCharacterDevice()).toBe(true)
})

test.skipIf(process.platform === 'win32')('so is a FIFO', async () => {
  expect(spawnSync('mkfifo', [at('fifo')]).status).toBe(0)
  const reader = spawn('cat', [at('fifo')])
  let text = ''
  reader.stdout.on('data', (c) => {
    text += c
  })
  const closed = new Promise((r) => reader.on('close', r))
  await writeFile(at('fifo'), 'through the pipe')
  await closed
  expect([text, statSync(at('fifo')).isFIFO()]).toEqual(['through the pipe', true])
})

test('links are followed, also to files that do not exist yet', async () => {
  mkdirSync(at('far'))
  put('far/file')
  symlinkSync('far/file', at('link'))
  symlinkSync('far/new', at('dangling'))
  symlinkSync('ring', at('ring'))
  for (const [link, target] of [
    ['link', 'far/file'],
    ['dangling', 'far/new'],
  ] as const) {
    await writeFile(at(link), 'new')
    expect([read(target), readlinkSync(at(link))]).toEqual(['new', target])
  }
  expect(await codeOf(replaceFile(at('ring'), []))).toBe('ELOOP')
})

test('permissions are kept; a new file has the default ones', async () => {
  const path = put('mode')
  put('usual')
  for (const mode of [0o640, 0o755, 0o600]) {
    chmodSync(path, mode)
    await writeFile(path, 'new')
    expect(statSync(path).mode & 0o777).toBe(mode)
  }
  await writeFile(at('fresh'), 'new')
  expect(statSync(at('fresh')).mode).toBe(statSync(at('usual')).mode)
})

test.skipIf(isRoot)('files and folders that may not be written', async () => {
  const path = put('read-only')
  chmodSync(path, 0o444)
  await expect(writeFile(path, 'new')).rejects.toThrow(`no permission to write '${path}'`)
  mkdirSync(at('shut'))
  const inside = put('shut/file')
  chmodSync(at('shut'), 0o555)
  for (const work of [() => writeFile(inside, 'new'), () => checkReplaceable(inside)])
    expect(await codeOf(work())).not.toBe('ok')
  await expect(writeFile(inside, 'new')).rejects.toThrow(`into '${at('shut')}'`)
  chmodSync(at('shut'), 0o755)
  expect([read('read-only'), read('shut/file')]).toEqual(['old', 'old'])
})

test('folders, missing folders, files taken', async () => {
  put('taken')
  for (const [work, code] of [
    [(p: string) => replaceFile(p, []), folder],
    [checkReplaceable, folder],
  ] as const) {
    expect(await codeOf(work(code))).toBe('EISDIR')
    expect(await codeOf(work(at('none/file')))).toBe('ENOENT')
    expect(await codeOf(work(at('taken/file')))).toBe('ENOTDIR')
  }
  expect(await codeOf(replaceFile(at('taken'), [bytes('new')], { exclusive: true }))).toBe('EEXIST')
  expect(read('taken')).toBe('old')
  const failing = function* () {
    yield bytes('new')
    throw new Error('the source is gone')
  }
  await expect(replaceFile(at('untaken'), failing(), { exclusive: true })).rejects.toThrow('gone')
  expect(existsSync(at('untaken'))).toBe(false)
})

test.skipIf(process.platform === 'win32').each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends the process, and leaves the old file',
  async (signal) => {
    const path = put('signal')
    const program = `import { replaceFile } from ${JSON.stringify(script('cache/replace-file.js'))}
      await replaceFile(${JSON.stringify(path)}, (async function* () {
        yield Buffer.from('half')
        console.log('half')
        await new Promise((r) => setTimeout(r, 60_000))
      })())`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program])
    child.stdout.once('data', () => child.kill(signal))
    const ended = await new Promise((r) => child.on('exit', (_, s) => r(s)))
    expect([ended, readFileSync(path, 'utf8'), temporaries()]).toEqual([signal, 'old', []])
  },
)

test('a handled signal does not interrupt a write', async () => {
  const path = put('handled')
  const program = `import { replaceFile } from ${JSON.stringify(script('cache/replace-file.js'))}
    const alive = setInterval(() => {}, 1000)
    const signal = new Promise((r) => process.once('SIGTERM', r))
    await replaceFile(${JSON.stringify(path)}, (async function* () {
      yield Buffer.from('wh')
      console.log('half')
      await signal
      yield Buffer.from('ole')
    })())
    clearInterval(alive)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program])
  child.stdout.once('data', () => child.kill('SIGTERM'))
  const ended = await new Promise((r) => child.on('exit', (code) => r(code)))
  expect([ended, readFileSync(path, 'utf8'), temporaries()]).toEqual([0, 'whole', []])
})

test('temporary files are removed at the end of the process, unless they are finished', () => {
  const removed: string[] = []
  const before = new Set(process.listeners('exit'))
  const ends = ['a', 'b'].map((name) => onProcessEnd(() => removed.push(name)))
  const added = process.listeners('exit').filter((f) => !before.has(f))
  ends[0]![Symbol.dispose]()
  for (const end of added) end.call(process, 0)
  ends[1]![Symbol.dispose]()
  expect(removed).toEqual(['b'])
  expect(process.listeners('exit')).toEqual([...before])
})
