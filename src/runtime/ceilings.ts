/** Measured peak rates of chips: data by the chip's name. */

import type { DeviceKind } from './device.ts'

export interface Ceilings {
  /** Bytes a second from device memory, and from the L2 cache. */
  readonly memory: number
  readonly cache: number
  /** Largest working set in bytes that is read from the cache. */
  readonly cacheBytes: number
  /**
   * Operations a second: f32 units; matrix units, with factors of so many bits, as the vendor's library reaches them at 4096³,
   * infinite where they were not measured.
   */
  readonly f32: number
  readonly tf32: number
  readonly f16: number
}

const CHIPS: readonly (readonly [name: string, Ceilings])[] = [
  ['H200', { memory: 4.47e12, cache: 8.4e12, cacheBytes: 60e6, f32: 65e12, tf32: 350e12, f16: 645e12 }],
]

let calibrated: (kind: DeviceKind, chip: string) => Ceilings | undefined = () => undefined

/** Sets the source of ceilings for calibrated devices. */
export function readCeilingsBy(reader: typeof calibrated): void {
  calibrated = reader
}

/** Ceilings of a device by kind and name; undefined if it was not measured. */
export const ceilingsOf = (kind: DeviceKind, chip: string): Ceilings | undefined =>
  CHIPS.find(([name]) => chip.includes(name))?.[1] ?? calibrated(kind, chip)
