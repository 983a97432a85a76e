/** Tuning on several matrices: candidates are tried on all, what is told is of all, and what is written reads back. */

import { afterAll, expect, test, vi } from 'vitest'
import { flatInputs } from '../../src/api/inputs/flat-inputs.ts'
import type { Kernel } from '../../src/api/kernels/kernel.ts'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { coords, load } from '../../src/node.ts'
import { choiceText } from '../../src/search/choice/rules.ts'
import { openRecords } from '../../src/search/records/index.ts'
import { sketches } from '../../src/search/spaces/sketches.ts'
import { inputsOf } from '../../src/search/tune/cases/case-study.ts'
import { type TuneAllOptions, tuneAll } from '../../src/search/tune/cases/tune-all.ts'
import type { TuneAllResult } from '../../src/search/tune/cases/tune-all-result.ts'
import { tune } from '../../src/search/tune/index.ts'
import { Session } from '../../src/search/tune/session.ts'
import { Folder } from '../cli/support.ts'
import { PRODUCT } from '../support/product.ts'
import { simulatedDevice } from '../support/simulated-device.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const device = await simulatedDevice()

const PROGRAM = `
${PRODUCT}schedule product.tiled(cols) {
  split f by cols -> (fo, fi)
}
schedule product.even(by = 4) {
  require d % by == 0
  split f by by -> (fo, fi)
  unroll fi
}
schedule product.refused {
  split nowhere by 2 -> (a, b)
}
schedule product.all choose by search {
  cols in 1, 2, 4
  use tiled(cols) or even() or refused()
}
`

/** Rows of one length. */
function matrix(rows: number, length: number) {
  const columns = (i: number): number[] =>
    Array.from({ length }, (_, k) => (i + 3 * k) % 16).sort((a, b) => a - b)
  const elements = Array.from({ length: rows }, (_, i) => columns(i).map((j) => [i, j] as const)).flat()
  return coords([rows, 16], [elements.map(([i]) => i), elements.map(([, j]) => j)])
}

const cases = [
  { name: 'short', inputs: { tensors: { A: matrix(40, 1) }, params: { d: 8 }, seed: 1 } },
  { name: 'long', inputs: () => ({ tensors: { A: matrix(9, 5) }, params: { d: 8 }, seed: 1 }) },
  { name: 'odd', inputs: { tensors: { A: matrix(12, 3) }, params: { d: 6 }, seed: 1 } },
]

async function tuned(
  more: Partial<TuneAllOptions> = {},
): Promise<{ readonly kernel: Kernel; readonly result: TuneAllResult }> {
  const kernel = (await load(PROGRAM)).kernel('product')
  const options: TuneAllOptions = {
    cases,
    device,
    space: (inputs) => kernel.space('all').bind(device, ...flatInputs(inputs)),
    strategy: 'exhaustive',
    ...more,
  }
  return { kernel, result: await tuneAll(kernel, options) }
}

/** Of all cases, once for several tests, with its records. */
const records = await openRecords(folder.at('r.db'))
const usual = await tuned({ records })

