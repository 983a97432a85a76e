/**
 * A headless Chromium and as much of its DevTools protocol as a test needs: open a page, evaluate an expression.
 * The browser is the one inside `@sparticuz/chromium`; it talks through two pipes, one message to a NUL.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { TIME_LIMIT } from '../support/time-limit.ts'

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--no-zygote',
  '--disable-dev-shm-usage',
  '--disable-background-networking',
  '--disable-component-update',
  '--no-first-run',
  '--no-default-browser-check',
  '--remote-debugging-pipe',
  // WebGPU on the software driver that lies beside the browser.
  '--enable-unsafe-webgpu',
  '--use-webgpu-adapter=swiftshader',
  '--ignore-gpu-blocklist',
]

const START_MS = TIME_LIMIT / 2

interface Message {
  readonly id?: number
  readonly result?: Record<string, unknown>
  readonly error?: { readonly message: string }
}

/** An expression's value in the page, or what it threw. */
interface Evaluated {
  readonly result: { readonly value?: unknown }
  readonly exceptionDetails?: {
    readonly text: string
    readonly exception?: { readonly description?: string }
  }
}

export interface Page {
  /** The value of an expression, awaiting a promise. */
  readonly evaluate: (expression: string) => Promise<unknown>
  readonly send: (method: string, params?: object) => Promise<Record<string, unknown>>
}

export class Browser {
  readonly #process: ChildProcess
  readonly #profile: string
  readonly #waiting = new Map<number, { resolve: (r: object) => void; reject: (e: Error) => void }>()
  #next = 1
  #stderr = ''

  private constructor(path: string) {
    this.#profile = mkdtempSync(join(tmpdir(), 'browser-profile-'))
    this.#process = spawn(path, [...FLAGS, `--user-data-dir=${this.#profile}`, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'pipe', 'pipe', 'pipe'],
      // A process group of its own: its helpers are ended with it, so that none writes into the profile any more.
      detached: true,
    })
    const [, , stderr, , output] = this.#process.stdio as (Readable | null)[]
    stderr!.on('data', (d: Buffer) => {
      this.#stderr = (this.#stderr + d.toString()).slice(-4000)
    })
    let rest = ''
    output!.setEncoding('utf8').on('data', (text: string) => {
      const messages = (rest + text).split('\0')
      rest = messages.pop()!
      for (const m of messages) this.#receive(JSON.parse(m) as Message)
    })
    const end = (why: string): void => {
      for (const w of this.#waiting.values())
        w.reject(new Error(`${why}: ${this.#stderr.trim().split('\n').at(-1)}`))
      this.#waiting.clear()
    }
    this.#process.on('error', (e) => end(e.message))
    this.#process.on('exit', (code, signal) => end(`the browser ended (${signal ?? code})`))
    this.#process.stdio[3]!.on('error', () => {})
  }

  /** Starts the packaged browser. Rejects with the reason where it cannot run. */
  static async start(): Promise<Browser> {
    if (process.platform !== 'linux' || process.arch !== 'x64')
      throw new Error(`the packaged browser is for Linux on x64, not ${process.platform} on ${process.arch}`)
    const { default: chromium } = await import('@sparticuz/chromium')
    const browser = new Browser(await chromium.executablePath())
    try {
      await within(START_MS, 'the browser did not answer', browser.#send('Browser.getVersion', {}))
    } catch (e) {
      await browser.close()
      throw e
    }
    return browser
  }

  /** Opens `url` and, when it has loaded, gives a function that evaluates an expression there, awaiting a promise. */
  async open(url: string): Promise<(expression: string) => Promise<unknown>> {
    return (await this.page(url)).evaluate
  }

  /** As `open`, with the commands of the protocol for the page, such as `Input.insertText`. */
  async page(url: string): Promise<Page> {
    const { targetId } = await this.#send('Target.createTarget', { url })
    const { sessionId } = await this.#send('Target.attachToTarget', { targetId, flatten: true })
    const evaluate = async (expression: string): Promise<unknown> => {
      const r = (await this.#send(
        'Runtime.evaluate',
        { expression, awaitPromise: true, returnByValue: true },
        sessionId as string,
      )) as unknown as Evaluated
      if (r.exceptionDetails)
        throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text)
      return r.result.value
    }
    // Until the page is there its first, empty document answers, or none.
    const loaded = `location.href === ${JSON.stringify(url)} && document.readyState === 'complete'`
    const start = performance.now()
    while ((await evaluate(loaded).catch(() => false)) !== true) {
      if (performance.now() - start > START_MS) throw new Error(`${url} did not load`)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    return { evaluate, send: (method, params = {}) => this.#send(method, params, sessionId as string) }
  }

  async close(): Promise<void> {
    const gone = new Promise<void>((resolve) => {
      if (this.#process.exitCode !== null || this.#process.signalCode !== null) resolve()
      else this.#process.once('exit', () => resolve())
      this.#process.once('error', () => resolve())
    })
    if (this.#process.pid !== undefined) endGroup(this.#process.pid)
    await gone
    await removeFolder(this.#profile)
  }

  #send(method: string, params: object, sessionId?: string): Promise<Record<string, unknown>> {
    const id = this.#next++
    const answer = new Promise<Record<string, unknown>>((resolve, reject) => {
      this.#waiting.set(id, { resolve: resolve as (r: object) => void, reject })
    })
    ;(this.#process.stdio[3] as Writable).write(
      `${JSON.stringify({ id, method, params, ...(sessionId ? { sessionId } : {}) })}\0`,
    )
    return answer
  }

  #receive(m: Message): void {
    const waiting = m.id === undefined ? undefined : this.#waiting.get(m.id)
    if (!waiting) return
    this.#waiting.delete(m.id!)
    if (m.error) waiting.reject(new Error(m.error.message))
    else waiting.resolve(m.result ?? {})
  }
}

function within<T>(ms: number, what: string, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} within ${ms / 1000} s`)), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Ends a process and all that it started. */
function endGroup(leader: number): void {
  try {
    process.kill(-leader, 'SIGKILL')
  } catch (e) {
    if ((e as NodeJS.ErrnoException).code !== 'ESRCH') throw e
  }
}

/**
 * Removes a folder that a process just ended wrote to. What the system still writes of it may come after the
 * names were read, so the whole is tried again; a folder that stays after a second lies among temporary files
 * and says nothing about what was tested.
 */
async function removeFolder(path: string): Promise<void> {
  for (let round = 0; round < 20; round++) {
    try {
      rmSync(path, { recursive: true, force: true })
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}
