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
  loadLibsql,
  makeTables,
  transaction,
  withDiagnostics,
  withRetries,
} from './connection.ts'

/** Files up to that many bytes are looked through for damage as they are opened: a hundred milliseconds. */
const CHECKED_BYTES = 2 ** 26

/** Default file of records. @throws SptError `records/no-place` if caches are disabled */
export function defaultRecordsPath(env: Readonly<Record<string, string | undefined>> = process.env): string {
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
    const address = readonly ? `${pathToFileURL(path).href}?mode=ro` : path
    const db = connect(Database, path, address)
    try {
      // Older or foreign files are looked at before anything is written.
      withRetries(() => checkUndamaged(db, path))
      if (readonly) checkReadable(db, path)
      else {
        makeTables(db, path)
        // No log next to the file, which machines that share a folder cannot share.
        withRetries(() => void db.prepare('PRAGMA journal_mode = DELETE').get())
        // Acknowledged trials survive a power failure.
        db.exec('PRAGMA synchronous = FULL')
        // Reports a file that cannot be written now, not at the first trial.
        transaction(db, () => undefined)
      }
      return { db, path }
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
    makeTables(db, IN_MEMORY)
    return { db, path: IN_MEMORY }
  })
}

function checkUndamaged(db: Connection, path: string): void {
  if ((fileStats(path)?.size ?? 0) > CHECKED_BYTES) return
  const report = columnOf<string>(db, 'PRAGMA quick_check(1)')
  if (report === 'ok') return
  failWith('records/corrupt', `'${path}' is damaged: ${report.replace(/\s+/g, ' ')}`, {
    hint: 'restore a copy, or name another file',
  })
}
