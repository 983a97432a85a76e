/** Schema of the records file: marks, tables, and migrations of older files. */
import { fail } from '../../ast/diagnostics/diagnostic.ts'
import { type Connection, columnOf, transaction } from './connection.ts'

/** `SPTR`: application id of this package's SQLite files. */
export const APPLICATION = 0x53505452

/**
 * Migrations: entry v converts a file of version v to version v + 1. Released entries are never changed; new ones are
 * appended.
 */
export const MIGRATIONS: readonly string[] = [
  `CREATE TABLE studies (
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
    created INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;
  CREATE INDEX studies_of_kernels ON studies (kernel, device_kind);
  CREATE TABLE trials (
    id TEXT PRIMARY KEY,
    study TEXT NOT NULL REFERENCES studies (id),
    point TEXT NOT NULL, -- JSON
    trace TEXT, -- JSON
    trace_hash TEXT,
    status TEXT NOT NULL CHECK (status IN ('rejected', 'failed', 'wrong', 'measured')),
    code TEXT,
    message TEXT,
    samples BLOB, -- milliseconds as float64, little-endian
    median REAL,
    low REAL,
    high REAL,
    predicted REAL,
    terms TEXT, -- JSON
    duration REAL,
    worker TEXT,
    time INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;
  CREATE INDEX trials_of_studies ON trials (study, status, median);
  CREATE INDEX trials_of_traces ON trials (trace_hash);`,
  // Fraction of a complete measurement; NULL: a complete one.
  'ALTER TABLE trials ADD COLUMN share REAL',
  // Description of the data as JSON; NULL if an older version stored the study.
  'ALTER TABLE studies ADD COLUMN data TEXT',
  // Bounds, which `high` holds; what a kernel holds on the device, and how it compares with the reference. A processor's times
  // of fewer than five runs were those of runs that nothing had warmed: they are bounds.
  `CREATE TABLE trials_with_bounds (
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
    high REAL,
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
  INSERT INTO trials_with_bounds (id, study, point, trace, trace_hash, status, code, message, samples, median, low, high, share,
      predicted, terms, duration, worker, time)
    SELECT id, study, point, trace, trace_hash, status, code, message, samples, median, low, high, share,
      predicted, terms, duration, worker, time FROM trials ORDER BY rowid;
  DROP TABLE trials;
  ALTER TABLE trials_with_bounds RENAME TO trials;
  UPDATE trials SET status = 'bounded', high = median, median = NULL, low = NULL, samples = NULL
    WHERE status = 'measured' AND length(samples) < 40
      AND study IN (SELECT id FROM studies WHERE device_kind = 'cpu');
  CREATE INDEX trials_of_studies ON trials (study, status, median);
  CREATE INDEX trials_of_traces ON trials (trace_hash);`,
  // Trials that a search is at, so that others on the file try other points.
  `CREATE TABLE claims (
    trial TEXT PRIMARY KEY,
    search TEXT NOT NULL,
    until INTEGER NOT NULL -- milliseconds since 1970
  ) STRICT;`,
]

/** @throws SptError `records/not-records`, `records/newer-schema`: nothing is written */
function versionOf(db: Connection, path: string, newest: number): number {
  const version = columnOf<number>(db, 'PRAGMA user_version')
  const application = columnOf<number>(db, 'PRAGMA application_id')
  const tables = columnOf<number>(db, 'SELECT count(*) FROM sqlite_master')
  if (application === 0 && version === 0 && tables === 0) return 0
  if (application !== APPLICATION)
    fail({
      code: 'records/not-records',
      message: `'${path}' is a database, but not of records`,
      expected: 'a file that was written as records, or a new file',
      hint: 'name another file',
    })
  if (version > newest)
    fail({
      code: 'records/newer-schema',
      message: `'${path}' was written by a newer version: its schema is ${version}, and this version supports ${newest}`,
      expected: `a schema up to ${newest}`,
      hint: 'update this package, or name another file',
    })
  return version
}

/** Migrates a file in one transaction, safely against concurrent migrations. @throws SptError as `versionOf` */
export function migrate(db: Connection, path: string, migrations: readonly string[] = MIGRATIONS): void {
  if (versionOf(db, path, migrations.length) === migrations.length) return
  transaction(db, () => {
    const version = versionOf(db, path, migrations.length)
    for (const step of migrations.slice(version)) db.exec(step)
    db.exec(`PRAGMA application_id = ${APPLICATION}`)
    db.exec(`PRAGMA user_version = ${migrations.length}`)
  })
}

/** @throws SptError `records/older-schema` in addition to those of `versionOf` */
export function checkReadable(db: Connection, path: string): void {
  const version = versionOf(db, path, MIGRATIONS.length)
  if (version === MIGRATIONS.length) return
  fail({
    code: 'records/older-schema',
    message:
      version === 0
        ? `'${path}' has no records yet`
        : `'${path}' has the schema ${version}, and this version reads ${MIGRATIONS.length}`,
    hint: 'open the file for writing once to upgrade it',
  })
}
