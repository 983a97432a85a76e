/**
 * Graphs, streams and events: work that is queued without waiting for it.
 *
 * Replays of a graph with new data:
 * ```ts
 * const graph = await device.graph(commands)     // recorded once
 * for (const x of inputs) {
 *   await device.upload(buffer, x)               // in place: the graph reads the current contents of its buffers
 *   graph.launch()                               // one call; does not wait
 *   use(await device.download(result))           // transfers run after all work queued before
 * }
 * graph.free()
 * ```
 *
 * Two streams, a producer and a consumer:
 * ```ts
 * const [a, b] = [device.stream('a'), device.stream('b')]
 * const made = device.event()
 * produce.launch(a)
 * a.record(made)
 * other.launch(b)                                // may overlap with `produce`
 * b.wait(made)
 * consume.launch(b)                              // runs after both
 * await device.finish()                          // rejects on faults
 * ```
 *
 * The time of a region:
 * ```ts
 * const [start, end] = [device.event(), device.event()]
 * stream.record(start)
 * graph.launch(stream)
 * stream.record(end)
 * const milliseconds = await end.since(start)
 * ```
 *
 * Implementations:
 *
 * |  | cuda | webgpu | cpu |
 * |---|---|---|---|
 * | a graph | an executable graph, one call per replay | bindings and scalars in place, one submission per replay | plain calls, completed when `launch` returns |
 * | streams | queues that may overlap | one queue, in the order of the calls | one queue, in the order of the calls |
 * | events | the device's clock | timestamps if supported, otherwise the host's clock | the host's clock |
 *
 * An order that events require holds on every device. Without events, work on different streams is unordered on cuda, and runs
 * in the order of the calls elsewhere. `run`, `time`, `upload` and `download` start after all work queued before on any stream.
 * Work queued on a stream does not wait for pending calls of these four.
 */

/** Commands recorded once and replayed; buffers and modules must outlive the graph. */
export interface Graph {
  /**
   * Queues a replay on the stream (default: the queue of `run`). The next call that waits reports faults.
   * @throws SptError `device/freed`, and as `Device.run` if buffers or modules are freed
   */
  launch(stream?: Stream): void
  /**
   * Milliseconds of each of `repeats` consecutive replays; `between` runs before each, unmeasured. Host overhead is excluded if
   * the device can record events in graphs.
   */
  time(repeats: number, between?: Graph): Promise<number[]>
  /** Frees the graph. Idempotent. */
  free(): void
}

/** A queue whose work runs in order. */
export interface Stream {
  readonly label: string
  /** Records the event, which happens when all work queued here so far has finished. */
  record(event: DeviceEvent): void
  /** Makes later work in this stream wait for the latest recording of the event; no effect if it was never recorded. */
  wait(event: DeviceEvent): void
  /** Resolves when all work queued here has finished; rejects as `Device.run`. */
  finish(): Promise<void>
  /** Waits for the queued work. Idempotent. */
  free(): void
}

/** A point in a stream, which can be recorded repeatedly. */
export interface DeviceEvent {
  /** Milliseconds from `earlier` to this event, when both have happened. @throws SptError `device/not-recorded` */
  since(earlier: DeviceEvent): Promise<number>
  free(): void
}
