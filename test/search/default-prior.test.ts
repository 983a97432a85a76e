/** A search from a script is the command's: the device's cost model is its prior, unless another strategy is named. */
import { afterEach, describe, expect, test } from 'vitest'
import { coords, load } from '../../src/node.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import { type TuneProgress, tune, tuneAll, useCostModel } from '../../src/search.ts'
import { PRODUCT } from '../support/product.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const kernel = (await load(`import "sparsetile/kernels/formats.spt"\n${PRODUCT}`)).kernel('product')
const A = coords(
  [6, 5],
  [
    [0, 1, 1, 4],
    [2, 0, 3, 4],
  ],
  [1, 2, 3, 4],
)
const inputs = { tensors: { A }, params: { d: 4 }, seed: 3 }
const splits = space('splits', kernel, (p) => {
  const by = p.number('by', [1, 2, 4])
  return (k) => k.split('f', by)
})
const device = await simulatedDevice()
const options = { space: splits, device, trials: 2 }
afterEach(() => useCostModel('cpu', undefined))

describe('without a prior', () => {
  test.each([undefined, 'model'])(
    'strategy %s is model, with predictions of the cost model',
    async (strategy) => {
      const seen: TuneProgress[] = []
      const found = await tune(kernel, { ...options, inputs, strategy, onProgress: (p) => void seen.push(p) })
      expect(found.subject.strategy).toBe('model')
      expect(found.trials.map((t) => t.predicted! > 0)).toEqual([true, true])
      // It is told how many points are ranked before the first trial.
      const ranked = seen.findIndex((p) => p.ranking !== undefined)
      expect(ranked).toBeGreaterThan(-1)
      expect(ranked).toBeLessThan(seen.findIndex((p) => p.trialsDone > 0))
    },
  )

  test('another strategy has none', async () => {
    const found = await tune(kernel, { ...options, inputs, strategy: 'random' })
    expect(found.trials.map((t) => t.predicted)).toEqual([undefined, undefined])
  })

  test('and without a cost model it is surrogate, and model says what is missing', async () => {
    useCostModel('cpu', null)
    expect((await tune(kernel, { ...options, inputs })).subject.strategy).toBe('surrogate')
    const refused = tune(kernel, { ...options, inputs, strategy: 'model' })
    await expect(refused).rejects.toMatchObject({ diagnostics: [{ code: 'search/no-model' }] })
  })

  test('the same holds for several data sets', async () => {
    const cases = [{ name: 'one', inputs }]
    const found = await tuneAll(kernel, { ...options, cases, strategy: 'model' })
    expect(found.cases[0]!.search!.trials.length).toBe(2)
  })
})
