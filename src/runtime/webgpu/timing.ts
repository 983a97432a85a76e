/** The device's clock: timestamps of passes, read back after all submitted work has finished. */
import { USAGE } from './callers-buffer.ts'
import type { Session } from './session.ts'

/** Maximum number of timestamps in a query set. */
const MAX_QUERIES = 4096
/** Each repeat takes a timestamp before and after it. */
export const REPEATS_PER_CLOCK = MAX_QUERIES / 2

export function clockOf(session: Session, count: number) {
  const { device } = session
  const querySet = device.createQuerySet({ type: 'timestamp', count })
  const size = 8 * count
  const resolved = device.createBuffer({ size, usage: USAGE.queryResolve | USAGE.copySrc })
  const staging = device.createBuffer({ size, usage: USAGE.mapRead | USAGE.copyDst })
  /** Nanoseconds of each timestamp. @param encoder - Commands to submit before the timestamps are read */
  const read = async (
    call: string,
    encoder = session.device.createCommandEncoder(),
  ): Promise<BigInt64Array> => {
    encoder.resolveQuerySet(querySet, 0, count, resolved, 0)
    encoder.copyBufferToBuffer(resolved, 0, staging, 0, 8 * count)
    session.device.queue.submit([encoder.finish()])
    await session.wait(staging.mapAsync(USAGE.mapRead), call)
    const ticks = new BigInt64Array(staging.getMappedRange().slice(0))
    staging.unmap()
    return ticks
  }
  const free = (): void => {
    querySet.destroy()
    resolved.destroy()
    staging.destroy()
  }
  return { querySet, read, free }
}

/** Milliseconds between the timestamps of each pair; not positive where the clock is too coarse. */
export const timesOf = (ticks: BigInt64Array): number[] =>
  Array.from({ length: ticks.length / 2 }, (_, k) => Number(ticks[2 * k + 1]! - ticks[2 * k]!) / 1e6)

/** Reads the device's clock in nanoseconds after all submitted work has finished. */
export async function readDeviceClock(session: Session, call: string): Promise<bigint> {
  const clock = clockOf(session, 1)
  try {
    const encoder = session.device.createCommandEncoder()
    const timestampWrites = { querySet: clock.querySet, endOfPassWriteIndex: 0 }
    encoder.beginComputePass({ timestampWrites }).end()
    return (await clock.read(call, encoder))[0]!
  } finally {
    clock.free()
  }
}
