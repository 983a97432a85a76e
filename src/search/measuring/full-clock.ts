/** A chip that idled, as while the next kernel is compiled, has a low clock: up to six times slower, until it has worked. */
import { SptError } from '../../ast/diagnostic.ts'
import type { Device } from '../../runtime/device.ts'
import type { Measurable } from './measure-rounds.ts'

/** Milliseconds of work after which its clock is the usual one. */
const WORK_MS = 30
const MOST_RUNS = 2000

/** Lets the device work, with a kernel that is short. Processors are left as they are. */
export async function atFullClock(device: Device, { commands }: Measurable): Promise<void> {
  if (device.kind === 'cpu') return
  try {
    const [once = 0] = await device.time(commands, 1)
    const runs = Math.max(1, Math.min(MOST_RUNS, Math.ceil(WORK_MS / Math.max(once, 1e-3))))
    await device.run(Array.from({ length: runs }, () => commands).flat())
  } catch (e) {
    // A device that is lost says so to what is measured, which may be to blame.
    if (!(e instanceof SptError)) throw e
  }
}
