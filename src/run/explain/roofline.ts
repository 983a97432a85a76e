/** The roofline model: work and times relative to the peak rates (measured ceilings) of a chip. */

import type { DeviceKind } from '../../runtime/device.ts'
import type { Achieved, Bytes, Certainty, Operations, Roof, Times, Work } from './explanation.ts'

const SECOND = 1000

/**
 * Returns the resource that bounds the time; `null` without work. Matrix operations other than 16-bit and f32 have no measured peak rate.
 */
export function roofOf(c: Ceilings, { bytes, operations }: Work): Roof | null {
  const cached = bytes.compulsory <= c.cacheBytes
  const times: readonly Roof[] = [
    {
      by: cached ? 'cache' : 'memory',
      minMilliseconds: (SECOND * bytes.compulsory) / (cached ? c.cache : c.memory),
    },
    { by: 'f32', minMilliseconds: (SECOND * operations.scalar) / c.f32 },
    { by: 'tf32', minMilliseconds: (SECOND * operations.matrix32) / c.tf32 },
    { by: 'f16', minMilliseconds: (SECOND * operations.matrix16) / c.f16 },
  ]
  const most = times.reduce((a, b) => (b.minMilliseconds > a.minMilliseconds ? b : a))
  return most.minMilliseconds > 0 ? most : null
}

export function achievedOf(c: Ceilings | undefined, work: Work, time: Times): Achieved | null {
  if (!(time.median > 0)) return null
  const seconds = time.median / SECOND
  const { bytes, operations } = work
  const rate = c && (bytes.compulsory <= c.cacheBytes ? c.cache : c.memory)
  const least =
    c && Math.max(operations.scalar / c.f32, operations.matrix32 / c.tf32, operations.matrix16 / c.f16)
  return {
    bandwidth: bytes.compulsory / seconds,
    flops: allOperations(operations) / seconds,
    bandwidthFraction: rate === undefined ? null : bytes.compulsory / seconds / rate,
    flopsFraction: least === undefined || operations.matrixOther > 0 ? null : least / seconds,
  }
}

export const allOperations = (o: Operations): number => o.scalar + o.matrix16 + o.matrix32 + o.matrixOther

export function workOf(bytes: Bytes, operations: Operations, certainty: Certainty): Work {
  return {
    bytes,
    operations,
    intensity: bytes.compulsory > 0 ? allOperations(operations) / bytes.compulsory : 0,
    certainty,
  }
}

/** Sums the work of launches; traffic between launches counts in each. `cleared`: bytes of clears. */
export function sumOf(works: readonly Work[], cleared: number): Work {
  const sum = (of: (w: Work) => number): number => works.reduce((n, w) => n + of(w), 0)
  return workOf(
    {
      compulsory: sum((w) => w.bytes.compulsory) + cleared,
      loaded: sum((w) => w.bytes.loaded),
      stored: sum((w) => w.bytes.stored) + cleared,
      sharedLoaded: sum((w) => w.bytes.sharedLoaded),
      sharedStored: sum((w) => w.bytes.sharedStored),
    },
    {
      scalar: sum((w) => w.operations.scalar),
      matrix16: sum((w) => w.operations.matrix16),
      matrix32: sum((w) => w.operations.matrix32),
      matrixOther: sum((w) => w.operations.matrixOther),
    },
    {
      sampledFraction: Math.min(1, ...works.map((w) => w.certainty.sampledFraction)),
      hasAssumptions: works.some((w) => w.certainty.hasAssumptions),
    },
  )
}

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
