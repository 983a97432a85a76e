/** Trials of studies as rows of a records file, which workers on all machines that share the file claim. */
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { DISPOSE } from '../../runtime/dispose.ts'
import { type Connection, transaction, withDiagnostics } from '../records/connection.ts'
import { trialId } from '../records/identity.ts'
import { openFile } from '../records/open.ts'
import type { DeviceIdentity, TrialRecord } from '../records/types.ts'
import type { SharedReport, SharedStudy, SharedTrial } from './rebuild.ts'

/** Number of attempts for a trial that its worker could not run. */
const ATTEMPTS = 2
/** Number of attempts for a trial whose workers were killed, after which the trial counts as their cause. */
const MAX_LOST = 3

/** Fields that identify a trial within its study. */
export type TrialKey = Pick<SharedTrial, 'point' | 'share'>

/** Workers take trials of the same kind of device, chip, driver and compiler only, because times hold for these. */
export interface Served {
  readonly device: DeviceIdentity
  readonly compiler: string
}

export interface TrialJob {
  readonly id: string
  readonly shared: SharedStudy
  readonly trial: SharedTrial
}

export interface Collected {
  readonly record: TrialRecord
  /** No worker could run the trial. */
  readonly hasFailed: boolean
}

/** Text of a device and compiler: equal if and only if they are the same. */
export const servedKey = ({ device: { kind, name, driver }, compiler }: Served): string =>
  JSON.stringify({ device: { kind, name, driver }, compiler } satisfies Served)

const jobId = (study: string, { point, share = 1 }: TrialKey): string =>
  `${trialId(study, point)}${share === 1 ? '' : `-${share}`}`

const OPEN_JOBS = `FROM jobs JOIN shared_studies s ON s.id = jobs.study
  WHERE s.served = ? AND report IS NULL AND failure IS NULL`

/** Every call may throw `records/…`, as those of `Records`. */
export class TrialQueue {
  private constructor(
    private readonly db: Connection,
    readonly path: string,
  ) {}

  /** @throws SptError `records/…` if the file cannot be used */
  static async open(file: string): Promise<TrialQueue> {
    const { db, path } = await openFile(file, false)
    return new TrialQueue(db, path)
  }

