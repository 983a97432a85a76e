/** Occupancy: the number of blocks per multiprocessor (SM), by NVIDIA's occupancy calculation. */
import { REGISTER_UNIT } from '../../backends/targets/cuda/limits.ts'
import type { Occupancy, OccupancyLimit, Resources } from './explanation.ts'

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