test('each candidate is measured on each case, and has its own name', () => {
  const { kernel, result } = usual
  const automatic = kernel.autoSchedule('cpu').trace
  expect(result.cases.map((c) => [c.name, c.rejection, c.search!.trials.length])).toEqual([
    ['short', null, 5],
    ['long', null, 5],
    ['odd', null, 5],
  ])
  // Two refuse to be made, of which one does for its sizes; all others are among the three fastest of some case.
  expect(result.cases.map((c) => c.search!.rejectedByCode)).toEqual([
    { 'schedule/unknown-loop': 1 },
    { 'schedule/unknown-loop': 1 },
    { 'schedule/unknown-loop': 1, 'space/requirement': 1 },
  ])
  for (const { call, timings, tunedOn, kernel } of result.candidates) {
    const isEven = call?.name === 'even'
    expect(timings.map((t) => t !== null)).toEqual([true, true, !isEven])
    const isPlain = kernel.trace.join() === 'as_written'
    const isUnasked = kernel.trace.join() === automatic.join()
    expect(call === null).toBe(isPlain || isUnasked)
    expect(tunedOn === null).toBe(isPlain)
  }
  const { generalisation, defaultLoss } = result
  // What cannot run for its sizes is passed over by a choice, on what it was made of and on what it was not.
  const { dispatch, single } = generalisation!
  expect([dispatch.fittedLoss.rejected, dispatch.heldOutLoss!.rejected, single.fittedLoss.rejected]).toEqual([
    0, 0, 0,
  ])
  const unasked = result.candidates.findIndex((c) => c.kernel.trace.join() === automatic.join())
  expect([defaultLoss!.rejected, result.cases.every((c) => c.defaultSchedule === unasked)]).toEqual([0, true])
  const by = (k: number | null, n: number): number => result.candidates[k!]!.timings[n]!.median
  const loss = (of: (c: TuneAllResult['cases'][number]) => number | null): number =>
    result.cases.reduce((sum, c, n) => sum + Math.log(by(of(c), n) / by(c.best, n)), 0) / 3
  expect(generalisation!.dispatch.fittedLoss.mean).toBeCloseTo(
    loss((c) => c.dispatch),
    9,
  )
  expect(generalisation!.single.fittedLoss.mean).toBeCloseTo(
    loss((c) => c.single),
    9,
  )
  expect(defaultLoss!.mean).toBeCloseTo(
    loss((c) => c.defaultSchedule),
    9,
  )
  expect(generalisation!.dispatch.fittedLoss.mean).toBeLessThanOrEqual(
    generalisation!.single.fittedLoss.mean + 1e-9,
  )
})

test('the seconds of tune and tuneAll limit the search, not a measurement', async () => {
  const open = vi.spyOn(Session, 'open')
  const kernel = (await load(PROGRAM)).kernel('product')
  const options = {
    inputs: cases[0]!.inputs as never,
    device,
    trials: 1,
    strategy: 'random' as const,
    seconds: 60,
  }
  await tune(kernel, options)
  await tuneAll(kernel, { cases: [cases[0]!], device, trials: 1, strategy: 'random', seconds: 60 })
  const sessions = await Promise.all(open.mock.results.map((r) => r.value as Promise<Session>))
  expect(sessions.length).toBeGreaterThan(1)
  for (const { evaluator } of sessions) expect(evaluator['options'].seconds).toBe(undefined)
  open.mockRestore()
})

test('the default space is the declared one for the device, otherwise the sketches', async () => {
  const own = `${PROGRAM}
schedule product.cpu_space choose by search {
  cols in 2, 4
  use tiled(cols)
}`
  const options = { cases, device, trials: 3, strategy: 'random' as const }
  const ofOwn = await tuneAll((await load(own)).kernel('product'), options)
  expect(ofOwn.cases.map((c) => c.search!.trials.map((t) => Number(t.point.cols)).sort())).toEqual(
    cases.map(() => [2, 4]),
  )
  const kernel = (await load(PROGRAM)).kernel('product')
  const { name } = sketches(kernel, { device: 'cpu' }).next({})!
  const all = await tuneAll(kernel, options)
  const one = await tune(kernel, { inputs: cases[0]!.inputs as never, device, trials: 3, strategy: 'random' })
  for (const { trials } of [...all.cases.map((c) => c.search!), one]) {
    expect(trials.length).toBe(3)
    for (const { point } of trials) expect(Object.keys(point)).toContain(name)
  }
})

test('the written schedule round-trips, and agrees with the kernel', async () => {
  const { kernel, result } = usual
  const { verdict, generalisation, candidates } = result
  const choosable = candidates.map((k) => ({ ...k, requires: k.kernel.compilation.loops.facts ?? [] }))
  const { name, text } = choiceText(kernel, generalisation!.dispatch.rules, choosable)
  if (verdict === 'dispatch') expect(result.schedule).toEqual({ name, text })
  expect([verdict === 'default', verdict]).toEqual([result.schedule === null, generalisation!.verdict])
  const again = (await load(`${PROGRAM}\n${text}`)).kernel('product').schedule(name)
  const compiled = await again.build(device)
  for (const { inputs } of cases) {
    const prepared = await compiled.bind(...flatInputs(typeof inputs === 'function' ? inputs() : inputs))
    expect((await prepared.verify()).ok).toBe(true)
    prepared.free()
  }
})

