/**
 * Work that is queued without waiting for it: graphs, streams and events.
 *
 * Replaying, with other data each time:
 * ```ts
 * const graph = await device.graph(commands)     // recorded once
 * for (const x of inputs) {
 *   await device.upload(buffer, x)               // in place: the graph reads its buffers as they are
 *   graph.launch()                               // one call; does not wait
 *   use(await device.download(result))           // transfers come after all that was queued before them
 * }
 * graph.free()
 * ```
 *
 * Two queues, one of which needs what the other makes:
 * ```ts
 * const [a, b] = [device.stream('a'), device.stream('b')]
 * const made = device.event()
 * produce.launch(a)
 * a.record(made)
 * other.launch(b)                                // may run beside `produce`
 * b.wait(made)
 * consume.launch(b)                              // runs after both
 * await device.finish()                          // faults come out here
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
 * What a device makes of it:
 *
 * |  | cuda | webgpu | cpu |
 * |---|---|---|---|
 * | a graph | an executable graph, one call a replay | bindings and scalars in place, one submission a replay | plain calls, done when `launch` returns |
 * | streams | queues that may overlap | all are the one queue, in the order of the calls | the same |
 * | events | the device's clock | its timestamps, or the host's clock where it has none | the host's clock |
 *
 * So an order that events ask for holds everywhere; what is left to chance on cuda happens in the order of the calls
 * elsewhere. `run`, `time`, `upload` and `download` start after all that was queued before them on any stream; what is
 * queued on a stream does not wait for calls of those that have not resolved yet.
 */

/** Commands recorded once and replayed; buffers and modules have to outlive it. */
export interface Graph {
  /**
   * Queues a replay behind the stream's work (default: the queue of `run`). The next call that waits reports faults.
   * @throws SptError `device/freed`, and as `Device.run` if buffers or modules are freed
   */
  launch(stream?: Stream): void
  /**
   * Milliseconds of each of `repeats` replays, one after the other; `between` runs before each, unmeasured. The host
   * takes no part in a measured region where the device can record events in graphs.
   */
  time(repeats: number, between?: Graph): Promise<number[]>
  /** Does nothing the second time. */
  free(): void
}

/** A queue whose work runs in order. */
export interface Stream {
  readonly label: string
  /** The event happens when all that is queued here so far has finished. */
  record(event: DeviceEvent): void
  /** Makes later work in this stream wait for the latest recording of the event; no effect if it was never recorded. */
  wait(event: DeviceEvent): void
  /** Resolves when all that is queued here has finished; rejects as `Device.run`. */
  finish(): Promise<void>
  /** Waits for the queued work. Idempotent. */
  free(): void
}

/** A point in a stream, recorded as often as one likes. */
export interface DeviceEvent {
  /** Milliseconds from `earlier` to this event, when both have happened. @throws SptError `device/not-recorded` */
  since(earlier: DeviceEvent): Promise<number>
  free(): void
}
