/** The roofline model: work and times relative to the peak rates (measured ceilings) of a chip. */

import { REGISTER_UNIT } from '../../backends/targets/cuda/limits.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type {
  Achieved,
  Bytes,
  Certainty,
  Occupancy,
  OccupancyLimit,
  Operations,
  Resources,
  Roof,
  Times,
  Work,
} from './explanation.ts'

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

const BYTES = ['compulsory', 'loaded', 'stored', 'sharedLoaded', 'sharedStored'] as const
const OPERATIONS = ['scalar', 'matrix16', 'matrix32', 'matrixOther'] as const

const totals = <K extends string>(keys: readonly K[], list: readonly Readonly<Record<K, number>>[]) =>
  Object.fromEntries(keys.map((k) => [k, list.reduce((n, x) => n + x[k], 0)])) as Record<K, number>

/** Sums the work of launches; traffic between launches counts in each. `cleared`: bytes of clears. */
export function sumOf(works: readonly Work[], cleared: number): Work {
  const bytes = totals(
    BYTES,
    works.map((w) => w.bytes),
  )
  const operations = totals(
    OPERATIONS,
    works.map((w) => w.operations),
  )
  const { compulsory, stored } = bytes
  return workOf({ ...bytes, compulsory: compulsory + cleared, stored: stored + cleared }, operations, {
    sampledFraction: Math.min(1, ...works.map((w) => w.certainty.sampledFraction)),
    hasAssumptions: works.some((w) => w.certainty.hasAssumptions),
  })
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

/** Properties of a chip, as reported by the driver. `Chip` of the cuda device implements it. */
export interface Multiprocessor {
  readonly major: number
  readonly multiprocessors: number
  readonly warpSize: number
  readonly maxThreadsPerMultiprocessor: number
  readonly maxBlocksPerMultiprocessor: number
  readonly sharedPerMultiprocessor: number
  readonly registersPerMultiprocessor: number
}

/** Registers are allocated per quarter of an SM. */
const QUARTERS = 4
/** Allocation unit of shared memory (`SHARED_UNIT`), and bytes per block that the system reserves from compute capability 8.0 on. */
const SHARED_UNIT = 128
const SHARED_OF_SYSTEM = 1024

const upTo = (unit: number, n: number): number => Math.ceil(n / unit) * unit

/** Returns the occupancy of a launch. `threads`: per block; `blocks`: of the whole launch. */
export function occupancyOf(
  chip: Multiprocessor,
  used: Pick<Resources, 'registers' | 'shared'>,
  threads: number,
  blocks: number,
): Occupancy {
  const warps = Math.ceil(threads / chip.warpSize)
  const maxWarps = Math.floor(chip.maxThreadsPerMultiprocessor / chip.warpSize)
  const perWarp = upTo(REGISTER_UNIT, used.registers * chip.warpSize)
  const withRegisters = Math.floor(chip.registersPerMultiprocessor / QUARTERS / perWarp) * QUARTERS
  const shared = upTo(SHARED_UNIT, used.shared + (chip.major >= 8 ? SHARED_OF_SYSTEM : 0))
  const limits: readonly (readonly [OccupancyLimit, number])[] = [
    ['threads', Math.floor(maxWarps / warps)],
    ['registers', used.registers === 0 ? Number.POSITIVE_INFINITY : Math.floor(withRegisters / warps)],
    [
      'shared memory',
      shared === 0 ? Number.POSITIVE_INFINITY : Math.floor(chip.sharedPerMultiprocessor / shared),
    ],
    ['blocks', chip.maxBlocksPerMultiprocessor],
  ]
  // The first of several equal limits is reported.
  const [by, most] = limits.reduce((least, l) => (l[1] < least[1] ? l : least))
  const given = Math.ceil(blocks / chip.multiprocessors)
  const resident = Math.min(most, given)
  return {
    blocks: resident,
    warps: resident * warps,
    maxWarps,
    limitedBy: given < most ? 'grid' : by,
    waves: most > 0 ? Math.ceil(blocks / (most * chip.multiprocessors)) : 0,
  }
}