test('measured candidates are not measured again, and nothing new is found', async () => {
  const first = usual.result
  const again = (await tuned({ records, resume: true })).result
  const found = (r: TuneAllResult) =>
    r.candidates.map(({ call, tunedOn, timings }) => ({ call, foundOn: tunedOn, timings }))
  expect(found(again)).toEqual(found(first))
  expect(again.generalisation).toEqual(first.generalisation)
  expect(again.cases.map((c) => [c.search!.knownTrials, c.search!.stopReason])).toEqual(
    cases.map(() => [5, 'exhausted']),
  )
  const shared = records.query().filter((t) => Object.keys(t.point).includes('shared candidate'))
  expect(shared.length).toBe(3 * first.candidates.length)
  records.close()
})

test('an unusable case is reported, and only unusable ones are rejected', async () => {
  const bad = { name: 'bad', inputs: { tensors: { A: matrix(3, 1) }, params: { d: -1 }, seed: 1 } }
  const { result } = await tuned({ cases: [...cases, bad] })
  expect(result.cases[3]).toMatchObject({ name: 'bad', search: null, best: null, dispatch: null })
  expect(result.cases[3]!.rejection!.code).toContain('/')
  expect(result.verdict).not.toBe(null)
  const code = async (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => 'nothing was refused',
      (e: SptError) => e.diagnostics[0]!.code,
    )
  expect(await code(tuned({ cases: [bad] }))).toBe(result.cases[3]!.rejection!.code)
  expect(await code(tuned({ cases: [] }))).toBe('api/argument')
  expect(await code(tuned({ cases: [cases[0]!, cases[0]!] }))).toBe('api/argument')
  expect(await code(tuned({ strategy: 'evolutonary' }))).toBe('search/strategy')
})

test('an abort ends it with partial results', async () => {
  const stop = new AbortController()
  const seen: string[] = []
  const { result } = await tuned({
    signal: stop.signal,
    batch: 1,
    onProgress: (p) => {
      seen.push(p.case)
      if (p.case === 'long') stop.abort()
    },
  })
  expect(new Set(seen)).toEqual(new Set(['short', 'long']))
  expect(result.cases.map((c) => c.search?.stopReason ?? null)).toEqual(['exhausted', 'aborted', null])
  expect([result.schedule, result.generalisation, result.defaultLoss, result.verdict]).toEqual([
    null,
    null,
    null,
    null,
  ])
})

test('a single case gives a schedule without validation', async () => {
  const { result } = await tuned({ cases: cases.slice(0, 1) })
  expect([result.generalisation!.isBetter, result.generalisation!.dispatch.heldOutLoss]).toEqual([
    false,
    null,
  ])
  expect(result.schedule?.text ?? '').not.toContain('choose')
  expect(result.cases[0]!.single).toBe(result.cases[0]!.best)
})

test('failing and invalid inputs are reported', async () => {
  const throws = (): never => {
    throw new TypeError('no such file')
  }
  const { result } = await tuned({
    cases: [
      ...cases,
      { name: 'throws', inputs: throws },
      { name: 'rejects', inputs: async () => throws() },
      { name: 'none', inputs: (() => undefined) as never },
    ],
  })
  expect(result.cases.map((c) => c.rejection?.code ?? null)).toEqual([
    null,
    null,
    null,
    'search/inputs',
    'search/inputs',
    'search/inputs',
  ])
  expect(result.verdict).not.toBe(null)
})

test('pending inputs end with the time limit and with the signal', async () => {
  const never = { name: 'never', inputs: () => new Promise<never>(() => {}) }
  await expect(inputsOf(never, { seconds: 0.01 })).rejects.toThrow('do not come in 0.01 s')
  const stop = new AbortController()
  const work = tuned({ cases: [never, ...cases], signal: stop.signal })
  setTimeout(() => stop.abort(), 10)
  const { result } = await work
  expect(result.cases.map((c) => c.search)).toEqual([null, null, null, null])
})
