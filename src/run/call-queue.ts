/** Asynchronous calls in the order in which they are made. */

/** Calls on one thing: each begins when those before it have ended, as if the caller had awaited them. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve()
  /** Calls that have not ended. */
  #open = 0
  /** Those whose turns these are as well. */
  #joined: Turns | undefined

  /** Does the work in its turn, at once where none is before it. What it throws is for its caller alone. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const all = this.#root
    const mine = all.#open++ === 0 ? work() : all.#last.then(work)
    const ended = (): void => {
      this.#root.#open--
    }
    all.#last = mine.then(ended, ended)
    return mine
  }

  /** From now on these calls and those are in one order, as are all that either was joined with. */
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

  /**
   * The same object, whose methods take turns, but for those `atOnce`. Methods that it calls itself are part of the call
   * that it is in.
   */
  of<T extends object>(target: T, atOnce: readonly (keyof T)[]): T {
    return new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name, target)
        if (typeof value !== 'function' || name === 'constructor') return value
        // Private fields are those of the object itself.
        if (atOnce.includes(name as keyof T)) return value.bind(target)
        return (...args: unknown[]) => this.take(async () => Reflect.apply(value, target, args))
      },
    })
  }
}
