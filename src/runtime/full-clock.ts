/**
 * Brings an idle GPU to its full clock before measurements. A GPU that idles, for example during compilation, lowers its clock.
 * An H100 that is used only through Vulkan drops from 1,980 to 345 MHz after two seconds (not after one). It needs 0.4 to 1.2 s
 * of uninterrupted work to recover, in steps; runs that wait for each other need more than 3 s. A CUDA context keeps the clock
 * up, even after 20 s.
 */
import { SptError } from '../ast/diagnostics/diagnostic.ts'
import type { Command, Device } from './device.ts'

/** Milliseconds that the clock stays up without work, of a burst of runs, and of all bursts at most. */
const CLOCK_HOLD_MS = 1000
const BURST_MS = 20
const MAX_MS = 2500
const MAX_RUNS = 2000
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
      const runs = Math.max(1, Math.min(MAX_RUNS, Math.ceil(BURST_MS / Math.max(runTime, 1e-3))))
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
