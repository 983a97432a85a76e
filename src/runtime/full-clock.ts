/**
 * A chip that idled, as while the next kernel is compiled or a result is checked, has a low clock until it has worked for a
 * while. An H100 that only Vulkan uses falls to 345 of 1,980 MHz after two seconds (not after one), and is back in steps, after
 * 0.4 to 1.2 s of work without a pause; single runs that wait for each other take longer than three. A CUDA context keeps its
 * clock up: the same before and after 20 s.
 */
import { SptError } from '../ast/diagnostic.ts'
import type { Command, Device } from './device.ts'

/** Milliseconds: for so long a clock stays up, so long a burst of runs is, and so long all of them have to take. */
const STAYS_MS = 1000
const BURST_MS = 20
const MOST_MS = 2500
const MOST_RUNS = 2000
/** Steps of the clock last up to 180 ms. */
const STEADY_MS = { webgpu: 250, cuda: 30 } as const
/** Less is noise. */
const FASTER = 0.98

const lastUp = new WeakMap<Device, number>()

/** Runs the commands, which may run any number of times, until they get no faster. Processors are left as they are. */
export async function atFullClock(device: Device, commands: readonly Command[]): Promise<void> {
  const { kind } = device
  if (kind === 'cpu' || device.isSoftware) return
  const start = performance.now()
  if (start - (lastUp.get(device) ?? Number.NEGATIVE_INFINITY) > STAYS_MS) {
    try {
      const [once = 0] = await device.time(commands, 1)
      const runs = Math.max(1, Math.min(MOST_RUNS, Math.ceil(BURST_MS / Math.max(once, 1e-3))))
      const burst = Array.from({ length: runs }, () => commands).flat()
      for (let [least, since, now] = [Number.POSITIVE_INFINITY, start, start]; ; ) {
        const before = now
        await device.run(burst)
        now = performance.now()
        if (now - before < FASTER * least) [least, since] = [now - before, now]
        if (now - since > STEADY_MS[kind] || now - start > MOST_MS) break
      }
    } catch (e) {
      // A device that is lost says so to what is measured, which may be to blame.
      if (!(e instanceof SptError)) throw e
      return
    }
    // Only work without a pause counts: calls that follow each other within a second may have waited in between.
    lastUp.set(device, performance.now())
  }
}
