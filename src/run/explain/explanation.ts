/**
 * Where the time of a kernel goes, as plain data.
 *
 * ```ts
 * const e = await prepared.explain()                 // counts, and times on the device
 * const m = await prepared.explain({ time: false })  // runs nothing
 * e.launches[0].threads                              // of a block
 * e.launches[0].occupancy?.limitedBy                 // 'registers'
 * e.total.bytes.least / (1e-3 * e.time!.median)      // bytes a second, at least
 * ```
 * The same without a device: `explainModel(compilation, bound, 'cuda')`. `spt explain` prints it, for example:
 * ```
 * kernel    mul
 * device    cuda (NVIDIA H200)
 * schedule  gpu(8, 32)
 * sizes     m = 2,708, n = 2,708, d = 64
 *
 * step 1: launch mul_0
 *   blocks × threads  678 × 256 (339 × 2 × 1 of 32 × 8 × 1)
 *   registers         32 a thread, no local memory
 *   shared memory     0 bytes a block
 *   occupancy         6 blocks, 48 of 64 warps a multiprocessor (75.0 %), limited by grid; one wave
 *   bytes, at least   1.482 MB (each array once)
 *   bytes, accessed   8.107 MB loaded, 693.2 kB stored (before caches)
 *     A               675,584 loaded; has 10,556 of 4 bytes
 *     B               675,584 loaded; has 173,312 of 4 bytes
 *     C               173,312 stored; has 173,312 of 4 bytes
 *     …
 *   operations        1.351 million plain; 0.912 for each byte at least
 *   time              0.00340 ms (median of 50, least 0.00332 ms; an empty region takes 0.00120 ms)
 *   achieved          435.9 GB/s (5.2 %), 397.4 GFLOP/s (0.61 %)
 *   bound             cache, at least 0.000176 ms: 5.2 % of this rate reached; neither bytes nor operations limit it, but
 *                     latency, imbalance or cache traffic
 * ```
 * (The times are an illustration.)
 *
 * What the model counts. *Elements loaded and stored*: what the threads of a launch ask of global and shared memory, each
 * access of each thread as one element, before any cache, coalescing or vector access. Control flow is followed with the
 * sizes and index arrays of the binding: trip counts of variable segments, tails and searches are those of the data, not an
 * estimate. Threads whose control flow is alike are counted once and multiplied; where too many differ, a spread of them is
 * followed and `share` says how many. A condition or trip count that depends on what the plan itself computes is
 * not known before it runs: it is taken as true, and as 1, and `assumed` says that this happened.
 * *Least bytes*: each array that a launch reads moves once, each that it writes once; of an array less than all is counted
 * where fewer elements are accessed. *Operations*: additions, multiplications, divisions, minima, maxima and functions of
 * floats, one each, a multiplication with an addition two; no comparisons, casts or negations, no integers. Instructions
 * count as their declarations compute.
 *
 * What it does not: caches between the two figures of bytes, bank conflicts, the widths of transactions, what the
 * target's compiler removes or repeats, spills (those are reported as local memory, by the driver).
 */
import type { DeviceKind } from '../../runtime/device.ts'
import type { UnorderedSum } from '../summation-order.ts'

/** What a launch asks of one array of global memory, in elements. */
export interface ArrayTraffic {
  readonly array: string
  /** Elements that the array has, and bytes of one. */
  readonly elements: number
  readonly elementBytes: number
  readonly loads: number
  readonly stores: number
  /** Atomic updates, each of which reads and writes. */
  readonly atomics: number
}

export interface Bytes {
  /** Each array once in each direction it is used in; of an array no more than is accessed. */
  readonly compulsory: number
  readonly loaded: number
  readonly stored: number
  /** Of shared memory, in all blocks together. */
  readonly sharedLoaded: number
  readonly sharedStored: number
}

