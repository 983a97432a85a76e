/** The built command as a process of its own: what only a process can get wrong. Needs `npm run build`. */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, expect, test } from 'vitest'
import { calibrationPath, chipOf } from '../../src/io/package/calibrations.ts'
import { SEED } from '../support/cases.ts'
import { TIME_LIMIT } from '../support/time-limit.ts'
import { Folder, MATRIX, PROGRAM, spt as told } from './support.ts'

const command = fileURLToPath(new URL('../../dist/lib/spt.js', import.meta.url))
const folder = new Folder()
const program = folder.file('mul.spt', PROGRAM)
afterAll(() => folder.remove())

const spawned = (...args: string[]) =>
  spawnSync(process.execPath, [command, ...args], { encoding: 'utf8', timeout: TIME_LIMIT / 2 })

test('it is built, executable, and has a shebang', () => {
  expect(existsSync(command), 'npm run build first').toBe(true)
  expect(statSync(command).mode & 0o111).toBe(0o111)
  expect(readFileSync(command, 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/)
})

test('the process ends with its exit code and both streams complete, with a GPU', () => {
  const sizes = ['m=5', 'n=6', 'd=3', 'alpha=2'].flatMap((s) => ['--size', s])
  const device = 'webgpu'
  const r = spawned('run', program, ...sizes, '--device', device, '--verify', '--json')
  expect([r.status, r.stderr]).toEqual([0, ''])
  expect(JSON.parse(r.stdout)).toMatchObject({ kernel: 'mul', device, verify: { ok: true } })
})

test('doctor reports a calibration that nothing else has loaded', () => {
  const env = { ...process.env, SPT_CACHE_DIR: folder.path }
  const calibrated = readFileSync('data/models/cpu.json', 'utf8')
  const path = calibrationPath(chipOf({ kind: 'cpu' }), { SPT_CACHE_DIR: folder.path })!
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ ...JSON.parse(calibrated), chip: chipOf({ kind: 'cpu' }).name }))
  const { stdout } = spawnSync(process.execPath, [command, 'doctor'], { encoding: 'utf8', env })
  expect(stdout).toMatch(/calibrated +yes, mean error \d+ %/)
})

test('an error is one diagnostic: exit 1, nothing on standard output, no stack', () => {
  const r = spawned('run', program)
  expect([r.status, r.stdout]).toEqual([1, ''])
  expect(r.stderr).toMatch(/^error\[bind\/missing-size\]/)
  expect(r.stderr).not.toMatch(/^\s+at /m)
})

test('results are identical without a cache, with an empty one filled concurrently, and with a corrupt one', async () => {
  const cache = folder.at('cache')
  const spt = async (dir: string, ...args: string[]) => {
    const env = { ...process.env, SPT_CACHE_DIR: dir }
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [command, ...args], { env })
    return [stdout, stderr]
  }
  const all = (dir: string) =>
    Promise.all([['check'], ['emit', '--target', 'js']].map((args) => spt(dir, ...args, program)))
  // In this process: only caches are to be read and written by others.
  const without = await Promise.all(
    [['check'], ['emit', '--target', 'js']].map(async (args) => {
      const { out, err } = await told([...args, program], { env: { SPT_CACHE_DIR: 'off' } })
      return [out, err]
    }),
  )
  expect(await all(cache)).toEqual(without)
  // Compiled code, from Node 22.8 on, is a folder.
  const names = readdirSync(cache).filter((f) => f !== 'code')
  expect(names.map((f) => extname(f)).toSorted()).toEqual(['.checked', '.tree'])
  const broken = [
    (b: Buffer) => b,
    (b: Buffer) => b.subarray(0, b.length >> 1),
    (b: Buffer) => b.fill(32, b.length >> 1),
  ]
  const good = names.map((f) => readFileSync(join(cache, f)))
  // Another third of them in each way, and whole, in another run.
  for (const [k, f] of names.entries())
    writeFileSync(join(cache, f), broken[(k + SEED) % 3]!(Buffer.from(good[k]!)))
  expect(await all(cache)).toEqual(without)
  for (const [k, f] of names.entries()) expect(readFileSync(join(cache, f))).toEqual(good[k])
})

test('a search ends although worker threads are still running', () => {
  const own = folder.file(
    'tuned.spt',
    `${PROGRAM}schedule mul.cpu_space choose by search { by in 2, 4 split f by by }\n`,
  )
  const matrix = folder.file('a.mtx', MATRIX)
  const sizes = ['d=8', 'alpha=2'].flatMap((s) => ['--size', s])
  const r = spawned('tune', own, '--bind', `A=${matrix}`, ...sizes, '--trials', '1', '--strategy', 'random')
  expect(r.status).toBe(0)
  for (const line of r.stderr.trimEnd().split('\n')) expect(line).toMatch(/^\d+ done, /)
  expect(r.stdout).toMatch(/ {2}(the fastest|the lowest median)\n/)
})

test('a closed pipe ends the process without an error', () => {
  const files = Array.from({ length: 60 }, () => `"${program}"`).join(' ')
  const pipe = `"${process.execPath}" "${command}" check ${files} | head -c 1; echo " \${PIPESTATUS[0]}"`
  const r = spawnSync('bash', ['-c', pipe], { encoding: 'utf8', timeout: TIME_LIMIT / 2 })
  expect([r.stdout, r.stderr]).toEqual(['/ 0\n', ''])
})

test.skipIf(!existsSync('/dev/full'))('output that cannot be written is an error', () => {
  const r = spawnSync('sh', ['-c', `"${process.execPath}" "${command}" show "${program}" > /dev/full`], {
    encoding: 'utf8',
  })
  expect(r.status).toBe(1)
  expect(r.stderr).toContain('standard output cannot be written')
})
