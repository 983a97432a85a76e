/** Filters as conditions of SQL. Values are bound, never written into its text. */

import type { Connection } from './connection.ts'
import { traceHash } from './identity.ts'
import { bindable, type Cell } from './rows.ts'
import type { PruneOptions, RecordFilter } from './types.ts'

const placeholders = (values: readonly unknown[]): string => values.map(() => '?').join(', ')

const inList = (column: string, values: readonly Cell[]): [string, ...Cell[]] => [
  `${column} IN (${placeholders(values)})`,
  ...values,
]

/**
 * The clause `WHERE` over the table `studies` as `s`, and with `trials` over that as `t`; empty without conditions.
 */
export function where(
  f: RecordFilter,
  trials: boolean,
): { readonly sql: string; readonly values: readonly Cell[] } {
  const conditions: [string, ...Cell[]][] = []
  if (f.studies) conditions.push(inList('s.id', f.studies))
  if (f.kernel !== undefined) conditions.push(['? IN (s.kernel, s.kernel_name)', f.kernel])
  if (f.device !== undefined) conditions.push(['? IN (s.device_kind, s.device_name)', f.device])
  if (f.compiler !== undefined) conditions.push(['s.compiler = ?', f.compiler])
  if (f.fingerprint !== undefined) conditions.push(['s.fingerprint = ?', f.fingerprint])
  // In the order of characters all that begin so are neighbours, and an id has none after `f`.
  if (trials && f.id !== undefined) conditions.push(['t.id >= ? AND t.id < ?', f.id, `${f.id}g`])
  if (trials && f.since !== undefined) conditions.push(['t.time >= ?', f.since])
  if (trials && f.trace) conditions.push(['t.trace_hash = ?', traceHash(f.trace)])
  if (trials && f.status !== undefined)
    conditions.push(inList('t.status', typeof f.status === 'string' ? [f.status] : f.status))
  return clause(conditions)
}

const clause = (conditions: readonly (readonly [string, ...Cell[]])[]): ReturnType<typeof where> => ({
  sql: conditions.length === 0 ? '' : `WHERE ${conditions.map(([c]) => c).join(' AND ')}`,
  values: conditions.flatMap(([, ...values]) => values),
})

/** Inserts a row. @param conflict - Action if there is a row of this id, given the columns */
export function insertRow(
  db: Connection,
  table: 'studies' | 'trials',
  row: Readonly<Record<string, Cell>>,
  conflict: (columns: readonly string[]) => string,
): { readonly changes: number } {
  const columns = Object.keys(row)
  return db
    .prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${placeholders(columns)})
        ON CONFLICT (id) DO ${conflict(columns)}`,
    )
    .run(...bindable(Object.values(row)))
}

/**
 * Steps that gave a wrong result once are never the best, whatever their data, space and times: not of the same kernel,
 * kind of device and compiler.
 */
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
  // Not those that somebody has just begun.
  const deleteEmpty = db.prepare('DELETE FROM studies WHERE id = ? AND id NOT IN (SELECT study FROM trials)')
  for (const id of new Set([...deleted.map((t) => t.study), ...(isWholeStudy ? studies! : [])]))
    deleteEmpty.run(id)
  return deleted.length
}
