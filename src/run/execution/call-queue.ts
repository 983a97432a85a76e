/** Serialisation of asynchronous calls in the order in which they are made. */

/** Connected queues with a common order of calls. */
interface Group {
  last: Promise<unknown>
  /** Number of unfinished calls. */
  open: number
  readonly members: Set<Turns>
}

/** A queue of calls: each begins after the earlier ones have ended, as if the caller had awaited them. */
export class Turns {
  #group: Group = { last: Promise.resolve(), open: 0, members: new Set([this]) }
  readonly #joined = new Set<Turns>()

  /** Runs `work` after the earlier calls, or at once if the queue is empty. Its errors reach only its caller. */
  take<T>(work: () => Promise<T>): Promise<T> {
    const group = this.#group
    const mine = group.open === 0 ? work() : group.last.then(work)
    Turns.#append(group, mine)
    return mine
  }

  static #append(group: Group, call: Promise<unknown>): void {
    group.open++
    const ended = (): void => {
      group.open--
    }
    group.last = call.then(ended, ended)
  }

  /** Orders the calls of both queues, and of all queues that either was joined with, until `leave`. */
  join(other: Turns): void {
    this.#joined.add(other)
    other.#joined.add(this)
    const [mine, theirs] = [this.#group, other.#group]
    if (mine === theirs) return
    for (const t of theirs.members) {
      mine.members.add(t)
      t.#group = mine
    }
    if (theirs.open > 0) Turns.#append(mine, Promise.all([mine.last, theirs.last]))
  }

  /** Undoes every `join` of this queue. Queues without another connection are independent after the calls made so far. */
  leave(): void {
    const { members } = this.#group
    for (const t of this.#joined) t.#joined.delete(this)
    this.#joined.clear()
    const before = this.#group
    const open = new Set(members)
    for (const first of members) {
      if (!open.delete(first)) continue
      const group: Group = { last: Promise.resolve(), open: 0, members: new Set([first]) }
      // The set grows during the iteration.
      for (const t of group.members) {
        t.#group = group
        for (const next of t.#joined) if (open.delete(next)) group.members.add(next)
      }
      if (before.open > 0) Turns.#append(group, before.last)
    }
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
