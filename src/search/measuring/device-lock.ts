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
import { fail } from '../../ast/diagnostic.ts'
import { cacheFolder, makeFolder } from '../../cache/disk-cache.ts'

export interface LockOptions {
  /** Folder of lock files; default: the user's cache folder, or a temporary folder without one. */
  readonly folder?: string | undefined
  /** Cancels waiting for the lock; the abort reason is thrown. */
  readonly signal?: AbortSignal | undefined
  /** Called once if another process holds the lock, with its identity if it is on this host. */
  readonly onWait?: ((holder: { readonly pid: number; readonly host: string }) => void) | undefined
}

interface Holder {
  readonly pid: number
  readonly host: string
  /** Processes have the same numbers on other hosts, and in other containers of one. */
  readonly space: string
  /** Start time of the process, if known: process ids are reused. */
  readonly began: string | null
  readonly isReleased: boolean
}

const POLL_MS = 50
/** Heartbeat interval of holders whose process is not visible from here. */
const BEAT_MS = 2_000
/** After so long without it, it counts as gone. */
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
  const held = await lock.acquire(options)
  const beat = setInterval(() => void utimes(held, new Date(), new Date()).catch(() => {}), BEAT_MS)
  beat.unref()
  try {
    return await work()
  } finally {
    clearInterval(beat)
    await lock.release(held)
  }
}

class LockFiles {
  readonly #folder: string
  readonly #name: string
  readonly #self = self()

  private constructor(folder: string, name: string) {
    this.#folder = folder
    this.#name = name
  }

  static async open(device: string, given: string | undefined): Promise<LockFiles> {
    const folder = given ?? lockFolder()
    await makeFolder(folder).catch((e: Error) => failLock(folder, e))
    // The host is part of it: home folders are shared among hosts.
    const name = createHash('sha256').update(`${hostname()}\n${device}`).digest('hex').slice(0, 24)
    return new LockFiles(folder, name)
  }

  /** Number of the lock file created. */
  async acquire({ signal, onWait }: LockOptions): Promise<string> {
    let isTold = false
    for (;;) {
      signal?.throwIfAborted()
      const last = await this.#last()
      const holder = last === 0 ? null : await this.#holderOf(last)
      if (holder) {
        if (!isTold) onWait?.({ pid: holder.pid, host: holder.host })
        isTold = true
      } else {
        const path = await this.#take(last + 1)
        if (path) return path
      }
      await new Promise((done) => setTimeout(done, POLL_MS * (0.5 + Math.random())))
    }
  }

  async release(path: string): Promise<void> {
    // Replaced as a whole: whoever reads meanwhile sees one or the other.
    const temporary = await this.#written({ ...this.#self, isReleased: true })
    await rename(temporary, path).catch((e: Error) => failLock(this.#folder, e))
  }

  /** Makes the next file, for one process only; nothing where another did, or was further already. */
  async #take(number: number): Promise<string | null> {
    const path = this.#path(number)
    const temporary = await this.#written({ ...this.#self, isReleased: false })
    try {
      await link(temporary, path)
    } catch (e) {
      if ((e as NodeJS.ErrnoException).code === 'EEXIST') return null
      return failLock(this.#folder, e as Error)
    } finally {
      await unlink(temporary).catch(() => {})
    }
    if ((await this.#last()) > number) {
      // What was looked at has been passed, and tidied away, since.
      await unlink(path).catch(() => {})
      return null
    }
    await this.#tidy(number - 1)
    return path
  }

  async #written(holder: Holder): Promise<string> {
    const path = join(this.#folder, `.${this.#name}.${process.pid}.${randomBytes(6).toString('hex')}`)
    await writeFile(path, JSON.stringify(holder), { flag: 'wx' }).catch((e: Error) =>
      failLock(this.#folder, e),
    )
    return path
  }

  #path(number: number): string {
    return join(this.#folder, `${this.#name}.${number}`)
  }

  async #numbers(): Promise<readonly number[]> {
    const files = await readdir(this.#folder).catch((e: Error) => failLock(this.#folder, e))
    return files.flatMap((f) => {
      const [name, number] = f.split('.')
      return name === this.#name && /^\d+$/.test(number ?? '') ? [Number(number)] : []
    })
  }

  async #last(): Promise<number> {
    return Math.max(0, ...(await this.#numbers()))
  }

  /** Removes those before `number`. */
  async #tidy(number: number): Promise<void> {
    const old = (await this.#numbers()).filter((n) => n < number)
    await Promise.all(old.map((n) => unlink(this.#path(n)).catch(() => {})))
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
      // Gone meanwhile, or broken with the file system: the next one is there, or may be made.
      return null
    }
  }
}

/** The folder of locks of this user. */
function lockFolder(): string {
  const cache = cacheFolder(undefined)
  return cache ? join(cache, 'locks') : join(tmpdir(), `sparsetile-locks-${userInfo().username}`)
}

const self = (): Holder => ({
  pid: process.pid,
  host: hostname(),
  space: processSpace(),
  began: beginningOf(process.pid),
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
function beginningOf(pid: number): string | null {
  try {
    // The name of the program, in parentheses, may hold anything.
    const [state, ...rest] = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    // Killed, and not yet waited for by its parent.
    return state === 'Z' || state === 'X' ? 'ended' : (rest[18] ?? null)
  } catch {
    return null
  }
}

function isAlive({ pid, began }: Holder): boolean {
  try {
    process.kill(pid, 0)
  } catch (e) {
    // A process of another user is there, too.
    if ((e as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  const now = beginningOf(pid)
  return began === null || now === null || now === began
}

const failLock = (folder: string, error: Error): never =>
  fail({
    code: 'search/lock',
    message: `no lock of a device can be made in ${folder}: ${error.message}`,
    expected: 'a folder that can be written to',
    hint: 'set SPT_CACHE_DIR to one',
  })
