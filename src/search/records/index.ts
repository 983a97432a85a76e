/** Records of trials: one SQLite file, which several processes write concurrently. */

import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { expectArgument } from '../../ast/diagnostics/expect-argument.ts'
import { expectFields, FLAG } from '../../ast/diagnostics/value-kinds.ts'
import type { Point } from '../types.ts'
import { checkFilter, checkId, checkPoints, checkPrune, checkStudy, checkTrial } from './call-arguments.ts'
import { type Connection, transaction, withDiagnostics } from './connection.ts'
import { type ExportFormat, exportText } from './export.ts'
import { trialId } from './identity.ts'
import { openFile } from './open.ts'
import {
  type Cell,
  deleteTrials,
  insertRows,
  KEPT,
  NOT_DISQUALIFIED,
  type Row,
  studyCells,
  studyFrom,
  trialCells,
  trialFrom,
  where,
} from './queries.ts'
import {
  type PruneOptions,
  type RecordFilter,
  STATUSES,
  type Status,
  type StoredTrial,
  type Study,
  type StudySummary,
  type TrialRecord,
} from './types.ts'

export type { ExportFormat } from './export.ts'
export { EXPORT_FORMATS } from './export.ts'
export {
  compilerVersion,
  createStudy,
  deviceIdentity,
  fingerprintTensors,
  kernelHash,
  type StudyOptions,
  studyId,
  traceHash,
  trialId,
} from './identity.ts'
export { defaultRecordsPath } from './open.ts'
export type * from './types.ts'
export { STATUSES } from './types.ts'

export interface RecordsOptions {
  /** Nothing is written, and no file made. */
  readonly readonly?: boolean | undefined
}

/**
 * Opens the records file, creating it if it is missing (default: `records.db` in the user's cache folder).
 * @throws SptError `records/…` if it cannot be used; the file stays unchanged
 */
export async function openRecords(path?: string, options: RecordsOptions = {}): Promise<Records> {
  expectFields('openRecords', options, { readonly: FLAG })
  const isPath = path === undefined || (typeof path === 'string' && path !== '')
  expectArgument(isPath, 'the file of records', path, 'a path')
  const opened = await openFile(path, options.readonly ?? false)
  return new Records(opened.db, opened.path)
}

/** The better known trial of a point stays. */
const replaceIfBetter = (columns: readonly string[]): string =>
  `UPDATE SET ${columns.map((c) => `${c} = excluded.${c}`).join(', ')} WHERE ${KEPT}`

/** Milliseconds after which a search that did not add a trial counts as gone. */
const CLAIM_MS = 600_000
const OF_TRIALS = 'FROM trials t JOIN studies s ON s.id = t.study'

/** Milliseconds everywhere. Every call may throw `records/busy`, `records/corrupt`, `records/io`, and `records/closed`. */
export class Records {
  /** @internal From `openRecords`. */
  constructor(
    private db: Connection | null,
    readonly path: string,
  ) {}

  /** A study that trials can be added to; one that is there already stays as it is. @throws SptError `records/full` */
  addStudy(study: Study): void {
    checkStudy(study)
    this.#run((db) => transaction(db, () => insertRows(db, 'studies', [studyCells(study)], () => 'NOTHING')))
  }

