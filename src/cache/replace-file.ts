/**
 * Atomic replacement of files: a temporary file in the same folder, fsync, rename. A failed write (a full disk, a signal)
 * leaves the old content. Every file that the package writes is written here (`test/source-rules.test.ts`).
 */
import { randomUUID } from 'node:crypto'
import { rmSync, type Stats } from 'node:fs'
import {
  access,
  constants,
  type FileHandle,
  open,
  readlink,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

export interface ReplaceOptions {
  /** Fail with `EEXIST` if the path is taken. */
  readonly isNew?: boolean | undefined
  /** Return after the bytes have reached the disk (default: true). */
  readonly sync?: boolean | undefined
}

type Bytes = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

const TEMPORARY = /^\.spt-[\da-f-]{36}\.tmp$/

const temporaryIn = (folder: string): string => join(folder, `.spt-${randomUUID()}.tmp`)

/** Whether a path is that of a temporary file: an error that names one concerns its folder. */
export const isTemporary = (path: string): boolean => TEMPORARY.test(basename(path))

/**
 * Writes the chunks to `path`, one after the other. Symbolic links are followed, and permissions kept. A path that is not a
 * regular file, such as a FIFO or `/dev/null`, is written in place. Rejects with the file system's error.
 */
export async function replaceFile(
  path: string,
  chunks: Bytes,
  { isNew = false, sync = true }: ReplaceOptions = {},
): Promise<void> {
  const target = isNew ? { place: path, old: null } : await targetOf(path)
  if (target === null) return writeAll(await open(path, 'w'), chunks, false)
  const { place, old } = target
  const folder = dirname(place)
  const written = isNew ? place : temporaryIn(folder)
  const handle = await open(written, 'wx')
  const release = onProcessEnd(() => rmSync(written, { force: true }))
  try {
    if (old !== null) await keepPermissions(handle, old)
    await writeAll(handle, chunks, sync)
    if (!isNew) await rename(written, place)
  } catch (error) {
    await rm(written, { force: true })
    throw error
  } finally {
    release()
  }
  if (sync) await syncFolder(folder)
}

/** That `replaceFile` may replace the path, as far as its folder and permissions go. Rejects with the file system's error. */
export async function checkReplaceable(path: string): Promise<void> {
  const target = await targetOf(path)
  if (target === null) return access(path, constants.W_OK)
  const folder = dirname(target.place)
  if (!(await stat(folder)).isDirectory())
    throw Object.assign(new Error('is a file'), { code: 'ENOTDIR', syscall: 'open' })
  await access(folder, constants.W_OK).catch((error) => {
    throw Object.assign(error, { path: temporaryIn(folder) })
  })
}

/** The file that a path leads to, and its old state; `null`: no regular file, or one without a name. */
async function targetOf(path: string): Promise<{ place: string; old: Stats | null } | null> {
  const old = await stat(path).catch(absent)
  if (old === null) return { place: await linkTarget(path), old }
  if (old.isDirectory()) throw Object.assign(new Error('is a folder'), { code: 'EISDIR', syscall: 'open' })
  if (!old.isFile()) return null
  // An open file whose name was removed (`/dev/fd/3`) has no place.
  const place = await realpath(path).catch(absent)
  if (place === null) return null
  // Renaming needs no permission on the file itself.
  await access(place, constants.W_OK)
  return { place, old }
}

function absent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** Follows links to a file that does not exist yet; a ring of links has been rejected by `stat`. */
async function linkTarget(path: string): Promise<string> {
  const to = await readlink(path).catch(() => null)
  return to === null ? path : linkTarget(resolve(dirname(path), to))
}

async function writeAll(handle: FileHandle, chunks: Bytes, sync: boolean): Promise<void> {
  try {
    for await (const chunk of chunks) {
      let at = 0
      while (at < chunk.length) at += (await handle.write(chunk, at, chunk.length - at)).bytesWritten
    }
    if (sync) await handle.sync()
  } finally {
    await handle.close()
  }
}

const PERMISSIONS = 0o777

async function keepPermissions(handle: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const own = await handle.stat()
  // Only root may give files away; a file of another user becomes the writer's.
  if (own.uid !== uid || own.gid !== gid) await handle.chown(uid, gid).catch(() => undefined)
  await handle.chmod(mode & PERMISSIONS)
}

/** Best effort: the rename itself is atomic without it. */
async function syncFolder(folder: string): Promise<void> {
  try {
    const handle = await open(folder, 'r')
    await handle.sync().finally(() => handle.close())
  } catch {
    // Some systems cannot open or sync a folder.
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const unfinished = new Set<() => void>()

const removeAll = (): void => {
  for (const remove of unfinished) remove()
  unfinished.clear()
  stopWatching()
}

function ended(signal: NodeJS.Signals): void {
  // A signal that the process handles itself does not end it.
  if (process.listenerCount(signal) > 1) return
  removeAll()
  process.kill(process.pid, signal)
}

function stopWatching(): void {
  process.off('exit', removeAll)
  for (const s of SIGNALS) process.off(s, ended)
}

/** Calls `remove` if the process ends, by a signal too, before the returned function is called. */
export function onProcessEnd(remove: () => void): () => void {
  if (unfinished.size === 0) {
    process.once('exit', removeAll)
    // First, while listeners that are called once still count.
    for (const s of SIGNALS) process.prependListener(s, ended)
  }
  unfinished.add(remove)
  return () => {
    if (unfinished.delete(remove) && unfinished.size === 0) stopWatching()
  }
}
