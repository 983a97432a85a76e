/** Serialisation of asynchronous calls in the order in which they are made. */

/** A queue of calls: each begins after the earlier ones have ended, as if the caller had awaited them. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  /** Number of unfinished calls. */
  #open = 0
  /** The queue into which this queue was merged; undefined if none. */
  #joined: Turns | undefined

  /** Runs `work` after the earlier calls, or at once if the queue is empty. Its errors reach only its caller. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const all = this.#root
    const mine = all.#open++ === 0 ? work() : all.#last.then(work)
    const ended = (): void => {
      this.#root.#open--
    }
    all.#last = mine.then(ended, ended)
    return mine
  }

  /** Merges another queue into this one, including all queues that either was merged with. */
  join(others: Turns): void {
    const [mine, theirs] = [this.#root, others.#root]
    if (mine === theirs) return
    theirs.#joined = mine
    mine.#last = Promise.all([mine.#last, theirs.#last])
    mine.#open += theirs.#open
  }

  get #root(): Turns {
    return this.#joined ? this.#joined.#root : this
  }

  /** Returns a proxy of `target` whose methods are queued, except `atOnce`. Calls of its own methods inside a call are not queued. */
  of<T extends object>(target: T, atOnce: readonly (keyof T)[]): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function' || name === 'constructor') return value
        // Bound to the target, because private fields are not accessible through the proxy.
        if (atOnce.includes(name as keyof T)) return value.bind(target)
        return (...args: unknown[]) => this.take(async () => Reflect.apply(value, target, args))
      },
    })
  }
}
