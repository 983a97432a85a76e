/** A simulated device, counting the bytes that are held on it. */
import type { Device } from '../../src/node.ts'
import { simulatedDevice } from './simulated-device.ts'

export interface Counted {
  readonly device: Device
  /** Bytes that are allocated and not freed. */
  held(): number
  /** The most there were since the last call. */
  most(): number
}

export async function countedDevice(): Promise<Counted> {
  const device = await simulatedDevice()
  let [now, peak] = [0, 0]
  const alloc = device.alloc.bind(device)
  device.alloc = (bytes, label) => {
    const buffer = alloc(bytes, label)
    now += bytes
    peak = Math.max(peak, now)
    const free = buffer.free.bind(buffer)
    let freed = false
    buffer.free = () => {
      if (!freed) now -= bytes
      freed = true
      free()
    }
    return buffer
  }
  return {
    device,
    held: () => now,
    most() {
      const was = peak
      peak = now
      return was
    },
  }
}
