/**
 * Timing as benchmarks do it. One call for every device:
 * ```ts
 * const hot = await measure(device, commands)                     // events around each run
 * const cold = await measure(device, commands, { flush: true })   // nothing of it in a cache
 * const short = await measure(device, commands, { batch: 50 })    // under 20 µs: the mean of 50 runs in a graph
 * median(hot.times)
 * ```
 */

import { fail } from '../ast/diagnostic.ts'
import { expectArgument, show } from '../ast/expect-argument.ts'
import { MAX_RUNS } from './check-calls.ts'
import type { Command, Device } from './device.ts'
import type { Graph } from './streams.ts'

export interface MeasureOptions {
  /** Runs before the first that counts; 10. */
  readonly warmups?: number
  /** Samples; 50. */
  readonly repeats?: number
  /** Overwrites the caches before each sample. Not with `batch`. */
  readonly flush?: boolean
  /** Runs to a sample, one after the other between the same two events; 1. A sample is their mean. */
  readonly batch?: number
  /**
   * `graph` (default): the commands are replayed from a graph, and the host takes no part in what is measured. `launches`:
   * they are launched one by one, as `run` does.
   */
  readonly by?: 'graph' | 'launches'
}

export interface Measurement {
  /** Milliseconds of a run, for each sample. */
  readonly times: readonly number[]
  /** Milliseconds that an empty region takes in the same way, at best: contained in each sample once, not for each run. */
  readonly floor: number
}

/** What is written to flush the caches: several times the largest L2 cache. */
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
  const list = Array.from({ length: batch }, () => commands).flat()
  const bytes = Math.min(FLUSH_BYTES, Math.floor(device.limits.maxBufferBytes / 2))
  const memory = flush ? device.alloc(bytes, 'what flushes the caches') : undefined
  const graphs: Graph[] = []
  const graph = async (of: readonly Command[]): Promise<Graph> => {
    const recorded = await device.graph(of)
    graphs.push(recorded)
    return recorded
  }
  try {
    const between = memory && (await graph([{ kind: 'clear', buffer: memory }]))
    const sample = async (
      of: readonly Command[],
    ): Promise<(n: number, after?: Graph) => Promise<number[]>> => {
      if (by === 'launches') return (n, after) => device.time(of, n, after)
      const recorded = await graph(of)
      return (n, after) => recorded.time(n, after)
    }
    const empty = await sample([])
    const floor = Math.min(...(await empty(FLOOR_SAMPLES)))
    const runs = await sample(list)
    if (warmups > 0) await runs(Math.ceil(warmups / batch))
    const times = await runs(repeats, between)
    return { times: times.map((t) => t / batch), floor }
  } finally {
    for (const g of graphs) g.free()
    memory?.free()
  }
}

function check(warmups: number, repeats: number, batch: number, flush: boolean, by: string): void {
  const whole = (n: number, least: number): boolean => Number.isSafeInteger(n) && n >= least && n <= MAX_RUNS
  if (!whole(warmups, 0) || !whole(repeats, 1) || !whole(batch, 1))
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
