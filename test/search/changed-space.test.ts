/** A space that is changed and keeps its name: what was measured of other steps is not taken for what its points are now. */

import { afterAll, expect, test } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, load } from '../../src/node.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { tune } from '../../src/search/tune/index.ts'
import { Folder } from '../cli/support.ts'
import { PRODUCT } from '../support/product.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('trials of other steps are ignored, and replaced', async () => {
  const kernel = (await load(PRODUCT)).kernel('product')
  const device = await simulatedDevice()
  const records = await openRecords(folder.at('renewed.db'))
  const A = coords(
    [2, 3],
    [
      [0, 1],
      [0, 2],
    ],
  )
  const tuned = (axis: 'i' | 'f' | 'nowhere') =>
    tune(kernel, {
      device,
      records,
      resume: true,
      strategy: 'exhaustive',
      inputs: { tensors: { A }, params: { d: 4 }, seed: 1 },
      space: space('tiles', kernel, (p) => {
        const by = p.number('by', [2, 4])
        return (k) => k.split(axis, by)
      }),
    })
  const known = async (...of: Parameters<typeof tuned>) => (await tuned(...of)).knownTrials
  expect([await known('i'), await known('i')]).toEqual([0, 2])
  expect(await known('f')).toBe(0)
  expect(records.query().map((t) => JSON.stringify(t.trace).includes('"f"'))).toEqual([true, true])
  expect(await known('nowhere')).toBe(0)
  expect(await known('f')).toBe(2)
  records.close()
})

test('spaces of one name have separate studies, and reuse trials of the same step', async () => {
  const device = await simulatedDevice()
  const records = await openRecords(folder.at('texts.db'))
  const A = coords(
    [2, 3],
    [
      [0, 1],
      [0, 2],
    ],
  )
  const inputs = { tensors: { A }, params: { d: 8 }, seed: 1 }
  const known = async (values: string, axis = 'f'): Promise<number> => {
    const text = `schedule product.tiles choose by search {\n  by in ${values}\n  split ${axis} by by -> (o, r)\n}\n`
    const kernel = (await load(PRODUCT + text)).kernel('product')
    const space = await kernel.space('tiles').bind(device, ...flatInputs(inputs))
    return (await tune(kernel, { device, records, strategy: 'exhaustive', inputs, space })).knownTrials
  }
  expect([await known('2, 4'), await known('2, 8'), await known('2, 4'), await known('2, 8')]).toEqual([
    0, 1, 2, 2,
  ])
  expect(await known('2, 4', 'i')).toBe(0)
  expect([await known('2, 4'), await known('2, 4', 'i')]).toEqual([2, 2])
  expect(records.studies().map((study) => study.space)).toEqual(
    Array.from({ length: 3 }, () => expect.stringMatching(/^product\.tiles [0-9a-f]{12}$/)),
  )
  records.close()
})
