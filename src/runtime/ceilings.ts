/** Measured ceilings of the roofline model, by name of the chip. */

import type { DeviceKind } from './device.ts'

export interface Ceilings {
  /** Bytes per second from device memory, and from the L2 cache (`cache`). */
  readonly memory: number
  readonly cache: number
  /** Largest working set in bytes that fits the cache. */
  readonly cacheBytes: number
  /**
   * Operations per second of the f32 units, and of matrix units with tf32 or 16-bit factors (as the vendor's library reaches
   * at 4096³; infinite if not measured).
   */
  readonly f32: number
  readonly tf32: number
  readonly f16: number
}

const CHIPS: readonly (readonly [name: string, Ceilings])[] = [
  ['H200', { memory: 4.47e12, cache: 8.4e12, cacheBytes: 60e6, f32: 65e12, tf32: 350e12, f16: 645e12 }],
]

let readCalibrated: (kind: DeviceKind, chip: string) => Ceilings | undefined = () => undefined

/** Sets the source of ceilings for calibrated devices. */
export function readCeilingsBy(reader: typeof readCalibrated): void {
  readCalibrated = reader
}

/** Ceilings of a device by kind and name; undefined if it was not measured. */
export const ceilingsOf = (kind: DeviceKind, chip: string): Ceilings | undefined =>
  CHIPS.find(([name]) => chip.includes(name))?.[1] ?? readCalibrated(kind, chip)
