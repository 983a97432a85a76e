/** Graphs of prepared kernels. */
import type { Graph, Stream } from '../../runtime/device.ts'

/**
 * All launches of a prepared kernel, recorded once (`runtime/device.ts`). The graph uses the memory of the prepared kernel, so `write`
 * provides new values for the next replay.
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

  /** Queues a replay without waiting. Throws SptError like `Graph.launch`. */
  launch(stream?: Stream): void {
    this.#graph.launch(stream)
  }

  /**
   * Resolves when all queued work of the device has finished. Throws SptError like `Device.finish`: `run/lost-writes` if a write of the
   * latest replay found no element, `run/overflow`, `device/fault`.
   */
  finish(): Promise<void> {
    return this.#finish()
  }

  /** Milliseconds of each of `repeats` replays, like `Graph.time`. Throws SptError `run/lost-writes`, `run/overflow`. */
  time(repeats: number, between?: Graph): Promise<number[]> {
    return this.#graph.time(repeats, between)
  }

  free(): void {
    this.#graph.free()
  }
}
