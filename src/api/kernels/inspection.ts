/** Analyses of a kernel: loop nests, permutable dimensions, sparsity propagation, micro-tiles, candidates of the auto-scheduler. */
import {
  type PermutableDimensions,
  permutableDimensions,
} from '../../analysis/permutations/permutable-dimensions.ts'
import { type SparsityAttributes, sparsityAttributes } from '../../analysis/sparsity/attributes.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/program.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { ScheduleCandidate } from '../auto-schedule/schedule-candidates.ts'
import type { RunInputs } from '../inputs/bound-inputs.ts'
import { ErrorSources } from '../programs/error-sources.ts'
import type { MicroTile } from './micro-tiles.ts'
import { handleOf, type Nest, nestsOf } from './nests.ts'

/** The properties of a kernel that an inspection reads. */
interface Inspected<K> {
  readonly source: Kernel1
  readonly sources: Sources
  readonly compilation: Compilation
  readonly microTiles: (tile: Readonly<Record<string, number>>) => readonly MicroTile[]
  readonly candidates: (
    device: DeviceKind | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ) => readonly ScheduleCandidate<K>[]
}

export class Inspection<K> extends ErrorSources {
  readonly sources: Sources
  readonly #of: Inspected<K>

  constructor(of: Inspected<K>) {
    super()
    this.#of = of
    this.sources = of.sources
  }

  /** The present loop nests, with the role of each loop. */
  get nests(): readonly Nest[] {
    const { kernel, loops } = this.#of.compilation
    return nestsOf(loops, (l) => handleOf(kernel, l))
  }

  /** Permutable dimensions (PIT axes) of the unscheduled kernel, and their effect on results. */
  get permutable(): PermutableDimensions {
    return permutableDimensions(this.#of.source)
  }

  /** Sparsity propagation in the unscheduled kernel: zero, constant and dead elements, and masks that iterations accept. */
  get attributes(): SparsityAttributes {
    return sparsityAttributes(this.#of.source)
  }

  /**
   * Formats that gather the nonzeros of dense inputs, and of temporaries with run-time zeros, along each permutable dimension (PIT micro-tiles).
   * @param tile - Extents of the dense tile by name of an axis; default 32
   */
  microTiles(tile: Readonly<Record<string, number>> = {}): readonly MicroTile[] {
    return this.#of.microTiles(tile)
  }

  /**
   * Candidates that `autoSchedule` compares, the selected one first, with predicted times in milliseconds. Empty if the kernel has
   * steps on loops, or if all candidates are rejected.
   */
  scheduleCandidates(
    device: DeviceKind | Device,
    sizes?: Readonly<Record<string, number>>,
    tensors?: RunInputs['tensors'],
  ): readonly ScheduleCandidate<K>[] {
    return this.#of.candidates(device, sizes, tensors)
  }
}
