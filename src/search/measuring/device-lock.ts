/**
 * Mutual exclusion of measurements on a device, across the processes of a user.
 *
 * A lock is a sequence of files `NAME.1`, `NAME.2`, …, of which only the last counts: it names the holder, or states that
 * there is none. A process that finds the lock released, or its holder dead, tries to create the next file; linking a file to
 * a name succeeds for one process only. The last file is never removed, so two processes cannot both find the lock free;
 * earlier ones are removed.
 */

import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, readlinkSync } from 'node:fs'
import { link, readdir, readFile, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { AbortSignalLike } from '../../ast/work.ts'
import { cacheFolder, makeFolder } from '../../cache/disk-cache.ts'
import type { Device } from '../../runtime/device.ts'

export interface LockOptions {
  /** Folder of lock files; default: the user's cache folder, or a temporary folder without one. */
  readonly folder?: string | undefined
  /** Cancels waiting for the lock; the abort reason is thrown. */
  readonly signal?: AbortSignalLike | undefined
  /** Called once if another process holds the lock, with its identity if it is on this host. */
  readonly onWait?: ((holder: { readonly pid: number; readonly host: string }) => void) | undefined
}

interface Holder {
  readonly pid: number
  readonly host: string
  /** Namespace of process ids, because other hosts and containers reuse them. */
  readonly space: string
  /** Start time of the process, if known: process ids are reused. */
  readonly began: string | null
  readonly isReleased: boolean
}

const POLL_MS = 50
/** Heartbeat interval of holders whose process is not visible from here. */
const HEARTBEAT_MS = 2_000
/** Milliseconds without a heartbeat after which a holder counts as dead. */
const SILENT_MS = 60_000

/**
 * Runs `work` while holding the device's lock across processes. Not reentrant for one device.
 * @param device identity among those of this host: `deviceIdentity`
 * @throws SptError `search/lock` if the lock file cannot be created; errors of `work`
 */
export async function withDeviceLock<T>(
  device: string,
  work: () => Promise<T>,
  options: LockOptions = {},
): Promise<T> {
  const lock = await LockFiles.open(device, options.folder)
  const path = await lock.acquire(options)
  const heartbeat = setInterval(() => void utimes(path, new Date(), new Date()).catch(() => {}), HEARTBEAT_MS)
  heartbeat.unref()
  try {
    return await work()
  } finally {
    clearInterval(heartbeat)
    await lock.release(path)
  }
}

class LockFiles {
  readonly #self = self()

  private constructor(
    private readonly folder: string,
    private readonly name: string,
  ) {}

  static async open(device: string, option: string | undefined): Promise<LockFiles> {
    const folder = option ?? lockFolder()
    await makeFolder(folder).catch((e: Error) => failLock(folder, e))
    // The name contains the host, because hosts may share home folders.
    const name = createHash('sha256').update(`${hostname()}\n${device}`).digest('hex').slice(0, 24)
    return new LockFiles(folder, name)
  }

  /** Acquires the lock; returns the path of the new lock file. */
  async acquire({ signal, onWait }: LockOptions): Promise<string> {
    let isReported = false
    for (;;) {
      signal?.throwIfAborted()
      const last = await this.#last()
      const holder = last === 0 ? null : await this.#holderOf(last)
      if (holder) {
        if (!isReported) onWait?.({ pid: holder.pid, host: holder.host })
        isReported = true
      } else {
        const path = await this.#create(last + 1)
        if (path) return path
      }
      await new Promise((resolve) => setTimeout(resolve, POLL_MS * (0.5 + Math.random())))
    }
  }

  async release(path: string): Promise<void> {
    // Renaming replaces the file atomically for concurrent readers.
    const temporary = await this.#writeTemporary({ ...this.#self, isReleased: true })
    await rename(temporary, path).catch((e: Error) => failLock(this.folder, e))
  }

  /** Creates the next lock file; `null` if another process created it, or a later one, first. */
  async #create(number: number): Promise<string | null> {
    const path = this.#path(number)
    const temporary = await this.#writeTemporary({ ...this.#self, isReleased: false })
    try {
      await link(temporary, path)
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code === 'EEXIST') return null
      return failLock(this.folder, e as Error)
    } finally {
      await unlink(temporary).catch(() => {})
    }
    if ((await this.#last()) > number) {
      // Another process created later files and removed the one that was examined here.
      await unlink(path).catch(() => {})
      return null
    }
    await this.#tidy(number - 1)
    return path
  }

  async #writeTemporary(holder: Holder): Promise<string> {
    const path = join(this.folder, `.${this.name}.${process.pid}.${randomBytes(6).toString('hex')}`)
    await writeFile(path, JSON.stringify(holder), { flag: 'wx' }).catch((e: Error) =>
      failLock(this.folder, e),
    )
    return path
  }

  #path(number: number): string {
    return join(this.folder, `${this.name}.${number}`)
  }

  async #numbers(): Promise<readonly number[]> {
    const files = await readdir(this.folder).catch((e: Error) => failLock(this.folder, e))
    return files.flatMap((f) => {
      const [name, number] = f.split('.')
      return name === this.name && /^\d+$/.test(number ?? '') ? [Number(number)] : []
    })
  }

  async #last(): Promise<number> {
    return Math.max(0, ...(await this.#numbers()))
  }

  async #tidy(number: number): Promise<void> {
    const obsolete = (await this.#numbers()).filter((n) => n < number)
    await Promise.all(obsolete.map((n) => unlink(this.#path(n)).catch(() => {})))
  }

  /** Holder according to the file; `null` if it is released or dead. */
  async #holderOf(number: number): Promise<Holder | null> {
    const path = this.#path(number)
    try {
      const holder = JSON.parse(await readFile(path, 'utf8')) as Holder
      if (holder.isReleased) return null
      if (holder.host === this.#self.host && holder.space === this.#self.space)
        return isAlive(holder) ? holder : null
      return Date.now() - (await stat(path)).mtimeMs < SILENT_MS ? holder : null
    } catch {
      // The file was removed meanwhile or is unreadable, so the next file exists or can be created.
      return null
    }
  }
}

function lockFolder(): string {
  const cache = cacheFolder(undefined)
  return cache ? join(cache, 'locks') : join(tmpdir(), `sparsetile-locks-${userInfo().username}`)
}

const self = (): Holder => ({
  pid: process.pid,
  host: hostname(),
  space: processSpace(),
  began: startTimeOf(process.pid),
  isReleased: false,
})

function processSpace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid')
  } catch {
    return ''
  }
}

/** Start time of a process in clock ticks since boot; `null` if the system does not report it. */
function startTimeOf(pid: number): string | null {
  try {
    // The program's name, in parentheses, may contain any character.
    const [state, ...fields] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    // A zombie: killed, but not yet waited for by its parent.
    return state === 'Z' || state === 'X' ? 'ended' : (fields[18] ?? null)
  } catch {
    return null
  }
}

function isAlive({ pid, began }: Holder): boolean {
  try {
    process.kill(pid, 0)
  } catch (e) {
    // EPERM: the process exists and belongs to another user.
    if ((e as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const current = startTimeOf(pid)
  return began === null || current === null || current === began
}

const failLock = (folder: string, error: Error): never =>
  failWith('search/lock', `no lock of a device can be made in ${folder}: ${error.message}`, {
    expected: 'a folder that can be written to',
    hint: 'set SPT_CACHE_DIR to one',
  })

/** Identifies a device among those of this host, across processes. */
export function deviceKey(
  device: Device,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string {
  const { chip } = device as { readonly chip?: { readonly ordinal: number } }
  const ordinal = chip?.ordinal
  if (ordinal === undefined) return `${device.kind} ${device.name}`
  // CUDA_VISIBLE_DEVICES selects and orders the devices that a process sees.
  const visible = env.CUDA_VISIBLE_DEVICES?.split(',').map((s) => s.trim())
  return `${device.kind} ${device.name} ${visible?.[ordinal] || ordinal}`
}
