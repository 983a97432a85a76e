/** Validates arguments of records' methods: the native code crashes on values other than text and numbers. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import {
  COUNT,
  either,
  expectFields,
  expectValue,
  expectValues,
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
import { outcomeFault } from '../outcomes.ts'
import {
  DEVICE_FIELDS,
  DURATION,
  OPTIONAL_STUDY_FIELDS,
  STUDY_FIELDS,
  TIME,
  TRACE,
  TRIAL_FIELDS,
} from './queries.ts'
import { type PruneOptions, type RecordFilter, STATUSES, type Study, type TrialRecord } from './types.ts'

type Kinds = Readonly<Record<string, ValueKind>>

const kindsOf = (fields: Readonly<Record<string, { readonly kind: ValueKind }>>): Kinds =>
  Object.fromEntries(Object.entries(fields).map(([name, { kind }]) => [name, kind]))

const STATUS = oneOf(STATUSES)

const STUDY_FILTER = { studies: TEXTS, kernel: TEXT, device: TEXT, compiler: TEXT, fingerprint: TEXT }
const BEST_FILTER = {
  ...STUDY_FILTER,
  id: TEXT,
  trace: TRACE,
  since: { ...NUMBER, expected: TIME.expected },
  limit: COUNT,
}
/** Fields of each method's filter. */
const FILTERS = {
  query: { ...BEST_FILTER, status: either(STATUS, listOf(STATUS, 'a list of these')) },
  best: BEST_FILTER,
  studies: STUDY_FILTER,
} as const satisfies Record<string, Partial<Record<keyof RecordFilter, ValueKind>>>

/** @throws SptError `api/argument`, `api/unknown-option` */
export function checkFilter(what: keyof typeof FILTERS, filter: RecordFilter): void {
  expectFields<object>(what, filter, FILTERS[what])
}

const PRUNE: Readonly<Record<keyof PruneOptions, ValueKind>> = {
  olderThan: { ...NUMBER, expected: 'milliseconds since 1970: Date.now() - 86_400_000' },
  keepBest: COUNT,
  studies: TEXTS,
}

/** @throws SptError `api/argument`, `api/unknown-option`; `records/prune` if no option selects trials */
export function checkPrune(options: PruneOptions): void {
  expectFields('prune', options, PRUNE)
  if (Object.values(options).every((x) => x === undefined))
    failWith('records/prune', 'everything would be forgotten', {
      expected: 'olderThan, keepBest or studies',
      hint: 'remove the file to forget everything',
    })
}

export const checkId = (owner: string, id: unknown): void => expectValue(`the id of ${owner}`, id, TEXT)

const VALUES: ValueKind = {
  holds: (x) => typeof x === 'string' || (typeof x === 'number' && Number.isFinite(x)),
  expected: 'numbers and texts by decision',
}
const POINT = recordOf(VALUES, VALUES.expected)

export function checkPoints(points: unknown): void {
  expectValue('points', points, LIST)
  for (const point of points as readonly unknown[]) expectValue('a point', point, POINT)
}

function expectAll(subject: string, values: object, kinds: Kinds): void {
  for (const [name, kind] of Object.entries(kinds))
    expectValue(`${name} of ${subject}`, (values as Readonly<Record<string, unknown>>)[name], kind)
}

export function checkStudy(study: Study): void {
  expectValue('a study', study, { ...RECORD, expected: 'a result of createStudy' })
  expectAll('a study', study, {
    ...kindsOf(STUDY_FIELDS),
    device: { ...RECORD, expected: 'a result of deviceIdentity' },
  })
  expectAll('a device', study.device, kindsOf(DEVICE_FIELDS))
  expectValues(study, kindsOf(OPTIONAL_STUDY_FIELDS))
}

/** @throws SptError `api/argument` for values that a file would not preserve */
export function checkTrial(t: TrialRecord): void {
  expectValue('a trial', t, { ...RECORD, expected: '{ study, point, outcome }' })
  checkId('the study of a trial', t.study)
  expectValue('the point of a trial', t.point, POINT)
  expectValues(t, { ...kindsOf(TRIAL_FIELDS), time: TIME })
  const fault = outcomeFault(t.outcome)
  if (fault) failWith('api/argument', fault.what, { expected: fault.expected })
  if (t.outcome.status === 'bounded') expectValue('the bound of an outcome', t.outcome.atMost, DURATION)
  if (t.outcome.status !== 'measured') return
  const { samples } = t.outcome.timing
  expectArgument(samples.length > 0, 'the samples', samples, 'milliseconds')
}
