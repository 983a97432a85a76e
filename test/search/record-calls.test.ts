/** Calls of records: what is none of their arguments is refused with what was expected, and nothing is lost of it. */
import { existsSync } from 'node:fs'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { load, SptError } from '../../src/node.ts'
import { createStudy } from '../../src/search/records/identity.ts'
import { openRecords, type Records } from '../../src/search/records/index.ts'
import type { TrialRecord } from '../../src/search/records/types.ts'
import { PRODUCT } from '../support/product.ts'
import { property } from '../support/property.ts'
import { refusal } from '../support/refusal.ts'

const kernel = (await load(PRODUCT)).kernel()
const DEVICE = { kind: 'cpu', name: 'a processor', driver: 'Node 20' } as const
const study = createStudy(kernel, { params: { m: 3, n: 3, d: 2 } }, DEVICE, { space: 'tiles' })
const trial = (tile: number): TrialRecord => ({
  study: study.id,
  point: { tile },
  outcome: {
    status: 'measured',
    timing: { median: tile + 1, interval: [tile + 1, tile + 1], samples: [tile + 1] },
  },
})

let records: Records
beforeAll(async () => {
  records = await openRecords(':memory:')
  records.addStudy(study)
  records.add(...[0, 1, 2].map(trial))
})
afterAll(() => records.close())

// biome-ignore lint/suspicious/noExplicitAny: what no compiler has looked at
const loose = (): any => records

const WRONG: readonly (readonly [string, () => unknown])[] = [
  ...[-1, 1.5, Number.NaN, '2', null, {}].map(
    (keepBest) => [`prune keepBest ${keepBest}`, () => loose().prune({ keepBest })] as const,
  ),
  ...[Number.NaN, 'yesterday', new Date(), null].map(
    (olderThan) => [`prune olderThan ${olderThan}`, () => loose().prune({ olderThan })] as const,
  ),
  ...['all', [1], null].map(
    (studies) => [`prune studies ${studies}`, () => loose().prune({ studies })] as const,
  ),
  ['prune nothing', () => loose().prune()],
  ...['query', 'best', 'studies'].flatMap((call) =>
    [
      { kernel: 3 },
      { studies: 'all' },
      { studies: [3] },
      { device: DEVICE },
      { compiler: null },
      { fingerprint: [] },
    ].map((filter) => [`${call} ${JSON.stringify(filter)}`, () => loose()[call](filter)] as const),
  ),
  ...[{ id: 3 }, { status: 'fast' }, { status: ['wrong', 'right'] }, { limit: -1 }, { trace: 'split' }].map(
    (filter) => [`query ${JSON.stringify(filter)}`, () => loose().query(filter)] as const,
  ),
  ['best status', () => loose().best({ status: 'wrong' })],
  ['studies limit', () => loose().studies({ limit: 3 })],
  ['export xml', () => loose().export('xml')],
  ['has', () => loose().has(3)],
  ['get', () => loose().get({})],
  ['study', () => loose().study()],
  ['missing of no study', () => loose().missing(3, [])],
  ['missing of one point', () => loose().missing(study.id, { tile: 1 })],
  ['missing of no point', () => loose().missing(study.id, [null])],
  ['missing again', () => loose().missing(study.id, [], { retryFailed: 'yes' })],
  ['add nothing', () => loose().add(null)],
  ['add without an outcome', () => loose().add({ study: study.id, point: {} })],
  ['add without a message', () => loose().add({ ...trial(5), outcome: { status: 'wrong' } })],
  ['add of a worker', () => loose().add({ ...trial(5), worker: {} })],
  ['addStudy', () => loose().addStudy({ ...study, id: 'other', device: null })],
  ['studyOf', () => createStudy(kernel, { params: { m: 3 } }, DEVICE, { spaec: 'x' } as never)],
  ['studyOf sizes', () => createStudy(kernel, { params: { m: 'x' } } as never, DEVICE)],
]

test.each(WRONG)('%s', (_, call) => {
  const { code, expected } = refusal(call)
  expect(['api/argument', 'api/unknown-option']).toContain(code)
  expect(expected).not.toBe('')
  expect(records.query()).toHaveLength(3)
})

const junk = fc.oneof(
  fc.anything({ withDate: true, withBigInt: true, withMap: true, withTypedArray: true }),
  fc.constantFrom(Number.NaN, -0, Number.POSITIVE_INFINITY, Symbol('s'), () => 1),
)

describe('any arguments', () => {
  property([
    fc.constantFrom(
      'id',
      'studies',
      'kernel',
      'device',
      'trace',
      'status',
      'limit',
      'worker',
      'time',
      'point',
      'terms',
      'created',
      'seed',
      'data',
    ),
    junk,
  ])('a call returns or rejects, and the process continues', (field, value) => {
    for (const call of [
      () => loose().query({ [field]: value }),
      () => loose().best({ [field]: value }),
      () => loose().has(value),
      () => loose().missing(study.id, value),
      () => loose().add({ ...trial(0), [field]: value }),
      () => loose().addStudy({ ...study, [field]: value }),
    ])
      try {
        call()
      } catch (e) {
        expect(e).toBeInstanceOf(SptError)
      }
    expect(records.studies().length).toBeGreaterThanOrEqual(1)
    expect(records.query({ status: 'measured' }).length).toBeGreaterThanOrEqual(3)
  })
})

test('in-memory records create no file', () => {
  expect([records.path, existsSync(':memory:')]).toEqual([':memory:', false])
})
