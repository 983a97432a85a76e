/**
 * Streams, events and graphs of the fake driver. Work is done when it is queued, or (`lazy`) as late as possible: when
 * somebody waits for the stream it is on, or for an event that comes after it. What no event orders is then seen to be
 * unordered.
 */

type Op =
  | { readonly kind: 'do'; readonly body: () => void }
  | { readonly kind: 'record'; readonly event: bigint; readonly mark: Mark }
  | { readonly kind: 'wait'; readonly mark: Mark }

/** One recording of an event. */
interface Mark {
  readonly stream: bigint
  at: number | undefined
}

export class FakeStreams {
  lazy = false
  readonly #queues = new Map<bigint, Op[]>()
  readonly #marks = new Map<bigint, Mark>()
  readonly #graphs = new Map<bigint, readonly (Op | { readonly kind: 'node'; readonly event: bigint })[]>()
  #captured: { readonly stream: bigint; readonly ops: (Op | { kind: 'node'; event: bigint })[] } | undefined
  #spoilt = false
  #handle = 0n
  /** Milliseconds: each piece of work takes one. */
  #clock = 0

  /** Handles that were made and not destroyed, by kind. */
  readonly live = {
    stream: new Set<bigint>(),
    event: new Set<bigint>(),
    graph: new Set<bigint>(),
    executable: new Set<bigint>(),
  }

  make(kind: keyof FakeStreams['live']): bigint {
    this.live[kind].add(++this.#handle)
    if (kind === 'stream') this.#queues.set(this.#handle, [])
    return this.#handle
  }

  /** A driver's code: 400 where the handle is none. */
  destroy(kind: keyof FakeStreams['live'], handle: bigint): number {
    return this.live[kind].delete(handle) ? 0 : 400
  }

  enqueue(stream: bigint, body: () => void): void {
    const op: Op = {
      kind: 'do',
      body: () => {
        this.#clock++
        body()
      },
    }
    if (this.#captured?.stream === stream) this.#captured.ops.push(op)
    else this.#push(stream, op)
  }

  record(event: bigint, stream: bigint, external = false): number {
    if (!this.live.event.has(event)) return 400
    if (this.#captured?.stream === stream) {
      if (!external) return 901
      this.#captured.ops.push({ kind: 'node', event })
      return 0
    }
    const mark: Mark = { stream, at: undefined }
    this.#marks.set(event, mark)
    this.#push(stream, { kind: 'record', event, mark })
    return 0
  }

  wait(stream: bigint, event: bigint): number {
    if (!this.live.event.has(event)) return 400
    const mark = this.#marks.get(event)
    if (mark) this.#push(stream, { kind: 'wait', mark })
    return 0
  }

  /** Does all that the event comes after. */
  happened(event: bigint): number {
    const mark = this.#marks.get(event)
    if (mark) this.#runUntil(mark)
    return 0
  }

  elapsed(start: bigint, end: bigint): number | undefined {
    const [a, b] = [this.#marks.get(start)?.at, this.#marks.get(end)?.at]
    return a === undefined || b === undefined ? undefined : b - a
  }

  finish(stream: bigint): void {
    const queue = this.#queues.get(stream) ?? []
    while (queue.length > 0) this.#step(stream)
  }

  beginCapture(stream: bigint): number {
    if (this.#captured) return 901
    this.#captured = { stream, ops: [] }
    return 0
  }

  /** A call that cannot be captured ends the capture; whether there was one. */
  spoil(): boolean {
    if (this.#captured) this.#spoilt = true
    return this.#spoilt
  }

  endCapture(stream: bigint): bigint | undefined {
    if (this.#captured?.stream !== stream) return undefined
    const spoilt = this.#spoilt
    this.#spoilt = false
    if (spoilt) {
      this.#captured = undefined
      return undefined
    }
    const graph = this.make('graph')
    this.#graphs.set(graph, this.#captured.ops)
    this.#captured = undefined
    return graph
  }

  instantiate(graph: bigint): bigint {
    const executable = this.make('executable')
    this.#graphs.set(executable, this.#graphs.get(graph) ?? [])
    return executable
  }

  replay(executable: bigint, stream: bigint): number {
    if (!this.live.executable.has(executable)) return 400
    for (const op of this.#graphs.get(executable) ?? []) {
      if (op.kind === 'node') this.record(op.event, stream)
      else this.#push(stream, op)
    }
    return 0
  }

  #push(stream: bigint, op: Op): void {
    this.#queues.get(stream)!.push(op)
    if (!this.lazy) this.finish(stream)
  }

  #step(stream: bigint): void {
    const queue = this.#queues.get(stream)!
    const op = queue[0]!
    if (op.kind === 'wait') this.#runUntil(op.mark)
    queue.shift()
    if (op.kind === 'do') op.body()
    if (op.kind === 'record') op.mark.at = this.#clock
  }

  #runUntil(mark: Mark): void {
    while (mark.at === undefined) this.#step(mark.stream)
  }
}
