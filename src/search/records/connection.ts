/** A connection to a SQLite file through `libsql`, which is optional, and diagnostics for its errors. */
import type Libsql from 'libsql'
import { failWith, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { importOptional } from '../../ast/diagnostics/optional-packages.ts'

export type Connection = Libsql.Database

/** Milliseconds that a writer waits for others. Each holds the file for a few. */
const PATIENCE_MS = 20_000

/** @throws SptError `records/unavailable` where libsql is not installed or has no build for this platform */
export async function loadLibsql(): Promise<typeof Libsql> {
  const libsql = await importOptional('records need', 'libsql', async () => (await import('libsql')).default)
  return 'reason' in libsql ? failWith('records/unavailable', libsql.reason, { hint: libsql.hint }) : libsql
}

/** @throws SptError `records/…` */
export function connect(Database: typeof Libsql, path: string, address: string): Connection {
  return withDiagnostics(path, () => {
    const db = new Database(address, { timeout: PATIENCE_MS } as Libsql.Options)
    db.exec('PRAGMA foreign_keys = ON')
    return db
  })
}

/** The only column of the only row. */
export function columnOf<T>(db: Connection, query: string): T {
  return (db.prepare(query).raw().get() as readonly [T])[0]
}

/** All or nothing. Others wait meanwhile, and so no transaction has to be begun again. */
export function transaction<T>(db: Connection, work: () => T): T {
  withRetries(() => db.exec('BEGIN IMMEDIATE'))
  try {
    const result = work()
    db.exec('COMMIT')
    return result
  } catch (e) {
    // If the disk is full, SQLite has already rolled the transaction back.
    if (db.inTransaction) db.exec('ROLLBACK')
    throw e
  }
}

/** The file is locked as long as others recover it or change its mode, for which SQLite itself does not wait. */
export function withRetries<T>(work: () => T): T {
  for (const until = Date.now() + PATIENCE_MS; ; ) {
    try {
      return work()
    } catch (e) {
      if (codeOf(e) !== BUSY || Date.now() > until) throw e
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1 + Math.random() * 10)
    }
  }
}

const BUSY = 5

function codeOf(error: unknown): number | undefined {
  if (!(error instanceof Error)) return undefined
  const { rawCode } = error as { rawCode?: unknown }
  // Errors of opening a file have no code, only text: `ConnectionFailed("Unable to open … : 14")`.
  const text = /ConnectionFailed\(.*: (\d+)"\)/s.exec(error.message)
  const code = typeof rawCode === 'number' ? rawCode : text ? Number(text[1]) : undefined
  return code === undefined ? undefined : code & 0xff
}

const OTHER_FILE = 'name another file'
const PERMISSIONS = 'change the permissions of the file and the folder, or name another file'

/** Diagnostics about a file, by SQLite's primary result code: code, message, hint. */
const MEANINGS: Readonly<
  Record<number, readonly [code: string, about: (file: string) => string, hint: string]>
> = {
  [BUSY]: [
    'records/busy',
    (f) => `another process has held ${f} for ${PATIENCE_MS / 1000} s`,
    `end it, or ${OTHER_FILE}`,
  ],
  8: ['records/read-only', (f) => `${f} cannot be written`, PERMISSIONS],
  10: [
    'records/io',
    (f) => `${f} cannot be read or written`,
    'look at the disk, the quota and the limits of files',
  ],
  11: ['records/corrupt', (f) => `${f} is damaged`, `restore a copy, or ${OTHER_FILE}`],
  13: [
    'records/full',
    (f) => `the disk is full: cannot write ${f}`,
    'free disk space; earlier records are unchanged',
  ],
  14: ['records/unreadable', (f) => `${f} cannot be opened`, PERMISSIONS],
  26: ['records/not-a-database', (f) => `${f} is not a database`, `${OTHER_FILE}: this file stays unchanged`],
}

/** Runs `work`, and translates SQLite's errors to diagnostics about its file. @throws SptError `records/…` */
export function withDiagnostics<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (e) {
    const meaning = MEANINGS[codeOf(e) ?? -1]
    if (!meaning || e instanceof SptError) throw e
    const [code, about, hint] = meaning
    const message = `${about(`'${path}'`)}: ${(e as Error).message}`
    throw new SptError({ code, message, hint })
  }
}

// Schema of the records file: marks and tables.

/** `SPTR`: application id of this package's SQLite files. */
export const APPLICATION = 0x53505452

/** Version of the tables. Versions before it were never released. */
export const VERSION = 6