/** Those on floats, which ceilings are measured of; integer arithmetic, addresses among it, is not counted. */
export interface Operations {
  /** By the threads' own units. */
  readonly scalar: number
  /** By matrix instructions of several threads: with factors of 16 bits, of f32 (which the units round), and others. */
  readonly matrix16: number
  readonly matrix32: number
  readonly matrixOther: number
}

/** How a count was come by. */
export interface Certainty {
  /** Of different control flows, the share that was followed; 1: all, and the counts are exact. */
  readonly sampledFraction: number
  /** Conditions or trip counts depend on what the plan computes. */
  readonly hasAssumptions: boolean
}

export interface Resources {
  /** Of a thread. */
  readonly registers: number
  /** Bytes of a block, static and dynamic. */
  readonly shared: number
  /** Bytes of a thread that are not in registers: spills, and arrays that are indexed. */
  readonly local: number
}

export type OccupancyLimit = 'registers' | 'shared memory' | 'threads' | 'blocks' | 'grid'

/** How much of a multiprocessor is in use at once. */
export interface Occupancy {
  readonly blocks: number
  readonly warps: number
  readonly maxWarps: number
  /** What keeps it from more; `grid`: there are too few blocks to fill all multiprocessors. */
  readonly limitedBy: OccupancyLimit
  /** How often all multiprocessors are filled until all blocks have run. */
  readonly waves: number
}

/** Milliseconds. */
export interface Times {
  readonly median: number
  readonly min: number
  readonly samples: number
  /** What an empty region takes when it is measured in the same way. */
  readonly floor: number
}

/** The ceiling that says how fast it can be at best. */
export interface Roof {
  readonly by: 'memory' | 'cache' | 'f32' | 'tf32' | 'f16'
  /** Milliseconds that it takes at least. */
  readonly minMilliseconds: number
}

export interface Work {
  readonly bytes: Bytes
  readonly operations: Operations
  /** Operations to a byte that has to be moved; 0 where none is. */
  readonly intensity: number
  readonly certainty: Certainty
}

/** What was measured, against the least work: per second. `null` where the chip's ceilings are not known. */
export interface Achieved {
  readonly bandwidth: number
  readonly flops: number
  /** Of the ceiling of device memory, or of the cache where the arrays fit in it. */
  readonly bandwidthFraction: number | null
  /** Of the ceilings of the units that do the operations. */
  readonly flopsFraction: number | null
}

export interface LaunchExplanation extends Work {
  readonly kind: 'launch'
  readonly name: string
  readonly grid: readonly [number, number, number]
  readonly block: readonly [number, number, number]
  readonly blocks: number
  /** Of a block. */
  readonly threads: number
  readonly arrays: readonly ArrayTraffic[]
  /** Bytes of shared memory that the text takes for a block. */
  readonly sharedBytes: number
  readonly resources: Resources | null
  readonly occupancy: Occupancy | null
  readonly roof: Roof | null
  readonly time: Times | null
  readonly achieved: Achieved | null
}

/** Zeros over a whole array, before the launches after it. */
export interface ClearExplanation {
  readonly kind: 'clear'
  readonly array: string
  readonly bytes: number
}

export interface Explanation {
  readonly kernel: string
  readonly device: DeviceKind
  /** The chip's name; `null` where there is none. */
  readonly deviceName: string | null
  /** Sums of floats in the order in which threads arrive; none: equal inputs give equal bits in every run. */
  readonly unorderedSums: readonly UnorderedSum[]
  readonly sizes: Readonly<Record<string, number>>
  readonly steps: readonly (LaunchExplanation | ClearExplanation)[]
  readonly launches: readonly LaunchExplanation[]
  /** Of all steps; clears are bytes that are stored. */
  readonly total: Work
  readonly roof: Roof | null
  readonly time: Times | null
  readonly achieved: Achieved | null
}

export interface ExplainOptions {
  /**
   * Measure the launches, together and one by one; true. What buffers held before they hold afterwards.
   */
  readonly time?: boolean
}
