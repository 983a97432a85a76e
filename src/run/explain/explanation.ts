/**
 * Performance explanation of a kernel, as plain data: traffic, operations, occupancy, and times relative to the roofline.
 *
 * ```ts
 * const e = await prepared.explain()                 // counts, and times on the device
 * const m = await prepared.explain({ time: false })  // runs nothing
 * e.launches[0].threads                              // per block
 * e.launches[0].occupancy?.limitedBy                 // 'registers'
 * e.total.bytes.compulsory / (1e-3 * e.time!.median) // bytes per second, at least
 * ```
 * The same without a device: `explainModel(compilation, bound, 'cuda')`. `spt explain` prints it (docs/reference/cli/explain.md).
 *
 * **Counted**: *Elements loaded and stored*: accesses of all threads of a launch to global and shared memory, one element each, before
 * caches, coalescing and vector accesses. Control flow is simulated with the sizes and index arrays of the binding, so trip counts of
 * variable segments, remainder loops and searches are exact. Threads with identical control flow are counted once and multiplied. If too
 * many differ, a sample is simulated, and `sampledFraction` is its fraction. Conditions and trip counts that depend on results of the plan
 * are assumed to be true and 1, and `hasAssumptions` reports this.
 * *Compulsory bytes*: each array that a launch reads moves once, and each array that it writes; at most the accessed elements count.
 * *Operations*: floating-point additions, multiplications, divisions, minima, maxima and functions count 1, a fused multiply-add 2.
 * Comparisons, casts, negations and integer operations do not count. Instructions count as their declarations compute.
 *
 * **Not counted**: cache effects between the two byte counts, bank conflicts, widths of transactions, code that the target's compiler
 * removes or duplicates, and spills (the driver reports these as local memory).
 */
import type { DeviceKind } from '../../runtime/device.ts'
import type { UnorderedSum } from '../verify/unordered-sums.ts'

/** Accesses of a launch to one global array, in elements. */
export interface ArrayTraffic {
  readonly array: string
  /** Length of the array in elements, and bytes per element. */
  readonly elements: number
  readonly elementBytes: number
  readonly loads: number
  readonly stores: number
  /** Number of atomic updates; each reads and writes one element. */
  readonly atomics: number
}

export interface Bytes {
  /** Compulsory traffic: each array once per direction, at most the accessed elements. */
  readonly compulsory: number
  readonly loaded: number
  readonly stored: number
  /** Accessed bytes of shared memory, summed over all blocks. */
  readonly sharedLoaded: number
  readonly sharedStored: number
}

/** Floating-point operations, to which peak rates refer. Integer and address arithmetic is not counted. */
export interface Operations {
  /** Operations of scalar floating-point units. */
  readonly scalar: number
  /** Operations of matrix instructions: with 16-bit inputs, f32 inputs (rounded to tf32), and others. */
  readonly matrix16: number
  readonly matrix32: number
  readonly matrixOther: number
}

/** Accuracy of a count. */
export interface Certainty {
  /** Fraction of distinct control flows that was simulated; 1 if the count is exact. */
  readonly sampledFraction: number
  /** True if conditions or trip counts depend on results of the plan, and were assumed. */
  readonly hasAssumptions: boolean
}

export interface Resources {
  /** Number of registers per thread. */
  readonly registers: number
  /** Bytes of static and dynamic shared memory per block. */
  readonly shared: number
  /** Bytes of local memory per thread: spills and indexed arrays. */
  readonly local: number
}

export type OccupancyLimit = 'registers' | 'shared memory' | 'threads' | 'blocks' | 'grid'

/** Concurrent work on one multiprocessor (SM). */
export interface Occupancy {
  readonly blocks: number
  readonly warps: number
  readonly maxWarps: number
  /** The limiting resource; `grid`: too few blocks for all SMs. */
  readonly limitedBy: OccupancyLimit
  /** Number of waves of concurrent blocks. */
  readonly waves: number
}

/** Measured times in milliseconds. */
export interface Times {
  readonly median: number
  readonly min: number
  readonly samples: number
  /** Milliseconds of an empty region, measured in the same way. */
  readonly floor: number
}

/** The roofline bound: the resource with the longest lower bound on time. */
export interface Roof {
  readonly by: 'memory' | 'cache' | 'f32' | 'tf32' | 'f16'
  /** Lower bound on the time in milliseconds. */
  readonly minMilliseconds: number
}

export interface Work {
  readonly bytes: Bytes
  readonly operations: Operations
  /** Arithmetic intensity in operations per compulsory byte; 0 without traffic. */
  readonly intensity: number
  readonly certainty: Certainty
}

/** Achieved rates per second, from compulsory traffic. Fractions are `null` if the chip's peak rates are unknown. */
export interface Achieved {
  readonly bandwidth: number
  readonly flops: number
  /** Fraction of the peak bandwidth of device memory, or of the cache if the arrays fit into it. */
  readonly bandwidthFraction: number | null
  /** Fraction of the peak rate of the units that execute the operations. */
  readonly flopsFraction: number | null
}

export interface LaunchExplanation extends Work {
  readonly kind: 'launch'
  readonly name: string
  /** Schedule that executes the launch, if each run selects on the device; otherwise `null`. */
  readonly alternative: string | null
  readonly grid: readonly [number, number, number]
  readonly block: readonly [number, number, number]
  readonly blocks: number
  /** Number of threads per block. */
  readonly threads: number
  readonly arrays: readonly ArrayTraffic[]
  /** Bytes of shared memory that the generated code declares per block. */
  readonly sharedBytes: number
  readonly resources: Resources | null
  readonly occupancy: Occupancy | null
  readonly roof: Roof | null
  readonly time: Times | null
  readonly achieved: Achieved | null
}

/** Zero-fill of a whole array before the next launches. */
export interface ClearExplanation {
  readonly kind: 'clear'
  readonly array: string
  readonly bytes: number
}

export interface Explanation {
  readonly kernel: string
  readonly device: DeviceKind
  /** Name of the chip; `null` without a device. */
  readonly deviceName: string | null
  /** Floating-point sums in the order in which threads arrive. If empty, equal inputs give bitwise equal outputs. */
  readonly unorderedSums: readonly UnorderedSum[]
  readonly sizes: Readonly<Record<string, number>>
  readonly steps: readonly (LaunchExplanation | ClearExplanation)[]
  readonly launches: readonly LaunchExplanation[]
  /** Totals over all steps; clears count as stored bytes. */
  readonly total: Work
  readonly roof: Roof | null
  readonly time: Times | null
  readonly achieved: Achieved | null
}

export interface ExplainOptions {
  /** Measures all launches together and one by one. The default is true. Buffers keep their contents. */
  readonly time?: boolean
}
