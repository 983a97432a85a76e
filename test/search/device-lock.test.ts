/** A lock over processes: one at a time, and none that outlives its holder. */
import { type ChildProcess, spawn } from 'node:child_process'
import { appendFileSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Device } from '../../src/runtime/device.ts'
import { deviceKey, withDeviceLock } from '../../src/search/measuring/device-lock.ts'
import { Folder } from '../cli/support.ts'
import { refusal } from '../support/refusal.ts'

const temporary = new Folder()
const script = temporary.at('holder.mjs')
afterAll(() => temporary.remove())

/** A process that holds the lock again and again, and writes down when; `for ever` it does not let go. */
const HOLDER = `
import { appendFileSync } from 'node:fs'
import { withDeviceLock } from './src/search/measuring/device-lock.ts'
const [folder, log, times] = process.argv.slice(2)
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
for (let k = 0; k < Number(times); k++)
  await withDeviceLock('gpu', async () => {
    appendFileSync(log, 'in ' + process.pid + '\\n')
    await sleep(3)
    appendFileSync(log, 'out ' + process.pid + '\\n')
  }, { folder })
if (times === 'for ever')
  await withDeviceLock('gpu', async () => {
    console.log('held')
    await sleep(600_000)
  }, { folder })
`

beforeAll(async () => {
  await build({
    stdin: { contents: HOLDER, resolveDir: process.cwd(), loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile: script,
  })
})

let folder = ''
let n = 0
beforeEach(() => {
  folder = temporary.at(`locks${n++}`)
})

const holder = (log: string, times: string): ChildProcess =>
  spawn(process.execPath, [script, folder, log, times], { stdio: ['ignore', 'pipe', 'inherit'] })

const ended = (child: ChildProcess): Promise<unknown> => new Promise((done) => child.once('exit', done))

test('at most one of three processes holds the lock', async () => {
  const log = temporary.file(`log${n}`, '')
  const children = [holder(log, '12'), holder(log, '12')]
  const own = Array.from({ length: 6 }, async (_, k) => {
    await withDeviceLock(
      'gpu',
      async () => {
        appendFileSync(log, `in own${k}\n`)
        await new Promise((done) => setTimeout(done, 3))
        appendFileSync(log, `out own${k}\n`)
      },
      { folder },
    )
  })
  await Promise.all([...own, ...children.map(ended)])
  const lines = readFileSync(log, 'utf8').trim().split('\n')
  expect(lines).toHaveLength(2 * (24 + 6))
  for (let k = 0; k < lines.length; k += 2)
    expect([lines[k]!.slice(0, 3), lines[k + 1]]).toEqual(['in ', lines[k]!.replace('in', 'out')])
  // The last, and at most the one before it.
  expect(readdirSync(folder).length).toBeLessThanOrEqual(2)
})

test('a killed holder releases the lock', async () => {
  const child = holder('', 'for ever')
  await new Promise((done) => child.stdout!.once('data', done))
  const waiting: number[] = []
  const controller = new AbortController()
  const inVain = withDeviceLock('gpu', async () => 'got it', {
    folder,
    signal: controller.signal,
    onWait: ({ pid }) => {
      waiting.push(pid)
      controller.abort(new Error('enough'))
    },
  })
  await expect(inVain).rejects.toThrow('enough')
  expect(waiting).toEqual([child.pid])
  child.kill('SIGKILL')
  await ended(child)
  expect(await withDeviceLock('gpu', async () => 'got it', { folder })).toBe('got it')
})

test('the lock is released if the work fails, and another device is not locked', async () => {
  const work = async (): Promise<never> => {
    expect(await withDeviceLock('other', async () => 1, { folder })).toBe(1)
    throw new Error('no kernel')
  }
  await expect(withDeviceLock('gpu', work, { folder })).rejects.toThrow('no kernel')
  expect(await withDeviceLock('gpu', async () => 2, { folder })).toBe(2)
})

/** The file that counts: of the one before it, something may be left. */
const lockFile = (): string => {
  const number = (f: string): number => Number(f.split('.')[1])
  const files = readdirSync(folder).filter((f) => !f.startsWith('.'))
  return join(folder, files.sort((a, b) => number(b) - number(a))[0]!)
}

/** Makes as if someone else held it. */
async function heldBy(change: object, age = 0): Promise<void> {
  rmSync(folder, { recursive: true, force: true })
  await withDeviceLock('gpu', async () => {}, { folder })
  const path = lockFile()
  const holder = JSON.parse(readFileSync(path, 'utf8'))
  writeFileSync(path, JSON.stringify({ ...holder, isReleased: false, ...change }))
  const at = new Date(Date.now() - age)
  utimesSync(path, at, at)
}

const isFree = async (): Promise<boolean> => {
  const controller = new AbortController()
  const onWait = (): void => controller.abort(new Error('held'))
  const work = async (): Promise<boolean> => true
  return withDeviceLock('gpu', work, { folder, signal: controller.signal, onWait }).catch(() => false)
}

test('holders are distinguished from other processes with their id', async () => {
  await heldBy({})
  expect(await isFree()).toBe(false)
  if (process.platform === 'linux') {
    // Its number was used again.
    await heldBy({ began: '1' })
    expect(await isFree()).toBe(true)
  }
  await heldBy({ pid: 2 ** 22 + 1 })
  expect(await isFree()).toBe(true)
})

test('a holder in another container or on another host counts while it renews its lock', async () => {
  for (const change of [{ host: `not ${hostname()}` }, { space: 'another' }]) {
    await heldBy(change)
    expect(await isFree()).toBe(false)
    await heldBy(change, 3_600_000)
    expect(await isFree()).toBe(true)
  }
})

test('foreign files are not locks', async () => {
  await heldBy({})
  writeFileSync(lockFile(), 'nonsense')
  expect(await isFree()).toBe(true)
  const inFile = withDeviceLock('gpu', async () => 1, { folder: join(script, 'below') })
  const error = await inFile.catch((e: unknown) => e)
  expect(
    refusal(() => {
      throw error
    }).code,
  ).toBe('search/lock')
})

test.skipIf(process.platform !== 'linux')('a full file system is rejected as well', async () => {
  const error = await withDeviceLock('gpu', async () => 1, { folder: '/proc/nope/deep' }).catch((e) => e)
  expect(error.diagnostics?.[0].code, String(error)).toBe('search/lock')
})

test('devices are distinguished by kind, name and index', () => {
  const device = (kind: string, ordinal?: number): Device =>
    ({ kind, name: 'N', ...(ordinal !== undefined && { chip: { ordinal } }) }) as unknown as Device
  expect(deviceKey(device('cpu'))).toBe('cpu N')
  expect(deviceKey(device('cuda', 1), {})).toBe('cuda N 1')
  expect(deviceKey(device('cuda', 1), { CUDA_VISIBLE_DEVICES: '4, 7' })).toBe('cuda N 7')
  expect(deviceKey(device('cuda', 0), { CUDA_VISIBLE_DEVICES: '' })).toBe('cuda N 0')
})