const TABLES = `
  CREATE TABLE studies (
    id TEXT PRIMARY KEY,
    kernel TEXT NOT NULL,
    kernel_name TEXT NOT NULL,
    space TEXT NOT NULL,
    device_kind TEXT NOT NULL,
    device_name TEXT NOT NULL,
    driver TEXT NOT NULL,
    compiler TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    sizes TEXT NOT NULL, -- JSON
    strategy TEXT,
    seed INTEGER,
    created INTEGER NOT NULL, -- milliseconds since 1970
    data TEXT -- JSON
  ) STRICT;
  CREATE INDEX studies_of_kernels ON studies (kernel, device_kind);
  CREATE TABLE trials (
    id TEXT PRIMARY KEY,
    study TEXT NOT NULL REFERENCES studies (id),
    point TEXT NOT NULL, -- JSON
    steps TEXT, -- JSON
    trace TEXT, -- JSON
    trace_hash TEXT,
    status TEXT NOT NULL CHECK (status IN ('rejected', 'failed', 'wrong', 'bounded', 'measured')),
    code TEXT,
    message TEXT,
    samples BLOB, -- milliseconds as float64, little-endian
    median REAL,
    low REAL,
    high REAL, -- of a bounded trial, the bound
    share REAL, -- of a whole measurement; NULL: all of it
    bytes REAL,
    relative_error REAL,
    sampled INTEGER,
    predicted REAL,
    terms TEXT, -- JSON
    duration REAL,
    worker TEXT,
    time INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;
  CREATE INDEX trials_of_studies ON trials (study, status, median);
  CREATE INDEX trials_of_traces ON trials (trace_hash);
  -- Trials that a search is at, so that others on the file try other points.
  CREATE TABLE claims (
    trial TEXT PRIMARY KEY,
    search TEXT NOT NULL,
    until INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;
  -- Trials that workers run, on several machines.
  CREATE TABLE shared_studies (
    id TEXT PRIMARY KEY,
    served TEXT NOT NULL, -- JSON: device and compiler
    shared TEXT NOT NULL -- JSON
  ) STRICT;
  CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    study TEXT NOT NULL REFERENCES shared_studies (id) ON DELETE CASCADE,
    trial TEXT NOT NULL, -- JSON
    report TEXT, -- JSON; NULL until it is done
    failure TEXT, -- of the last attempt
    attempts INTEGER NOT NULL DEFAULT 0,
    worker TEXT,
    until INTEGER NOT NULL DEFAULT 0 -- end of the worker's claim, in milliseconds since 1970
  ) STRICT;
  CREATE INDEX jobs_of_studies ON jobs (study);
  CREATE TABLE workers (
    id TEXT PRIMARY KEY,
    served TEXT NOT NULL, -- JSON: device and compiler
    until INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;
  PRAGMA application_id = ${APPLICATION};
  PRAGMA user_version = ${VERSION};`

/** 0 of a new file. @throws SptError `records/not-records`, `records/…-schema`: nothing is written */
function versionOf(db: Connection, path: string): number {
  const version = columnOf<number>(db, 'PRAGMA user_version')
  const application = columnOf<number>(db, 'PRAGMA application_id')
  const tables = columnOf<number>(db, 'SELECT count(*) FROM sqlite_master')
  if (application === 0 && version === 0 && tables === 0) return 0
  if (application !== APPLICATION)
    failWith('records/not-records', `'${path}' is a database, but not of records`, {
      expected: 'a file that was written as records, or a new file',
      hint: 'name another file',
    })
  if (version > VERSION)
    failWith(
      'records/newer-schema',
      `'${path}' was written by a newer version: its schema is ${version}, and this version supports ${VERSION}`,
      { expected: `a schema up to ${VERSION}`, hint: 'update this package, or name another file' },
    )
  if (version < VERSION)
    failWith(
      'records/older-schema',
      `'${path}' has the schema ${version}, and this version reads ${VERSION}`,
      { hint: 'versions before 0.1.0 wrote it: name another file' },
    )
  return version
}

/** Makes the tables of a new file, safely against other processes that do so. @throws SptError as `versionOf` */
export function makeTables(db: Connection, path: string): void {
  if (versionOf(db, path) > 0) return
  transaction(db, () => {
    if (versionOf(db, path) === 0) db.exec(TABLES)
  })
}

/** @throws SptError `records/older-schema` for a file without tables, in addition to those of `versionOf` */
export function checkReadable(db: Connection, path: string): void {
  if (versionOf(db, path) === 0)
    failWith('records/older-schema', `'${path}' has no records yet`, {
      hint: 'open the file for writing once to upgrade it',
    })
}
