/** What `spt calibrate` says of a model that fits badly. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { reportCalibration } from '../../src/cli/commands/calibrate.ts'
import type { Calibration } from '../../src/cost-model/learned/trained-models.ts'

/** The model of the package, as if it had been measured and were off by a factor. */
const off = (factor: number): Calibration => ({
  ...JSON.parse(readFileSync('data/models/cpu.json', 'utf8')),
  error: Math.log(factor),
})

test.each([true, false])(
  'an inaccurate cost model is reported with the file to delete (as JSON: %s)',
  (json) => {
    const told = (factor: number): { readonly out: string; readonly err: string } => {
      let [out, err] = ['', '']
      const io = { out: (t: string) => (out += t), err: (t: string) => (err += t) }
      reportCalibration({ io, flag: () => json, one: () => given } as never, off(factor), 'cpu.json')
      return { out, err }
    }
    let given: string | undefined
    expect(told(1.24).err).toBe('')
    const { out, err } = told(1.515)
    expect(err).toMatch(/51\.5\s?% off.*, or delete cpu\.json/)
    if (json) expect(JSON.parse(out).error).toBe(Math.log(1.515))
    else expect(out).toContain('cpu.json')
    given = 'cpu.json'
    expect(told(1.515).err).toMatch(/useCostModel/)
    expect(told(1.515).err).not.toContain('elete')
  },
)
