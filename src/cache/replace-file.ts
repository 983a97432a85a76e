/**
 * Atomic replacement of files: a temporary file in the same folder, fsync, rename. A failed write (a full disk, a signal)
 * leaves the old content. Every file that the package writes is written here (`test/source-rules.test.ts`).
 */
import { randomUUID } from 'node:crypto'
import { rmSync, type Stats } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { access, constants, open, readlink, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

export interface ReplaceOptions {
  /** Fail with `EEXIST` if the path exists. */
  readonly exclusive?: boolean | undefined
  /** Return after the bytes have reached the disk (default: true). */
  readonly sync?: boolean | undefined
}

type Bytes = Iterable<Uint8Array> | AsyncIterable<Uint8Array>

const TEMPORARY = /^\.spt-[\da-f-]{36}\.tmp$/

const temporaryPath = (folder: string): string => join(folder, `.spt-${randomUUID()}.tmp`)

/** True for the path of a temporary file; an error with such a path concerns the folder. */
export const isTemporary = (path: string): boolean => TEMPORARY.test(basename(path))

/**
 * Writes the chunks to `path`, one after the other. Symbolic links are followed, and permissions kept. A path that is not a
 * regular file, such as a FIFO or `/dev/null`, is written in place. Rejects with the file system's error.
 */
export async function replaceFile(
  path: string,
  chunks: Bytes,
  { exclusive = false, sync = true }: ReplaceOptions = {},
): Promise<void> {
  const target = exclusive ? { resolved: path, previous: null } : await replacementTarget(path)
  if (target === null) return writeAll(await open(path, 'w'), chunks, false)
  const { resolved, previous } = target
  const folder = dirname(resolved)
  const destination = exclusive ? resolved : temporaryPath(folder)
  const handle = await open(destination, 'wx')
  using _ = onProcessEnd(() => rmSync(destination, { force: true }))
  try {
    if (previous !== null) await keepPermissions(handle, previous)
    await writeAll(handle, chunks, sync)
    if (!exclusive) await rename(destination, resolved)
  } catch (error) {
    await rm(destination, { force: true })
    throw error
  }
  if (sync) await syncFolder(folder)
}

/** Checks folder and permissions for `replaceFile`. Rejects with the file system's error. */
export async function checkReplaceable(path: string): Promise<void> {
  const target = await replacementTarget(path)
  if (target === null) return access(path, constants.W_OK)
  const folder = dirname(target.resolved)
  if (!(await stat(folder)).isDirectory())
    throw Object.assign(new Error('is a file'), { code: 'ENOTDIR', syscall: 'open' })
  await access(folder, constants.W_OK).catch((error) => {
    throw Object.assign(error, { path: temporaryPath(folder) })
  })
}

/** The file behind a path and its previous state; `null` if it is not a regular file, or has no name. */
async function replacementTarget(path: string): Promise<{ resolved: string; previous: Stats | null } | null> {
  const previous = await stat(path).catch(nullIfAbsent)
  if (previous === null) return { resolved: await linkTarget(path), previous }
  if (previous.isDirectory())
    throw Object.assign(new Error('is a folder'), { code: 'EISDIR', syscall: 'open' })
  if (!previous.isFile()) return null
  // An open file whose name was removed (`/dev/fd/3`) has no path.
  const resolved = await realpath(path).catch(nullIfAbsent)
  if (resolved === null) return null
  // Checked here, because a rename needs no permission on the file itself.
  await access(resolved, constants.W_OK)
  return { resolved, previous }
}

function nullIfAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

/** Follows links to a file that does not exist yet; `stat` has rejected link cycles. */
async function linkTarget(path: string): Promise<string> {
  const linked = await readlink(path).catch(() => null)
  return linked === null ? path : linkTarget(resolve(dirname(path), linked))
}

async function writeAll(handle: FileHandle, chunks: Bytes, sync: boolean): Promise<void> {
  await using _ = handle
  for await (const chunk of chunks) {
    let offset = 0
    while (offset < chunk.length)
      offset += (await handle.write(chunk, offset, chunk.length - offset)).bytesWritten
  }
  if (sync) await handle.sync()
}

const PERMISSIONS = 0o777

async function keepPermissions(handle: FileHandle, { uid, gid, mode }: Stats): Promise<void> {
  const current = await handle.stat()
  // Only root may change the owner, so a file of another user becomes the writer's.
  if (current.uid !== uid || current.gid !== gid) await handle.chown(uid, gid).catch(() => undefined)
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

const removeUnfinished = (): void => {
  for (const remove of unfinished) remove()
  unfinished.clear()
  stopWatching()
}

function onSignal(signal: NodeJS.Signals): void {
  // A signal with another handler does not end the process.
  if (process.listenerCount(signal) > 1) return
  removeUnfinished()
  process.kill(process.pid, signal)
}

function stopWatching(): void {
  process.off('exit', removeUnfinished)
  for (const s of SIGNALS) process.off(s, onSignal)
}

/** Calls `remove` if the process ends, by a signal too, before the result is disposed of. */
export function onProcessEnd(remove: () => void): Disposable {
  if (unfinished.size === 0) {
    process.once('exit', removeUnfinished)
    // Prepended, so that `listenerCount` still includes listeners registered with `once`.
    for (const s of SIGNALS) process.prependListener(s, onSignal)
  }
  unfinished.add(remove)
  return {
    [Symbol.dispose]() {
      if (unfinished.delete(remove) && unfinished.size === 0) stopWatching()
    },
  }
}
