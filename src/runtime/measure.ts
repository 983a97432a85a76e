/**
 * Timing for benchmarks, with one call for every device:
 * ```ts
 * const hot = await measure(device, commands)                     // events around each run
 * const cold = await measure(device, commands, { flush: true })   // with cold caches
 * const short = await measure(device, commands, { batch: 50 })    // under 20 µs: the mean of 50 runs in a graph
 * median(hot.times)
 * ```
 */

import { fail } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, show } from '../ast/diagnostics/expect-argument.ts'
import type { Command, Device, DeviceBuffer, Graph } from './device.ts'
import { MAX_RUNS } from './device-checks.ts'
import { raiseClock } from './full-clock.ts'

export interface MeasureOptions {
  /** Number of warm-up runs; 10. If not 0, further runs first bring an idle GPU to its full clock. */
  readonly warmups?: number
  /** Samples; 50. */
  readonly repeats?: number
  /** Overwrites the caches before each sample. Not with `batch`. */
  readonly flush?: boolean
  /** Number of runs in a sample, between the same two events; 1. A sample is the mean of its runs. */
  readonly batch?: number
  /**
   * `graph` (default): the commands are replayed from a graph, without host overhead. `launches`: they are launched one by
   * one, as `run` does.
   */
  readonly by?: 'graph' | 'launches'
}

export interface Measurement {
  /** Milliseconds of a run, for each sample. */
  readonly times: readonly number[]
  /** Minimum milliseconds of an empty region. Each sample contains it once, not once for each run. */
  readonly floor: number
}

/** Bytes written to flush the caches: several times the largest L2 cache. */
const FLUSH_BYTES = 256 * 2 ** 20
const FLOOR_SAMPLES = 20

/** @throws SptError `measure/options`, `api/argument`, and as `Device.run` */
export async function measure(
  device: Device,
  commands: readonly Command[],
  options: MeasureOptions = {},
): Promise<Measurement> {
  const { warmups = 10, repeats = 50, flush = false, batch = 1, by = 'graph' } = options
  check(warmups, repeats, batch, flush, by)
  const timer = new Timer(device, flush, by)
  try {
    const empty = await timer.runs([], 1)
    const floor = Math.min(...(await empty(FLOOR_SAMPLES, false)))
    const runs = await timer.runs(commands, batch)
    if (warmups > 0) {
      await raiseClock(device, commands)
      await runs(Math.ceil(warmups / batch), false)
    }
    return { times: await runs(repeats), floor }
  } finally {
    timer.free()
  }
}

/** Samples the times of commands on a device. `free` releases its graphs and buffers. */
export class Timer {
  readonly #device: Device
  readonly #flushMemory: DeviceBuffer | undefined
  readonly #mode: 'graph' | 'launches'
  readonly #graphs: Graph[] = []
  #between: Graph | undefined

  /** @param flush - Overwrite the caches before each sample */
  constructor(device: Device, flush: boolean, by: 'graph' | 'launches') {
    this.#device = device
    this.#mode = by
    const bytes = Math.min(FLUSH_BYTES, Math.floor(device.limits.maxBufferBytes / 2))
    if (flush) this.#flushMemory = device.alloc(bytes, 'what flushes the caches')
  }

  /**
   * Returns a function that measures `n` samples: milliseconds of a run, as the mean of `batch` consecutive runs.
   * @throws SptError as `Device.run`
   */
  async runs(
    commands: readonly Command[],
    batch: number,
  ): Promise<(n: number, isFlushed?: boolean) => Promise<number[]>> {
    const batched = Array.from({ length: batch }, () => commands).flat()
    if (this.#flushMemory) this.#between ??= await this.#graph([{ kind: 'clear', buffer: this.#flushMemory }])
    const graph = this.#mode === 'graph' ? await this.#graph(batched) : undefined
    return async (n, isFlushed = true) => {
      const between = isFlushed ? this.#between : undefined
      const times = await (graph ? graph.time(n, between) : this.#device.time(batched, n, between))
      return times.map((t) => t / batch)
    }
  }

  async #graph(commands: readonly Command[]): Promise<Graph> {
    const graph = await this.#device.graph(commands)
    this.#graphs.push(graph)
    return graph
  }

  free(): void {
    for (const g of this.#graphs) g.free()
    this.#flushMemory?.free()
  }
}

function check(warmups: number, repeats: number, batch: number, flush: boolean, by: string): void {
  const isCount = (n: number, min: number): boolean => Number.isSafeInteger(n) && n >= min && n <= MAX_RUNS
  if (!isCount(warmups, 0) || !isCount(repeats, 1) || !isCount(batch, 1))
    fail({
      code: 'measure/options',
      message: `cannot measure ${show(repeats)} samples of ${show(batch)} runs after ${show(warmups)} warm-ups`,
      expected: `whole numbers up to ${MAX_RUNS}: warmups from 0, repeats and batch from 1 on`,
    })
  expectArgument(typeof flush === 'boolean', 'flush', flush, 'true or false')
  expectArgument(by === 'graph' || by === 'launches', 'by', by, "'graph' or 'launches'")
  if (flush && batch > 1)
    fail({
      code: 'measure/options',
      message: `the caches cannot be flushed between ${batch} runs that are timed as one`,
      expected: 'flush with a batch of 1',
    })
}