  /**
   * Stores trials atomically and durably. If a point has a trial already, the better known stays: a wrong result, then one
   * that was decided, then a time rather than a bound, then the larger share of a measurement, then more samples, then the
   * first. Returns the number of trials stored.
   * @throws SptError `records/full`, `records/read-only`, `records/unknown-study`, `api/argument`
   */
  add(...trials: readonly TrialRecord[]): number {
    for (const t of trials) checkTrial(t)
    return this.#run((db) =>
      transaction(db, () => {
        const findStudy = db.prepare('SELECT 1 FROM studies WHERE id = ?')
        const unclaim = db.prepare('DELETE FROM claims WHERE trial = ?')
        for (const { study } of trials) if (!findStudy.get(study)) unknownStudy(study, this.path)
        const rows = trials.map(trialCells)
        for (const { id } of rows) unclaim.run(id)
        return insertRows(db, 'trials', rows, replaceIfBetter)
      }),
    )
  }

  /**
   * Claims points for a search, so that concurrent searches on the file try other points. A claim ends with `add`, or
   * after some minutes.
   * @param search - Identifier of the search
   * @param since - Points with a trial that ended since then are not claimed
   * @returns For each point, true if the search has claimed it
   */
  claim(study: string, points: readonly Point[], search: string, since: number): readonly boolean[] {
    return this.#run((db) =>
      transaction(db, () => {
        const now = Date.now()
        db.prepare('DELETE FROM claims WHERE until < ?').run(now)
        const done = db.prepare("SELECT 1 FROM trials WHERE id = ? AND time >= ? AND status <> 'bounded'")
        const claim = db.prepare('INSERT INTO claims VALUES (?, ?, ?) ON CONFLICT (trial) DO NOTHING')
        const holder = db.prepare('SELECT search FROM claims WHERE trial = ?').raw()
        return points.map((p) => {
          const id = trialId(study, p)
          if (done.get(id, since)) return false
          claim.run(id, search, now + CLAIM_MS)
          return (holder.get(id) as readonly string[])[0] === search
        })
      }),
    )
  }

  /** True if a trial has this id (`trialId`). */
  has(id: string): boolean {
    checkId('a trial', id)
    return this.#rows('SELECT 1 FROM trials WHERE id = ?', [id]).length > 0
  }

  get(id: string): StoredTrial | undefined {
    checkId('a trial', id)
    const [row] = this.#rows('SELECT * FROM trials WHERE id = ?', [id])
    return row && trialFrom(row)
  }

  study(id: string): Study | undefined {
    checkId('a study', id)
    const [row] = this.#rows('SELECT * FROM studies WHERE id = ?', [id])
    return row && studyFrom(row)
  }

  /**
   * The points, in their order, for which the study has no trial or only a bound. Failures count as trials unless they are to
   * be retried.
   */
  missing(
    study: string,
    points: readonly Point[],
    options: { readonly retryFailed?: boolean } = {},
  ): Point[] {
    checkId('a study', study)
    checkPoints(points)
    expectFields('missing', options, { retryFailed: FLAG })
    return this.#run((db) => {
      const find = db.prepare(
        `SELECT 1 FROM trials WHERE id = ? AND status <> 'bounded'${options.retryFailed ? " AND status <> 'failed'" : ''}`,
      )
      return points.filter((p) => find.get(trialId(study, p)) === undefined)
    })
  }

  /** Trials by their time, oldest first. */
  query(filter: RecordFilter = {}): StoredTrial[] {
    checkFilter('query', filter)
    const { sql, values } = where(filter)
    return this.#trials(`SELECT t.* ${OF_TRIALS} ${sql} ORDER BY t.time, t.rowid`, values, filter.limit)
  }

  /** Measured trials, fastest first (default: one), without those whose steps gave a wrong result anywhere. */
  best(filter: Omit<RecordFilter, 'status'> = {}): StoredTrial[] {
    checkFilter('best', filter)
    const { sql, values } = where({ ...filter, status: 'measured' })
    const query = `SELECT t.* ${OF_TRIALS} ${sql} AND ${NOT_DISQUALIFIED} ORDER BY t.median, t.rowid`
    return this.#trials(query, values, filter.limit ?? 1)
  }

  /** Studies with their trials counted, oldest first. */
  studies(
    filter: Pick<RecordFilter, 'studies' | 'kernel' | 'device' | 'compiler' | 'fingerprint'> = {},
  ): StudySummary[] {
    checkFilter('studies', filter)
    const { sql, values } = where(filter)
    const count = (status: Status): string => `count(*) FILTER (WHERE t.status = '${status}') AS ${status}`
    const rows = this.#rows(
      `SELECT s.*, ${STATUSES.map(count).join(', ')},
        min(t.median) AS best, max(t.time) AS latest
      FROM studies s LEFT JOIN trials t ON t.study = s.id ${sql} GROUP BY s.id ORDER BY s.created, s.rowid`,
      values,
    )
    return rows.map((row) => ({
      ...studyFrom(row),
      trials: Object.fromEntries(STATUSES.map((s) => [s, row[s] as number])) as Record<Status, number>,
      best: row.best as number | null,
      latest: row.latest as number | null,
    }))
  }

  /** All that a filter picks, as text: a table, JSON, or a journal that Optuna's `JournalStorage` reads. */
  export(format: ExportFormat, filter: RecordFilter = {}): string {
    const trials = this.query(filter)
    const usedStudies = new Set(trials.map((t) => t.study))
    // A study that has no trials is picked by its own properties alone.
    const { id, status, trace, limit, since, ...studyFilter } = filter
    const isNarrowed = [id, status, trace, limit, since].some((f) => f !== undefined)
    const studies = this.studies(studyFilter).filter((s) => !isNarrowed || usedStudies.has(s.id))
    return exportText(format, studies, trials)
  }

  /**
   * Deletes trials, and studies without any trial left; returns the number of trials. Wrong results, which disqualify
   * candidates, stay unless studies are the only selection.
   * @throws SptError `records/prune`, `records/unknown-study`, `records/read-only`
   */
  prune(options: PruneOptions): number {
    checkPrune(options)
    const removed = this.#run((db) =>
      transaction(db, () => {
        for (const id of options.studies ?? []) if (!this.study(id)) unknownStudy(id, this.path)
        return deleteTrials(db, options)
      }),
    )
    this.#shrink()
    return removed
  }

  close(): void {
    this.db?.close()
    this.db = null
  }

  /** Returns free space to the file system if no other process uses the file. */
  #shrink(): void {
    try {
      this.db?.exec('VACUUM')
    } catch {
      // It stays as large, and its room is used again.
    }
  }

  #run<T>(work: (db: Connection) => T): T {
    const db = this.db
    if (!db)
      return failWith('records/closed', `the records in '${this.path}' were closed`, {
        hint: 'open the records again: openRecords',
      })
    return withDiagnostics(this.path, () => work(db))
  }

  #rows(query: string, values: readonly Cell[]): Row[] {
    return this.#run((db) => db.prepare(query).all(...values) as Row[])
  }

  #trials(query: string, values: readonly Cell[], limit: number | undefined): StoredTrial[] {
    return this.#rows(limit === undefined ? query : `${query} LIMIT ${limit}`, values).map(trialFrom)
  }
}

function unknownStudy(id: string, path: string): never {
  return failWith('records/unknown-study', `there is no study ${id} in '${path}'`, {
    expected: 'the id of a study',
    hint: 'add the study first (addStudy); spt records list shows the stored studies',
  })
}
