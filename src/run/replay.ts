/** A prepared kernel as a graph. */
import type { Graph, Stream } from '../runtime/device.ts'

/**
 * All launches of a prepared kernel, recorded once (`runtime/streams.ts`). It uses the prepared kernel's memory: `write`
 * brings new values for the next replay.
 * ```ts
 * const graph = await prepared.graph()
 * await prepared.write('B', values)
 * graph.launch()
 * await graph.finish()
 * const C = await prepared.read('C')
 * ```
 */
export class KernelGraph implements Graph {
  readonly #graph: Graph
  readonly #finish: () => Promise<void>

  constructor(graph: Graph, finish: () => Promise<void>) {
    this.#graph = graph
    this.#finish = finish
  }

  /** Queues a replay; does not wait. @throws SptError as `Graph.launch` */
  launch(stream?: Stream): void {
    this.#graph.launch(stream)
  }

  /**
   * Resolves when all that was queued on the device has finished. @throws SptError as `Device.finish`: `run/lost-writes` where a
   * write of the latest replay found no element, `run/overflow`, `device/fault`
   */
  finish(): Promise<void> {
    return this.#finish()
  }

  /** Milliseconds of each of `repeats` replays, as `Graph.time`. @throws SptError `run/lost-writes`, `run/overflow` */
  time(repeats: number, between?: Graph): Promise<number[]> {
    return this.#graph.time(repeats, between)
  }

  free(): void {
    this.#graph.free()
  }
}
