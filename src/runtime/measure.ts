/**
 * Timing for benchmarks, with one call for every device:
 * ```ts
 * const hot = await measure(device, commands)                     // events around each run
 * const cold = await measure(device, commands, { flush: true })   // with cold caches
 * const short = await measure(device, commands, { batch: 50 })    // under 20 µs: the mean of 50 runs in a graph
 * median(hot.times)
 * ```
 */
import { failAs, failWith, SptError } from '../ast/diagnostics/diagnostic.ts'
import { expectArgument, show } from '../ast/diagnostics/expect-argument.ts'
import { Work, type WorkOptions } from '../ast/work.ts'
import type { Command, Device, DeviceBuffer, Graph } from './device.ts'
import { MAX_RUNS } from './device-checks.ts'

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

/** Samples between two checkpoints. */
const SAMPLES = 16

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
  options: MeasureOptions & WorkOptions = {},
): Promise<Measurement> {
  const work = new Work(options)
  const { warmups = 10, repeats = 50, flush = false, batch = 1, by = 'graph' } = options
  check(warmups, repeats, batch, flush, by)
  const timer = new Timer(device, flush, by)
  try {
    const empty = await timer.runs([], 1)
    const floor = Math.min(...(await empty(FLOOR_SAMPLES, false)))
    const runs = await timer.runs(commands, batch)
    if (warmups > 0) {
      work.begin('warm up')
      await raiseClock(device, commands)
      await work.checkpoint()
      await runs(Math.ceil(warmups / batch), false)
    }
    work.begin('measure')
    const times: number[] = []
    while (times.length < repeats) {
      await work.checkpoint()
      times.push(...(await runs(Math.min(SAMPLES, repeats - times.length))))
    }
    return { times, floor }
  } finally {
    timer.free()
  }
}

/** Samples the times of commands on a device. `free` releases its graphs and buffers. */
export class Timer {
  readonly #flushMemory: DeviceBuffer | undefined
  readonly #mode: 'graph' | 'launches'
  readonly #graphs: Graph[] = []
  #between: Graph | undefined

  /** @param flush - Overwrite the caches before each sample */
  constructor(
    private readonly device: Device,
    flush: boolean,
    by: 'graph' | 'launches',
  ) {
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
      const times = await (graph ? graph.time(n, between) : this.device.time(batched, n, between))
      return times.map((t) => t / batch)
    }
  }

  async #graph(commands: readonly Command[]): Promise<Graph> {
    const graph = await this.device.graph(commands)
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
    failAs('measure/options', {
      message: `cannot measure ${show(repeats)} samples of ${show(batch)} runs after ${show(warmups)} warm-ups`,
      expected: `whole numbers up to ${MAX_RUNS}: warmups from 0, repeats and batch from 1 on`,
    })
  expectArgument(typeof flush === 'boolean', 'flush', flush, 'true or false')
  expectArgument(by === 'graph' || by === 'launches', 'by', by, "'graph' or 'launches'")
  if (flush && batch > 1)
    failWith('measure/options', `the caches cannot be flushed between ${batch} runs that are timed as one`, {
      expected: 'flush with a batch of 1',
    })
}

// Brings an idle GPU to its full clock before measurements. A GPU that idles, for example during compilation,
// lowers its clock. An H100 that is used only through Vulkan drops from 1,980 to 345 MHz after two seconds
// (not after one). It needs 0.4 to 1.2 s of uninterrupted work to recover, in steps; runs that wait for each
// other need more than 3 s. A CUDA context keeps the clock up, even after 20 s.

/** Milliseconds that the clock stays up without work, of a burst of runs, and of all bursts at most. */
const CLOCK_HOLD_MS = 1000
const BURST_MS = 20
const MAX_MS = 2500
const MAX_BURST_RUNS = 2000
/** Steps of the clock last up to 180 ms. */
const STEADY_MS = { webgpu: 250, cuda: 30 } as const
/** A burst counts as faster below this ratio; smaller changes are noise. */
const FASTER_RATIO = 0.98

const lastBusy = new WeakMap<Device, number>()

/** Runs repeatable commands until they get no faster. Does nothing for CPUs and software adapters. */
export async function raiseClock(device: Device, commands: readonly Command[]): Promise<void> {
  const { kind } = device
  if (kind === 'cpu' || device.isSoftware) return
  const start = performance.now()
  if (start - (lastBusy.get(device) ?? Number.NEGATIVE_INFINITY) > CLOCK_HOLD_MS) {
    try {
      const [runTime = 0] = await device.time(commands, 1)
      const runs = Math.max(1, Math.min(MAX_BURST_RUNS, Math.ceil(BURST_MS / Math.max(runTime, 1e-3))))
      const burst = Array.from({ length: runs }, () => commands).flat()
      for (let [fastest, fastestAt, now] = [Number.POSITIVE_INFINITY, start, start]; ; ) {
        const burstStart = now
        await device.run(burst)
        now = performance.now()
        if (now - burstStart < FASTER_RATIO * fastest) [fastest, fastestAt] = [now - burstStart, now]
        if (now - fastestAt > STEADY_MS[kind] || now - start > MAX_MS) break
      }
    } catch (e) {
      // If the device is lost, the measurement reports it.
      if (!(e instanceof SptError)) throw e
      return
    }
    // Only uninterrupted work raises the clock, so other calls do not update this time.
    lastBusy.set(device, performance.now())
  }
}
