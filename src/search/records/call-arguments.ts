/** Validates arguments of records' methods: the native code crashes on values other than text and numbers. */
import { expectArgument, expectOptions } from '../../ast/diagnostics/expect-argument.ts'
import {
  COUNT,
  either,
  expectValue,
  expectValues,
  FLAG,
  INTEGER,
  LIST,
  listOf,
  NUMBER,
  oneOf,
  RECORD,
  recordOf,
  TEXT,
  TEXTS,
  type ValueKind,
} from '../../ast/diagnostics/value-kinds.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { type PruneOptions, type RecordFilter, STATUSES, type Study, type TrialRecord } from './types.ts'

const STATUS = oneOf(STATUSES)
function isJson(x: unknown): boolean {
  try {
    JSON.stringify(x)
    return true
  } catch {
    return false
  }
}

/** Trace in the form of `toJSON`. */
const TRACE: ValueKind = {
  holds: (x) => Array.isArray(x) && isJson(x),
  expected: 'steps: a result of kernel.toJSON()',
}
const FILTER: Readonly<Record<keyof RecordFilter, ValueKind>> = {
  id: TEXT,
  studies: TEXTS,
  kernel: TEXT,
  device: TEXT,
  compiler: TEXT,
  fingerprint: TEXT,
  trace: TRACE,
  since: { ...NUMBER, expected: 'milliseconds since 1970: Date.now()' },
  status: either(STATUS, listOf(STATUS, 'a list of these')),
  limit: COUNT,
}

/** Filter fields of each method: all, or those that do not apply to single trials. */
const FIELDS: Readonly<Record<'query' | 'best' | 'studies', readonly (keyof RecordFilter)[]>> = {
  query: Object.keys(FILTER) as (keyof RecordFilter)[],
  best: (Object.keys(FILTER) as (keyof RecordFilter)[]).filter((f) => f !== 'status'),
  studies: ['studies', 'kernel', 'device', 'compiler', 'fingerprint'],
}

/** @throws SptError `api/argument`, `api/unknown-option` */
export function checkFilter(what: keyof typeof FIELDS, filter: RecordFilter): void {
  expectOptions(what, filter, FIELDS[what])
  expectValues(filter, FILTER)
}

/** @throws SptError `api/argument`, `api/unknown-option` */
export function checkPrune(options: PruneOptions): void {
  expectOptions('prune', options, ['olderThan', 'keepBest', 'studies'])
  expectValues(options, {
    olderThan: { ...NUMBER, expected: 'milliseconds since 1970: Date.now() - 86_400_000' },
    keepBest: COUNT,
    studies: TEXTS,
  })
}

/** @throws SptError `api/argument` */
export const checkId = (owner: string, id: unknown): void => expectValue(`the id of ${owner}`, id, TEXT)

const VALUES: ValueKind = {
  holds: (x) => typeof x === 'string' || (typeof x === 'number' && Number.isFinite(x)),
  expected: 'numbers and texts by decision',
}
const POINT = recordOf(VALUES, VALUES.expected)

/** @throws SptError `api/argument` */
export function checkPoints(points: unknown): void {
  expectValue('points', points, LIST)
  for (const point of points as readonly unknown[]) expectValue('a point', point, POINT)
}

/** @throws SptError `api/argument` */
export function checkStudy(study: Study): void {
  expectValue('a study', study, { ...RECORD, expected: 'a result of createStudy' })
  const texts = ['id', 'kernel', 'kernelName', 'space', 'compiler', 'fingerprint'] as const
  for (const field of texts) expectValue(`${field} of a study`, study[field], TEXT)
  expectValue('the device of a study', study.device, { ...RECORD, expected: 'a result of deviceIdentity' })
  expectValue('the kind of a device', study.device.kind, oneOf(DEVICE_KINDS))
  for (const field of ['name', 'driver'] as const)
    expectValue(`the ${field} of a device`, study.device[field], TEXT)
  expectValue('sizes of a study', study.sizes, recordOf(NUMBER, 'numbers by name'))
  expectValue('created of a study', study.created, TIME)
  expectValues(study, { strategy: TEXT, seed: INTEGER, data: DATA })
}

/** Files have whole ones. */
const TIME: ValueKind = { ...INTEGER, expected: 'milliseconds since 1970: Date.now()' }
const DATA: ValueKind = {
  holds: (x) => RECORD.holds(x) && Array.isArray((x as { tensors?: unknown }).tensors) && isJson(x),
  expected: '{ name, tensors }: from a result of studyOf',
}

const isMs = (x: unknown): boolean => typeof x === 'number' && Number.isFinite(x) && x >= 0
const MS: ValueKind = { holds: isMs, expected: 'a number of 0 or more' }

/** @throws SptError `api/argument` for values that a file would not preserve */
export function checkTrial(t: TrialRecord): void {
  expectValue('a trial', t, { ...RECORD, expected: '{ study, point, outcome }' })
  checkId('the study of a trial', t.study)
  expectValue('the point of a trial', t.point, POINT)
  const o = t.outcome
  expectValue('the outcome of a trial', o, { ...RECORD, expected: '{ status, … }' })
  expectValue('the status', o.status, STATUS)
  expectValues(t, {
    share: MS,
    predicted: MS,
    duration: MS,
    bytes: MS,
    relativeError: MS,
    sampled: FLAG,
    time: TIME,
    steps: TEXTS,
    trace: TRACE,
    worker: TEXT,
    terms: recordOf(NUMBER, 'numbers by term'),
  })
  if (o.status === 'bounded') {
    expectValue('the bound of an outcome', o.atMost, MS)
    return
  }
  if (o.status !== 'measured') {
    expectValue('the message of an outcome', o.message, TEXT)
    if (o.status !== 'wrong') expectValue('the code of an outcome', o.code, TEXT)
    return
  }
  expectValue('the timing of an outcome', o.timing, { ...RECORD, expected: '{ median, interval, samples }' })
  const { median, interval, samples } = o.timing
  const isInterval =
    interval === null || (Array.isArray(interval) && interval.length === 2 && interval.every(isMs))
  expectArgument(isMs(median) && isInterval, 'the median and its interval', o.timing, 'milliseconds')
  const isSamples = Array.isArray(samples) && samples.length > 0 && samples.every(isMs)
  expectArgument(isSamples, 'the samples', samples, 'milliseconds')
}