  /**
   * Adds a study, and those of its trials that are not there yet; trials that failed on workers are attempted again.
   * Returns the number of these.
   */
  publish(shared: SharedStudy, trials: readonly SharedTrial[]): number {
    const { id } = shared.study
    return this.#run(() => {
      this.#write(
        'INSERT INTO shared_studies VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET shared = excluded.shared',
        id,
        servedKey(shared.study),
        JSON.stringify(shared),
      )
      const add = this.db.prepare(
        `INSERT INTO jobs (id, study, trial) VALUES (?, ?, ?)
        ON CONFLICT (id) DO UPDATE SET failure = NULL, attempts = 0, until = 0 WHERE failure IS NOT NULL`,
      )
      return trials.reduce((n, t) => n + add.run(jobId(id, t), id, JSON.stringify(t)).changes, 0)
    })
  }

  /** Claims a trial for a worker until a time; undefined if none is left to claim. */
  take(worker: string, served: Served, until: number): TrialJob | undefined {
    const [row] = this.#run(() => {
      this.#write(
        `UPDATE jobs SET failure = 'the worker sent no result'
        WHERE attempts >= ${MAX_LOST} AND until < ? AND report IS NULL`,
        Date.now(),
      )
      // A repeated trial comes last, so that another worker may take it.
      const found = this.#rows(
        `SELECT jobs.id, trial, shared ${OPEN_JOBS} AND until < ? ORDER BY attempts, jobs.rowid LIMIT 1`,
        servedKey(served),
        Date.now(),
      )
      const claim = 'UPDATE jobs SET worker = ?, until = ?, attempts = attempts + 1 WHERE id = ?'
      for (const { id } of found) this.#write(claim, worker, until, id!)
      return found
    })
    return row && { id: row.id!, trial: JSON.parse(row.trial!), shared: JSON.parse(row.shared!) }
  }

  /** True if a trial is waiting, or is run by any worker. */
  hasOpenTrials(served: Served): boolean {
    return this.#run(() => this.#rows(`SELECT 1 ${OPEN_JOBS} LIMIT 1`, servedKey(served))).length > 0
  }

  /** Stores the result of a trial, unless another worker has done it. */
  finish(job: string, report: SharedReport): void {
    const store = 'UPDATE jobs SET report = ?, failure = NULL WHERE id = ? AND report IS NULL'
    this.#run(() => this.#write(store, JSON.stringify(report), job))
  }

  /** Gives a trial back, for another attempt if there are any left. */
  giveBack(job: string, reason: string): void {
    const failure = `CASE WHEN attempts >= ${ATTEMPTS} THEN ? END`
    this.#run(() => this.#write(`UPDATE jobs SET until = 0, failure = ${failure} WHERE id = ?`, reason, job))
  }

  /** Keeps a worker's entry and its claim until a time; 0 ends them. */
  renew(worker: string, served: Served, until: number): void {
    this.#run(() => {
      this.#write('DELETE FROM workers WHERE id = ? OR until < ?', worker, Date.now())
      if (until > 0) this.#write('INSERT INTO workers VALUES (?, ?, ?)', worker, servedKey(served), until)
      this.#write('UPDATE jobs SET until = ? WHERE worker = ? AND until > 0', until, worker)
    })
  }

  /** Devices and compilers of all workers. */
  workers(): readonly Served[] {
    const rows = this.#run(() => this.#rows('SELECT served FROM workers WHERE until >= ?', Date.now()))
    return rows.map(({ served }) => JSON.parse(served!) as Served)
  }

  /** The study as it was published. @throws SptError `studies/unknown` */
  study(id: string): SharedStudy {
    const [row] = this.#run(() => this.#rows('SELECT shared FROM shared_studies WHERE id = ?', id))
    return row ? (JSON.parse(row.shared!) as SharedStudy) : this.#unknown(id)
  }

  trials(study: string): readonly SharedTrial[] {
    const rows = this.#run(() => this.#rows('SELECT trial FROM jobs WHERE study = ? ORDER BY rowid', study))
    return rows.map(({ trial }) => JSON.parse(trial!) as SharedTrial)
  }

  /** Results in order, undefined if not done. @throws SptError `studies/unknown` if the study was removed */
  results(study: string, trials: readonly TrialKey[]): readonly (Collected | undefined)[] {
    return this.#run(() =>
      trials.map((t) => {
        const [row] = this.#rows('SELECT trial, report, failure FROM jobs WHERE id = ?', jobId(study, t))
        return row ? resultOf(study, row) : this.#unknown(study)
      }),
    )
  }

  /** Removes a study with its trials. */
  remove(study: string): void {
    this.#run(() => this.#write('DELETE FROM shared_studies WHERE id = ?', study))
  }

  [DISPOSE](): void {
    this.db.close()
  }

  #rows(query: string, ...values: readonly (string | number)[]): TextRow[] {
    return this.db.prepare(query).all(...values) as TextRow[]
  }

  #write(statement: string, ...values: readonly (string | number)[]): void {
    this.db.prepare(statement).run(...values)
  }

  #run<T>(work: () => T): T {
    return withDiagnostics(this.path, () => transaction(this.db, work))
  }

  #unknown(id: string): never {
    return failWith('studies/unknown', `there is no study ${id} in '${this.path}'`, {
      expected: 'a published study',
      hint: 'publish the study again; finished trials are kept',
    })
  }
}

type TextRow = Readonly<Record<string, string | null>>

function resultOf(study: string, { trial, report, failure }: TextRow): Collected | undefined {
  const { point, share, trace, predicted, terms } = JSON.parse(trial!) as SharedTrial
  const given = { study, point, share, trace, predicted, terms }
  if (report) {
    // Fields of the report override those of the trial.
    return { record: { ...given, ...(JSON.parse(report) as SharedReport) }, hasFailed: false }
  }
  if (!failure) return undefined
  // The outcome does not concern the point.
  const outcome = { status: 'failed', code: 'studies/worker', message: failure } as const
  return { record: { ...given, outcome, time: Date.now() }, hasFailed: true }
}
