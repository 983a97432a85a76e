/** Calibrations, written and read again, of a device in simulated time. */
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Calibration,
  isCalibration,
  setCalibrationReader,
  useCostModel,
} from '../../src/cost-model/learned/trained-models.ts'
import {
  calibrationPath,
  chipOf,
  makeCalibrationFolder,
  writeCalibration,
} from '../../src/io/package/calibrations.ts'
import type { Device } from '../../src/node.ts'
import { ceilingsOf } from '../../src/run/explain/roofline.ts'
import type { Command } from '../../src/runtime/device.ts'
import { calibrationOf } from '../../src/search/calibrate/stored.ts'
import { calibrate, costModel } from '../../src/search.ts'
import { spt } from '../cli/support.ts'
import { runs } from '../support/cases.ts'
import { onSimulatedDevices, simulatedDevice } from '../support/simulated-device.ts'

/** Milliseconds of a device that takes 0.1 for a launch, and 1 for a megabyte that it is given. */
function ms(commands: readonly Command[]): number {
  const given = commands.flatMap((c) => (c.kind === 'launch' ? c.args : []))
  return given.reduce<number>(
    (sum, x) => sum + (typeof x === 'object' && 'bytes' in x ? x.bytes / 1e6 : 0),
    0.1,
  )
}

let home: string
let cpu: Device
let own: Calibration
beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), 'spt-calibrate-'))
  cpu = await simulatedDevice()
  const out = join(home, 'model.json')
  // It ends when it has what it wants.
  const args = ['calibrate', '--seconds', '120', '--out', out, '--json']
  const { code, out: printed } = await onSimulatedDevices(
    () => spt(args, { env: { SPT_CACHE_DIR: 'off' } }),
    { ms },
  )
  expect(code).toBe(0)
  own = JSON.parse(printed)
  expect(JSON.parse(readFileSync(out, 'utf8'))).toEqual(own)
})
afterAll(() => rmSync(home, { recursive: true, force: true }))

const env = (): Record<string, string> => ({ SPT_CACHE_DIR: home })
const keep = async (c: object): Promise<string> => {
  const path = calibrationPath(chipOf(cpu), env())!
  await makeCalibrationFolder(path)
  await writeCalibration(path, c)
  return path
}

describe('a calibration', () => {
  test('has positive coefficients, ceilings, and states its error for each kernel', () => {
    expect(isCalibration(own)).toBe(true)
    expect(own).toMatchObject({ kind: 'cpu', chip: chipOf(cpu).name })
    const { memory, cache, f32 } = own.ceilings
    for (const x of [memory, cache, f32]) expect(x).toBeGreaterThan(1e6)
    expect(cache).toBeGreaterThanOrEqual(memory)
    for (const k of own.kernels) {
      expect(k.samples).toBeGreaterThan(0)
      expect(Math.abs(Math.log(k.ratio))).toBeLessThanOrEqual(k.error + 1e-9)
    }
    const samples = own.kernels.reduce((n, k) => n + k.samples, 0)
    const mean = own.kernels.reduce((n, k) => n + k.samples * k.error, 0) / samples
    expect(own.error).toBeCloseTo(mean, 3)
  })

  test('round-trips, and is a cost model', async () => {
    await keep(own)
    expect(calibrationOf('cpu', cpu, env())).toEqual(own)
    expect(readdirSync(join(home, 'calibrations'))).toHaveLength(1)
    expect(() => useCostModel('webgpu', own)).toThrow('not of webgpu')
    useCostModel('cpu', own)
    expect(costModel('cpu')).toBe(own)
    useCostModel('cpu', undefined)
  })

  test('that is damaged, truncated, of another version or of another chip is ignored', async () => {
    const path = await keep(own)
    const whole = readFileSync(path, 'utf8')
    writeFileSync(path, 'null')
    expect(calibrationOf('cpu', cpu, env())).toBe('unusable')
    fc.assert(
      fc.property(fc.integer({ min: 0, max: whole.length - 2 }), (n) => {
        writeFileSync(path, whole.slice(0, n))
        expect(calibrationOf('cpu', cpu, env())).toBe('unusable')
      }),
      { numRuns: runs(30) },
    )
    const changed: object[] = [
      { ...own, version: 99 },
      { ...own, features: own.features.slice(1) },
      { ...own, chip: 'another' },
      { ...own, ceilings: undefined },
      { ...own, ceilings: { ...own.ceilings, f32: -1 } },
      { ...own, coefficients: null },
      { ...own, coefficients: { ...own.coefficients, operations: 0 } },
      { ...own, coefficients: { ...own.coefficients, accesses: 'fast' } },
      { ...own, trees: null },
      [],
    ]
    for (const c of changed) {
      await keep(c)
      expect(calibrationOf('cpu', cpu, env()), JSON.stringify(c).slice(0, 80)).toBe('unusable')
      expect((await spt(['doctor'], { env: env() })).out).toMatch(/calibrated +ignored: the file is damaged/)
    }
    rmSync(path)
    expect(calibrationOf('cpu', cpu, env())).toBe('none')
  })

  test('has priority over the packaged model, unless that was made on such a chip', () => {
    const shipped = costModel('cuda')!
    const asked: unknown[] = []
    setCalibrationReader((kind, device) => {
      asked.push([kind, device?.name])
      return kind === 'cuda' && device ? own : null
    })
    expect(costModel('cuda', { name: 'another chip' })).toBe(own)
    expect(costModel('cuda', { name: shipped.chip })).toBe(shipped)
    expect(costModel('cuda')).toBe(shipped)
    costModel('cuda', { name: 'another chip' })
    // Files are looked at once.
    expect(asked).toEqual([
      ['cuda', 'another chip'],
      ['cuda', undefined],
    ])
    setCalibrationReader(() => null)
    expect(ceilingsOf('cuda', 'another chip')).toBeUndefined()
  })
})

describe('spt calibrate', () => {
  test('rejects invalid options before measuring', async () => {
    const off = await spt(['calibrate'], { env: { SPT_CACHE_DIR: 'off' } })
    expect(off).toMatchObject({ code: 2 })
    expect(off.err).toContain('--out FILE')
    expect(await spt(['calibrate', '--seconds', '1'])).toMatchObject({ code: 2 })
    expect(await spt(['calibrate', '--device', 'gpu'])).toMatchObject({ code: 2 })
    expect(await spt(['calibrate', '--fast'])).toMatchObject({ code: 2 })
    writeFileSync(join(home, 'file'), '')
    const blocked = await spt(['calibrate'], { env: { SPT_CACHE_DIR: join(home, 'file') } })
    expect(blocked.code).toBe(1)
    expect(blocked.err).toMatch(/error\[io\/not-a-folder\]/)
    // What cannot be written is refused to all but the superuser.
    if (process.getuid?.() !== 0) {
      const locked = join(home, 'locked')
      mkdirSync(locked)
      chmodSync(locked, 0o500)
      expect(await spt(['calibrate'], { env: { SPT_CACHE_DIR: locked } })).toMatchObject({ code: 1 })
    }
    await expect(calibrate(cpu, { seconds: 1 })).rejects.toMatchObject({
      diagnostics: [{ code: 'calibrate/seconds' }],
    })
  })
})
