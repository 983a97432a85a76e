/** Points become outcomes: measured where they are right, refused by code, wrong for good; little is held meanwhile. */

import fc from 'fast-check'
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import { coords, type Device, type Kernel, load, SptError } from '../../src/node.ts'
import { EvaluationThreads } from '../../src/search/evaluate/evaluation-threads.ts'
import { referenceExtent } from '../../src/search/evaluate/reference-extent.ts'
import { space } from '../../src/search/spaces/function-space.ts'
import type { Outcome } from '../../src/search/types.ts'
import { Workspace } from '../../src/search.ts'
import { LONG, runs } from '../support/cases.ts'
import { countedDevice } from '../support/counted-device.ts'
import { PointEvaluator, type PointEvaluatorOptions } from '../support/point-evaluator.ts'
import { property } from '../support/property.ts'

const TEXT = `import "sparsetile/kernels/formats.spt"
kernel product(m: size, n: size, d: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis f = dense_fixed(d)
  buffer A: f32[i, j] in
  buffer B: f32[jd, f] in
  buffer C: f32[i, f] out
  iterate sum [i, j, f] as SRS { C[i, f] += A[i, j] * B[j, f] }
}
`

let kernel: Kernel
beforeAll(async () => {
  kernel = (await load(TEXT)).kernel()
})

const CANDIDATES: Readonly<Record<string, () => Kernel>> = {
  plain: () => kernel,
  columns: () => kernel.split('f', 2),
  again: () => kernel.split('f', 2),
  blocks: () => kernel.as('A', 'bsr', 2),
  halves: () => kernel.as('A', 'bsr', 2).split('f', 3),
  rows: () => kernel.as('A', 'by_length'),
  missing: () => kernel.split('nowhere', 2),
  broken: () => {
    throw new RangeError('Maximum call stack size exceeded')
  },
}
const NAMES = Object.keys(CANDIDATES)

const matrix = (m = 9, n = 7, every = 3) => {
  const at = Array.from({ length: m * n }, (_, k) => k).filter((k) => k % every === 0)
  return coords(
    [m, n],
    [at.map((k) => Math.floor(k / n)), at.map((k) => k % n)],
    Float32Array.from(at, (k) => 1 + (k % 4)),
  )
}

const open: PointEvaluator[] = []
afterEach(() => {
  for (const e of open.splice(0)) e.close()
})

function evaluator(device: Device, more: Partial<PointEvaluatorOptions> = {}): PointEvaluator {
  const made = new PointEvaluator({
    space: space('candidates', kernel, (p) => p.pick('schedule', CANDIDATES)),
    kernel,
    inputs: { tensors: { A: matrix() }, params: { d: 4 }, seed: 3 },
    device,
    rounds: 5,
    seconds: 0.05,
    ...more,
  })
  open.push(made)
  return made
}

const asked = (...names: readonly string[]) => names.map((schedule) => ({ point: { schedule }, share: 1 }))
const short = (o: Outcome): string => ('code' in o ? o.code : o.status)

/** The device, with one of its methods replaced. */
const having = (device: Device, methods: Partial<Device>): Device => Object.assign(device, methods)

const lost = (): SptError =>
  new SptError({ code: 'device/lost', message: 'the device is gone', hint: 'open it again' })

property([fc.shuffledSubarray(NAMES, { minLength: 1 })], { numRuns: runs(6) })(
  'outcomes are in the order of the requested points, however they are batched',
  async (names) => {
    const { device, held } = await countedDevice()
    const e = evaluator(device)
    const outcomes = await e.points(asked(...names))
    expect(outcomes.map(short)).toEqual(
      names.map((n) => ({ missing: 'schedule/unknown-loop', broken: 'space/thrown' })[n] ?? 'measured'),
    )
    for (const n of names.filter((x) => !['missing', 'broken'].includes(x)))
      expect(e.factsOf({ schedule: n })).toMatchObject({
        relativeError: expect.closeTo(0, 6),
        sampled: false,
      })
    e.close()
    expect(held()).toBe(0)
  },
)

/** 200 in long runs. */
const HELD = LONG ? 200 : 16

test(`${HELD} candidates hold less than 1.5 times the largest one`, async () => {
  const { device, held, most } = await countedDevice()
  const many = Object.fromEntries(
    Array.from({ length: HELD }, (_, k): [string, () => Kernel] => [
      `${k}`,
      () => (k % 3 === 0 ? kernel : kernel.as('A', 'bsr', 2 + (k % 4))).split('f', 1 + (k % 16)),
    ]),
  )
  const e = evaluator(device, {
    space: space('many', kernel, (p) => p.pick('schedule', many)),
    inputs: { tensors: { A: matrix(64, 64, 2) }, params: { d: 64 }, seed: 3 },
    rounds: 1,
    seconds: 0.001,
  })
  // The kernel that is measured against drift is there all the time.
  await e.points(asked('0'))
  const before = held()
  most()
  for (let k = 0; k < HELD; k += 8) await e.points(asked(...Array.from({ length: 8 }, (_, n) => `${k + n}`)))
  const largest = Math.max(...Object.keys(many).map((schedule) => e.factsOf({ schedule })!.bytes!))
  expect(most() - before).toBeLessThan(1.5 * largest)
  expect(most() - before).toBeGreaterThanOrEqual(0)
  expect(held()).toBe(before)
})

