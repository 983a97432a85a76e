/** Filters as conditions of SQL. Values are bound, never written into its text. */

import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import {
  FLAG,
  INTEGER,
  NUMBER,
  oneOf,
  RECORD,
  recordOf,
  TEXT,
  TEXTS,
  type ValueKind,
} from '../../ast/diagnostics/value-kinds.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import type { Outcome, Point } from '../types.ts'
import type { Connection } from './connection.ts'
import { traceHash, trialId } from './identity.ts'
import type { PruneOptions, RecordFilter, Status, StoredTrial, Study, TrialRecord } from './types.ts'

const placeholders = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

const inList = (column: string, values: readonly Cell[]): [string, ...Cell[]] => [
  `${column} IN (${placeholders(values)})`,
  ...values,
]

/** The clause `WHERE` over `studies` as `s` and `trials` as `t`; empty without conditions. */
export function where(f: RecordFilter): { readonly sql: string; readonly values: readonly Cell[] } {
  const conditions: [string, ...Cell[]][] = []
  if (f.studies) conditions.push(inList('s.id', f.studies))
  if (f.kernel !== undefined) conditions.push(['? IN (s.kernel, s.kernel_name)', f.kernel])
  if (f.device !== undefined) conditions.push(['? IN (s.device_kind, s.device_name)', f.device])
  if (f.compiler !== undefined) conditions.push(['s.compiler = ?', f.compiler])
  if (f.fingerprint !== undefined) conditions.push(['s.fingerprint = ?', f.fingerprint])
  // In the order of characters all that begin so are neighbours, and an id has none after `f`.
  if (f.id !== undefined) conditions.push(['t.id >= ? AND t.id < ?', f.id, `${f.id}g`])
  if (f.since !== undefined) conditions.push(['t.time >= ?', f.since])
  if (f.trace) conditions.push(['t.trace_hash = ?', traceHash(f.trace)])
  if (f.status !== undefined)
    conditions.push(inList('t.status', typeof f.status === 'string' ? [f.status] : f.status))
  return clause(conditions)
}

const clause = (conditions: readonly (readonly [string, ...Cell[]])[]): ReturnType<typeof where> => ({
  sql: conditions.length === 0 ? '' : `WHERE ${conditions.map(([c]) => c).join(' AND ')}`,
  values: conditions.flatMap(([, ...values]) => values),
})

