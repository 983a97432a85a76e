/** Location of the records file, and checks before it is opened. */
import { accessSync, constants, lstatSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import { cacheFolder, makeFolder } from '../../cache/disk-cache.ts'
import {
  type Connection,
  checkReadable,
  columnOf,
  connect,
  disconnect,
  loadLibsql,
  migrate,
  transaction,
  withDiagnostics,
  withRetries,
} from './connection.ts'

/** Files up to that many bytes are looked through for damage as they are opened: a hundred milliseconds. */
const CHECKED_BYTES = 2 ** 26

/** Default file of records. @throws SptError `records/no-place` if caches are disabled */
export function defaultRecordsPath(env: NodeJS.ProcessEnv = process.env): string {
  const folder = cacheFolder(undefined, env)
  if (folder !== undefined) return join(folder, 'records.db')
  return failWith('records/no-place', 'caches are off, and with them the usual place of records', {
    expected: 'a file',
    hint: 'name a file (--db FILE), or set SPT_CACHE_DIR to a folder',
  })
}

const fileStats = (path: string): Stats | undefined => statSync(path, { throwIfNoEntry: false })

function checkPlace(path: string, readonly: boolean): void {
  const folder = dirname(path)
  const folderStats = fileStats(folder)
  if (!folderStats?.isDirectory())
    failWith(
      'records/missing-folder',
      folderStats ? `'${folder}' is not a folder` : `the folder '${folder}' does not exist`,
      { expected: 'a file in a folder that exists', hint: 'make the folder, or name another file' },
    )
  const file = fileStats(path)
  // SQLite makes the file that a link points to.
  if (!file && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    checkPlace(resolve(folder, readlinkSync(path)), readonly)
    return
  }
  if (!file) {
    if (readonly)
      failWith('records/missing', `there are no records at '${path}'`, {
        expected: 'a file of records',
        hint: 'they are made where something is measured',
      })
    return
  }
  if (!file.isFile())
    failWith('records/not-a-file', `'${path}' is ${file.isDirectory() ? 'a folder' : 'no ordinary file'}`, {
      expected: 'a file of records, or a new file',
      hint: 'name a file',
    })
  if (!readonly) for (const place of [path, folder]) checkWritable(place, path)
}

/** Rejects an unwritable file, which SQLite would open and reject only at the first trial. */
function checkWritable(place: string, path: string): void {
  try {
    accessSync(place, constants.W_OK)
  } catch {
    failWith(
      'records/read-only',
      place === path ? `'${path}' cannot be written` : `the folder of '${path}' cannot be written`,
      { hint: 'change the permissions, or name another file' },
    )
  }
}

export interface Opened {
  readonly db: Connection
  readonly path: string
  /** Closes the connection, unless others of this process write by it. */
  readonly close: () => void
}

/** Connections that write, by file, and how many use each: the log goes with the last one, which another connection would keep. */
const writers = new Map<string, { readonly db: Connection; users: number }>()
let closesAtExit = false

/** Closes open connections when the process exits. */
function closeAtExit(): void {
  if (closesAtExit) return
  closesAtExit = true
  process.once('exit', () => {
    closesAtExit = false
    for (const { db } of writers.values()) disconnect(db)
    writers.clear()
  })
}

function identityOf(path: string): string | undefined {
  const file = statSync(path, { bigint: true, throwIfNoEntry: false })
  return file && `${file.dev}:${file.ino}`
}

/** One more user of the connection to a file. */
function sharedWriter(key: string, db: Connection, path: string): Opened {
  const existing = writers.get(key)
  // The number of a file that is gone may be that of a new one.
  const writer = existing?.db === db ? existing : { db, users: 0 }
  writers.set(key, writer)
  closeAtExit()
  writer.users++
  const close = (): void => {
    writer.users--
    if (writer.users > 0) return
    if (writers.get(key) === writer) writers.delete(key)
    disconnect(writer.db)
  }
  return { db: writer.db, path, close }
}

/** @throws SptError `records/…`: the file stays as it was */
export async function openFile(requestedPath: string | undefined, readonly: boolean): Promise<Opened> {
  const Database = await loadLibsql()
  if (requestedPath === IN_MEMORY) return inMemory(Database, readonly)
  const path = resolve(requestedPath ?? defaultRecordsPath())
  // Errors of the default folder are reported below, like those of any other folder.
  if (requestedPath === undefined && !readonly) await makeFolder(dirname(path)).catch(() => undefined)
  return withDiagnostics(path, () => {
    checkPlace(path, readonly)
    const identity = identityOf(path)
    const writer = readonly || identity === undefined ? undefined : writers.get(identity)
    if (writer?.db.open) return sharedWriter(identity!, writer.db, path)
    const db = readonly ? openForReading(Database, path) : connect(Database, path, path)
    try {
      if (!readonly) {
        // Older or foreign files are looked at before anything is written.
        withRetries(() => checkUndamaged(db, path))
        migrate(db, path)
        if (columnOf(db, 'PRAGMA journal_mode') !== 'wal')
          withRetries(() => void db.prepare('PRAGMA journal_mode = WAL').get())
        // Acknowledged trials survive a power failure.
        db.exec('PRAGMA synchronous = FULL')
        // Reports a file that cannot be written now, not at the first trial.
        transaction(db, () => undefined)
      }
      const key = readonly ? undefined : identityOf(path)
      return key === undefined ? { db, path, close: () => disconnect(db) } : sharedWriter(key, db, path)
    } catch (e) {
      db.close()
      throw e
    }
  })
}

/** SQLite's name of records in memory, which end with the process. */
const IN_MEMORY = ':memory:'

function inMemory(Database: Parameters<typeof connect>[0], readonly: boolean): Opened {
  if (readonly)
    failWith('records/missing', `there are no records in ${IN_MEMORY}, which are new each time`, {
      expected: 'a file of records',
      hint: 'open the records for writing',
    })
  return withDiagnostics(IN_MEMORY, () => {
    const db = connect(Database, IN_MEMORY, IN_MEMORY)
    migrate(db, IN_MEMORY)
    return { db, path: IN_MEMORY, close: () => disconnect(db) }
  })
}

/** Opens a file read-only; as immutable if the folder is not writable: no lock and no writer can exist. */
function openForReading(Database: Parameters<typeof connect>[0], path: string): Connection {
  const { href } = pathToFileURL(path)
  let firstError: unknown
  for (const address of [`${href}?mode=ro`, `${href}?mode=ro&immutable=1`]) {
    const db = connect(Database, path, address)
    try {
      return withDiagnostics(path, () => {
        checkUndamaged(db, path)
        checkReadable(db, path)
        return db
      })
    } catch (e) {
      db.close()
      firstError ??= e
      const wal = fileStats(`${path}-wal`)
      if (!isAccessError(e) || (wal && wal.size > 0)) throw firstError
    }
  }
  throw firstError
}

const isAccessError = (e: unknown): boolean =>
  /^records\/(read-only|unreadable|io)/.test(e instanceof Error ? e.message : '')

function checkUndamaged(db: Connection, path: string): void {
  if ((fileStats(path)?.size ?? 0) > CHECKED_BYTES) return
  const report = columnOf<string>(db, 'PRAGMA quick_check(1)')
  if (report === 'ok') return
  failWith('records/corrupt', `'${path}' is damaged: ${report.replace(/\s+/g, ' ')}`, {
    hint: 'restore a copy, or name another file',
  })
}
