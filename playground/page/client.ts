/** Requests to the worker. Of several requests in one lane, only the latest is answered: the last edit wins. */
import type { Reply, Request, Results } from '../protocol.ts'

type RequestOf<K extends keyof Results> = Extract<Request, { readonly kind: K }>

/** A request that a later one of its lane replaced, or that was stopped. */
export class Superseded extends Error {}

interface Waiting {
  readonly resolve: (result: never) => void
  readonly reject: (error: Error) => void
}

interface Lane {
  busy: boolean
  next: (() => void) | null
  drop: (() => void) | null
}

export class Client {
  readonly #url: URL
  readonly #lanes = new Map<string, Lane>()
  #worker: Worker | null = null
  #waiting = new Map<number, Waiting>()
  #next = 1

  constructor(url: URL) {
    this.#url = url
  }

  /** Starts to load the compiler. */
  start(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(this.#url, { type: 'module' })
    worker.addEventListener('message', ({ data }: MessageEvent<Reply>) => {
      const waiting = this.#waiting.get(data.id)
      this.#waiting.delete(data.id)
      if ('error' in data) waiting?.reject(new Error(data.error))
      else waiting?.resolve(data.result as never)
    })
    worker.addEventListener('error', (e) =>
      this.#end(new Error(e.message || 'the compiler could not be loaded: reload the page')),
    )
    this.#worker = worker
    return worker
  }

  /** Ends the worker with all it does; the next request starts another. */
  stop(): void {
    this.#end(new Superseded('stopped'))
  }

  #end(reason: Error): void {
    this.#worker?.terminate()
    this.#worker = null
    const waiting = this.#waiting
    this.#waiting = new Map()
    for (const { reject } of waiting.values()) reject(reason)
  }

  request<K extends keyof Results>(request: RequestOf<K>): Promise<Results[K]> {
    const id = this.#next++
    return new Promise<Results[K]>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.start().postMessage({ ...request, id })
    })
  }

  /** Sends a request when the earlier one of the lane is answered, unless a later one comes first. */
  async latest<K extends keyof Results>(lane: string, request: RequestOf<K>): Promise<Results[K]> {
    const state = this.#lanes.get(lane) ?? { busy: false, next: null, drop: null }
    this.#lanes.set(lane, state)
    if (state.busy) {
      state.drop?.()
      await new Promise<void>((resolve, reject) => {
        state.next = resolve
        state.drop = () => reject(new Superseded('replaced'))
      })
    }
    state.busy = true
    try {
      return await this.request<K>(request)
    } finally {
      const { next } = state
      state.next = null
      state.drop = null
      // The waiting request takes over at once, so that none can come between.
      if (next) next()
      else state.busy = false
    }
  }
}