test('wrong results are permanent, with steps and seed', async () => {
  const { device } = await countedDevice()
  const download = device.download.bind(device)
  let flips = true
  having(device, {
    async download(buffer, bytes) {
      const data = await download(buffer, bytes)
      if (flips && buffer.label === 'C') new Float32Array(data)[0]! += 1
      return data
    },
  })
  const e = evaluator(device)
  const [outcome] = await e.points(asked('columns'))
  expect(outcome).toMatchObject({ status: 'wrong', seed: 3 })
  expect(outcome!.status === 'wrong' && kernel.replay(JSON.parse(outcome!.trace!)).trace).toEqual(
    CANDIDATES.columns!().trace,
  )
  flips = false
  // The same steps by another name.
  expect((await e.points(asked('again', 'plain'))).map(short)).toEqual(['wrong', 'measured'])
})

describe('a device that is lost', () => {
  async function failing(run: number): Promise<Device> {
    const { device } = await countedDevice()
    const own = device.run.bind(device)
    let runs = 0
    return having(device, {
      async run(commands) {
        if (++runs >= run) throw lost()
        return own(commands)
      },
    })
  }

  test('ends the current request, and keeps measurements', async () => {
    const e = evaluator(await failing(2))
    expect((await e.points(asked('plain'))).map(short)).toEqual(['measured'])
    expect((await e.points(asked('columns', 'missing', 'blocks'))).map(short)).toEqual([
      'device/lost',
      'schedule/unknown-loop',
      'device/lost',
    ])
  })

  test('is reopened once, if possible', async () => {
    let opened = 0
    const e = evaluator(await failing(2), {
      reopen: async () => {
        opened++
        return failing(Number.POSITIVE_INFINITY)
      },
    })
    const outcomes = await e.points(asked('plain', 'columns', 'blocks', 'rows', 'halves'))
    // In groups of a format: plain, columns | blocks, halves | rows.
    expect(outcomes.map(short)).toEqual(['measured', 'device/lost', 'measured', 'measured', 'measured'])
    expect(opened).toBe(1)
  })
})

describe('the reference, in a worker thread', () => {
  test('does not block an abort, and is computed on the next request', async () => {
    const { device } = await countedDevice()
    const e = evaluator(device)
    const adopted = vi.spyOn(e.bench.data, 'adoptReferenceResults')
    const stop = new AbortController()
    const { reference } = EvaluationThreads.prototype
    vi.spyOn(EvaluationThreads.prototype, 'reference').mockImplementationOnce(function (
      this: EvaluationThreads,
      ...given
    ) {
      const made = reference.apply(this, given)
      stop.abort(new Error('enough'))
      return made
    })
    await expect(e.points(asked('plain'), { signal: stop.signal })).rejects.toThrow('enough')
    expect(adopted).not.toHaveBeenCalled()
    expect((await e.points(asked('plain'))).map(short)).toEqual(['measured'])
    expect(adopted).toHaveBeenCalledOnce()
  })

  test('equals the reference of this thread, for any names', async () => {
    const { device } = await countedDevice()
    const text = TEXT.replace('axis j ', 'axis constructor ').replaceAll(/\bj\b(?=[\],])/g, 'constructor')
    const named = (await load(text)).kernel()
    const inputs = { tensors: { A: matrix() }, params: { d: 5 }, seed: 3 }
    const e = evaluator(device, {
      kernel: named,
      inputs,
      space: space('one', named, (p) => p.pick('schedule', { plain: () => named })),
    })
    expect((await e.points(asked('plain'))).map(short)).toEqual(['measured'])
    const here = new Workspace(device, named, ...flatInputs(inputs))
    const extent = await e.bench.extent()
    expect(e.bench.data.referenceResults(extent)).toEqual(here.referenceResults(extent))
  })
})

test('the reference computes all results where visits suffice, otherwise as many rows as they do', async () => {
  const { device } = await countedDevice()
  const m = 60
  const rows = Array.from({ length: m }, (_, i) => i)
  const A = coords([m, 1000], [rows, rows], rows)
  const of = (visits: number) =>
    referenceExtent(new Workspace(device, kernel, { A, d: 5 }, { seed: 3 }), 1, visits)
  // An element in each row, and five columns: 300 visits of elements.
  expect(of(600).sample).toBeUndefined()
  expect(of(299)).toMatchObject({ sample: { count: 30 } })
  expect(of(149)).toMatchObject({ sample: { count: 1 } })
})

test('lowering that takes too long fails, and the next does not', async () => {
  const { device } = await countedDevice()
  // Thousands of statements take longer than a millisecond.
  const long = () => kernel.split('f', 64, ['fo', 'fi']).split('j', 4, ['jo', 'ji']).unroll('fi').unroll('ji')
  const of = space('long', kernel, (p) => p.pick('schedule', { long }))
  const e = evaluator(device, { timeout: 1, space: of })
  expect((await e.points(asked('long'))).map(short)).toEqual(['search/timeout'])
  e.close()
  const patient = evaluator(device, { timeout: 60_000, space: of })
  expect((await patient.points(asked('long'))).map(short)).toEqual(['measured'])
})