/** Inserts rows of the same columns; returns the number of rows written. @param conflict - Action if the id exists */
export function insertRows(
  db: Connection,
  table: 'studies' | 'trials',
  rows: readonly Readonly<Record<string, Cell>>[],
  conflict: (columns: readonly string[]) => string,
): number {
  const columns = Object.keys(rows[0] ?? {})
  if (columns.length === 0) return 0
  const insert = db.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns)})
      ON CONFLICT (id) DO ${conflict(columns)}`,
  )
  return rows.reduce((n, row) => n + insert.run(...bindable(Object.values(row))).changes, 0)
}

/** Steps that gave a wrong result for the same kernel, kind of device and compiler are never the best. */
export const NOT_DISQUALIFIED = `NOT EXISTS (
  SELECT 1 FROM trials w JOIN studies ws ON ws.id = w.study
  WHERE w.trace_hash = t.trace_hash AND w.status = 'wrong' AND ws.kernel = s.kernel
    AND ws.device_kind = s.device_kind AND ws.compiler = s.compiler)`

const BOTH = "trials.status = 'measured' AND excluded.status = 'measured'"
const rank = (t: 'trials' | 'excluded'): string => `(
  CASE ${t}.status WHEN 'wrong' THEN 3 WHEN 'failed' THEN 0 WHEN 'bounded' THEN 1 ELSE 2 END,
  iif(${BOTH}, coalesce(${t}.share, 1), 0),
  iif(${BOTH}, length(${t}.samples), 0))`

/** A point that has become other steps: its space was changed, and kept its name. */
const OTHER_STEPS = "(trials.trace_hash <> excluded.trace_hash AND trials.status <> 'wrong')"

/**
 * SQL condition that a new trial replaces the stored one of its point. In this order: a wrong result wins, then the later one
 * if the steps differ, a decided outcome over a failure, a time over a bound, the larger share of a measurement, more
 * samples, the first.
 */
export const KEPT = `${OTHER_STEPS} OR ${rank('excluded')} > ${rank('trials')}`

// Deletes trials, and studies without any trial left.

/** Deletes trials within a transaction; returns their number. */
export function deleteTrials(db: Connection, { olderThan, keepBest, studies }: PruneOptions): number {
  const conditions: [string, ...Cell[]][] = studies ? [inList('study', studies)] : []
  const isWholeStudy = olderThan === undefined && keepBest === undefined
  if (olderThan !== undefined) conditions.push(['time < ?', olderThan])
  if (keepBest !== undefined)
    conditions.push([
      `id NOT IN (SELECT id FROM (
      SELECT id, row_number() OVER (PARTITION BY study ORDER BY median, rowid) AS place
      FROM trials WHERE status = 'measured') WHERE place <= ?)`,
      keepBest,
    ])
  if (!isWholeStudy) conditions.push(["status <> 'wrong'"])
  const { sql, values } = clause(conditions)
  const deleted = db.prepare(`DELETE FROM trials ${sql} RETURNING study`).all(...values) as {
    readonly study: string
  }[]
  // Empty studies without deleted trials stay: another process may have just begun them.
  const deleteEmpty = db.prepare('DELETE FROM studies WHERE id = ? AND id NOT IN (SELECT study FROM trials)')
  for (const id of new Set([...deleted.map((t) => t.study), ...(isWholeStudy ? studies! : [])]))
    deleteEmpty.run(id)
  return deleted.length
}

// Studies and trials as rows of the records file, and back.

/** Values that may be bound to a statement: the native code crashes on others. */
export type Cell = string | number | null | Buffer
export type Row = Readonly<Record<string, Cell | ArrayBuffer>>
type Cells = Readonly<Record<string, Cell>>

/** A field: the values that a file preserves, and how its column stores them. */
interface Field {
  readonly column: string
  readonly kind: ValueKind
  readonly cell: (value: never) => Cell
  readonly value: (cell: never) => unknown
}

const plain = (column: string, kind: ValueKind): Field => ({ column, kind, cell: (x) => x, value: (x) => x })
const json = (column: string, kind: ValueKind): Field => ({
  column,
  kind,
  cell: JSON.stringify,
  value: JSON.parse,
})

function isJson(x: unknown): boolean {
  try {
    JSON.stringify(x)
    return true
  } catch {
    return false
  }
}

export const DURATION: ValueKind = {
  holds: (x) => typeof x === 'number' && Number.isFinite(x) && x >= 0,
  expected: 'a number of 0 or more',
}
/** Files have whole ones. */
export const TIME: ValueKind = { ...INTEGER, expected: 'milliseconds since 1970: Date.now()' }
/** Trace in the form of `toJSON`. */
export const TRACE: ValueKind = {
  holds: (x) => Array.isArray(x) && isJson(x),
  expected: 'steps: a result of kernel.toJSON()',
}
const DATA: ValueKind = {
  holds: (x) => RECORD.holds(x) && Array.isArray((x as { tensors?: unknown }).tensors) && isJson(x),
  expected: '{ name, tensors }: from a result of studyOf',
}

export const STUDY_FIELDS = {
  id: plain('id', TEXT),
  kernel: plain('kernel', TEXT),
  kernelName: plain('kernel_name', TEXT),
  space: plain('space', TEXT),
  compiler: plain('compiler', TEXT),
  fingerprint: plain('fingerprint', TEXT),
  sizes: json('sizes', recordOf(NUMBER, 'numbers by name')),
  created: plain('created', TIME),
} as const satisfies Partial<Record<keyof Study, Field>>

export const DEVICE_FIELDS = {
  kind: plain('device_kind', oneOf(DEVICE_KINDS)),
  name: plain('device_name', TEXT),
  driver: plain('driver', TEXT),
} as const satisfies Record<keyof Study['device'], Field>

export const OPTIONAL_STUDY_FIELDS = {
  strategy: plain('strategy', TEXT),
  seed: plain('seed', INTEGER),
  data: json('data', DATA),
} as const satisfies Partial<Record<keyof Study, Field>>

export const TRIAL_FIELDS = {
  steps: json('steps', TEXTS),
  trace: json('trace', TRACE),
  share: plain('share', DURATION),
  bytes: plain('bytes', DURATION),
  relativeError: plain('relative_error', DURATION),
  sampled: { column: 'sampled', kind: FLAG, cell: Number, value: (x) => x === 1 },
  predicted: plain('predicted', DURATION),
  terms: json('terms', recordOf(NUMBER, 'numbers by term')),
  duration: plain('duration', DURATION),
  worker: plain('worker', TEXT),
} as const satisfies Partial<Record<keyof TrialRecord, Field>>

const cellsOf = (values: object, fields: Readonly<Record<string, Field>>): Cells =>
  Object.fromEntries(
    Object.entries(fields).map(([name, { column, cell }]) => {
      const value = (values as Readonly<Record<string, unknown>>)[name]
      return [column, value === undefined ? null : cell(value as never)]
    }),
  )

const valuesFrom = (row: Row, fields: Readonly<Record<string, Field>>): object =>
  Object.fromEntries(
    Object.entries(fields).flatMap(([name, { column, value }]) =>
      row[column] === null ? [] : [[name, value(row[column] as never)]],
    ),
  )

/** Truncates texts at a NUL, as SQLite's readers do. */
const bindable = (cells: readonly Cell[]): Cell[] =>
  cells.map((c) => {
    const isCell = c === null || typeof c === 'string' || Number.isFinite(c) || Buffer.isBuffer(c)
    expectArgument(isCell, 'what is kept', c, 'a text or a number')
    return typeof c === 'string' ? c.replaceAll('\0', '\ufffd') : c
  })

export const studyCells = (s: Study): Cells => ({
  ...cellsOf(s, STUDY_FIELDS),
  ...cellsOf(s.device, DEVICE_FIELDS),
  ...cellsOf(s, OPTIONAL_STUDY_FIELDS),
})

export const studyFrom = (row: Row): Study =>
  ({
    ...valuesFrom(row, STUDY_FIELDS),
    device: valuesFrom(row, DEVICE_FIELDS),
    ...valuesFrom(row, OPTIONAL_STUDY_FIELDS),
  }) as Study

export function trialCells(t: TrialRecord): Cells {
  const o = t.outcome
  const timing = o.status === 'measured' ? o.timing : null
  return {
    id: trialId(t.study, t.point),
    study: t.study,
    point: JSON.stringify(t.point),
    trace_hash: t.trace === undefined ? null : traceHash(t.trace),
    status: o.status,
    code: 'code' in o ? o.code : null,
    message: 'message' in o ? o.message : null,
    samples: timing && samplesBlob(timing.samples),
    median: timing?.median ?? null,
    low: timing?.interval?.[0] ?? null,
    high: o.status === 'bounded' ? o.atMost : (timing?.interval?.[1] ?? null),
    time: t.time ?? Date.now(),
    ...cellsOf(t, TRIAL_FIELDS),
  }
}

export const trialFrom = (row: Row): StoredTrial => ({
  id: row.id as string,
  study: row.study as string,
  point: JSON.parse(row.point as string) as Point,
  outcome: outcomeFrom(row),
  ...valuesFrom(row, TRIAL_FIELDS),
  time: row.time as number,
})

function outcomeFrom(row: Row): Outcome {
  const status = row.status as Status
  const message = row.message as string
  if (status === 'wrong') return { status, message }
  if (status === 'bounded') return { status, atMost: row.high as number }
  if (status !== 'measured') return { status, code: row.code as string, message }
  const interval = row.low === null ? null : ([row.low as number, row.high as number] as const)
  const samples = samplesFrom(row.samples as Buffer)
  return { status, timing: { median: row.median as number, interval, samples } }
}

function samplesBlob(samples: readonly number[]): Buffer {
  const bytes = Buffer.alloc(8 * samples.length)
  for (const [k, s] of samples.entries()) bytes.writeDoubleLE(s, 8 * k)
  return bytes
}

function samplesFrom(blob: Buffer | ArrayBuffer): number[] {
  const bytes = Buffer.isBuffer(blob) ? blob : Buffer.from(blob)
  return Array.from({ length: bytes.length / 8 }, (_, k) => bytes.readDoubleLE(8 * k))
}
