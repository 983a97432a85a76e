/** A connection to a SQLite file through `libsql`, which is optional, and diagnostics for its errors. */
import type Libsql from 'libsql'
import { fail, SptError } from '../../ast/diagnostics/diagnostic.ts'

export type Connection = Libsql.Database

/** Milliseconds that a writer waits for others. Each holds the file for a few. */
const PATIENCE_MS = 20_000

/** @throws SptError `records/unavailable` where libsql is not installed or has no build for this platform */
export async function loadLibsql(): Promise<typeof Libsql> {
  try {
    return (await import('libsql')).default
  } catch (e) {
    const [line] = (e instanceof Error ? e.message : String(e)).split('\n')
    return fail({
      code: 'records/unavailable',
      message: `records need the package libsql, which cannot be loaded: ${line}`,
      hint: 'npm install libsql (an optional dependency; prebuilt for Linux, macOS and Windows)',
    })
  }
}

/** @throws SptError `records/…` */
export function connect(Database: typeof Libsql, path: string, address: string): Connection {
  return explained(path, () => {
    const db = new Database(address, { timeout: PATIENCE_MS } as Libsql.Options)
    db.exec('PRAGMA foreign_keys = ON')
    return db
  })
}

/** Closes it, with the file as it is to stay. */
export function disconnect(db: Connection): void {
  try {
    // So that the file alone has everything; where others read, later.
    db.prepare('PRAGMA wal_checkpoint(PASSIVE)').all()
    // Without a log beside it, which ends of processes leave behind, where nobody else has it open: others are not waited for.
    db.exec('PRAGMA busy_timeout = 0')
    db.prepare('PRAGMA journal_mode = DELETE').get()
  } catch {
    // A file that is only read, or that others use.
  }
  db.close()
}

/** The only column of the only row. */
export function columnOf<T>(db: Connection, query: string): T {
  return (db.prepare(query).raw().get() as readonly [T])[0]
}

/** All or nothing. Others wait meanwhile, and so no transaction has to be begun again. */
export function transaction<T>(db: Connection, work: () => T): T {
  retried(() => db.exec('BEGIN IMMEDIATE'))
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
export function retried<T>(work: () => T): T {
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

/** SQLite's primary result code. */
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
    'busy',
    (f) => `another process has held ${f} for ${PATIENCE_MS / 1000} s`,
    `end it, or ${OTHER_FILE}`,
  ],
  8: ['read-only', (f) => `${f} cannot be written`, PERMISSIONS],
  10: ['io', (f) => `${f} cannot be read or written`, 'look at the disk, the quota and the limits of files'],
  11: ['corrupt', (f) => `${f} is damaged`, `restore a copy, or ${OTHER_FILE}`],
  13: [
    'full',
    (f) => `the disk is full: cannot write ${f}`,
    'free disk space; earlier records are unchanged',
  ],
  14: ['unreadable', (f) => `${f} cannot be opened`, PERMISSIONS],
  26: ['not-a-database', (f) => `${f} is not a database`, `${OTHER_FILE}: this file stays unchanged`],
}

/**
 * Runs `work`, and translates SQLite's errors to diagnostics about its file; bugs are rethrown.
 * @throws SptError `records/…`
 */
export function explained<T>(path: string, work: () => T): T {
  try {
    return work()
  } catch (e) {
    const meaning = MEANINGS[codeOf(e) ?? -1]
    if (!meaning || e instanceof SptError) throw e
    const [code, about, hint] = meaning
    const message = `${about(`'${path}'`)}: ${(e as Error).message}`
    throw new SptError({ code: `records/${code}`, message, hint })
  }
}
