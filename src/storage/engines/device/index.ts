/**
 * Conversion on a device, from any format to any format or composition, by kernels generated from the descriptions:
 * nothing here knows a format, and no kernel is written down.
 *
 *     resident tensor ──source──▶ frame of entries ──split──▶ frames of parts ──place──▶ arrays of each part
 *
 * - `command-queue.ts`: columns (typed device memory, taken from a pool) and launches. A kernel is built from
 *   expressions once for each structure, through the same lowering and backends as all others; sizes are parameters, so
 *   it serves every tensor. Numbers that decide allocations are read back together.
 * - `command-order.ts`, `batch-launches.ts`, `kernel-cache.ts`: launches of one kernel that do not depend on each other
 *   become one, so that many small parts take as many launches as one. Keys of kernels name no axis: parts share them.
 * - `scan.ts` (`block-scan.ts`), `radix-sort.ts`: exclusive scans (started over at segments), reductions, stable radix
 *   sort of entry numbers, in segments if wanted, by threads or by blocks in their memory (`tuning.ts`). With maps,
 *   gathers and scatters, which are launches whose bodies are expressions, this is the whole algebra: O(n) work and
 *   memory each.
 * - `map-fusion.ts`: an expression over the names of a frame becomes one over an entry's index, so that each kernel
 *   fuses the maps it needs and no mapped coordinate is stored.
 * - `lexicographic-order.ts`: order from what order there is (`sort-elision.ts`: what follows without a look): leading
 *   keys in order cut runs that are sorted within themselves, trailing ones in order are left out, all in order is one
 *   reading pass.
 *
 * The arrays are those of the host's engine, element for element; sums of equal coordinates are taken in the
 * values' own type there, so they can differ by rounding. What is larger than a buffer of the device may be is refused
 * (`device/buffer-too-large`), and so are positions that 32 bits do not count (`convert/too-large`).
 */

import { fail } from '../../../ast/diagnostics/diagnostic.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import type { Device } from '../../../runtime/device.ts'
import { convert } from '../../convert.ts'
import type { FormatOperands } from '../../format-operands.ts'
import type { Part } from '../../remapping/part-assembly.ts'
import { setTrees } from '../host/set-trees.ts'
import { deviceEngine } from './engine.ts'
import type { Column } from './kernels/column-types.ts'
import type { Queue } from './queue/command-queue.ts'
import { queueOf, ResidentParts, type ResidentTensor } from './resident-tensors.ts'

/** A part of a tensor in device memory. */
export type DevicePart = Part<Column>
export type { Column } from './kernels/column-types.ts'

export {
  checkNotFreed,
  type ResidentCoords,
  ResidentParts,
  type ResidentStored,
  type ResidentTensor,
  releaseConversions,
  releaseSpare,
  residentStorage,
  uploadResident,
} from './resident-tensors.ts'

// Conversion of a resident tensor to a resident tensor in another format.

/** A conversion for repeated use: its kernels are compiled in the first run. */
export interface ConversionPlan {
  /** Converts a tensor. @throws SptError as `convert` */
  run(tensor: ResidentTensor, given: FormatOperands): Promise<ResidentParts>
}

/** `fill`: the value of positions without an entry. */
export function conversionPlan(device: Device, to: Instance, fill = 0): ConversionPlan {
  const proved = provenance(to).parts.map((p) => ({
    inverse: p.inverse !== 'checked',
    range: p.range !== 'checked',
  }))
  const queue = queueOf(device)
  const engine = deviceEngine(queue)
  return {
    async run(tensor, given) {
      checkQueue(tensor, queue)
      const { shape, dtype } = tensor
      const options = { given, fill, proved, sets: setTrees(given, to, shape) }
      const parts = await queue.transaction(convert(engine, tensor, to, options))
      return new ResidentParts({ queue, instance: to, shape, dtype, fill, parts, given })
    },
  }
}

function checkQueue(tensor: ResidentTensor, queue: Queue): void {
  if (tensor.queue !== queue)
    fail({
      code: 'device/foreign-buffer',
      message: 'the tensor lives on another device',
      expected: `a tensor on ${queue.device.name}`,
      hint: 'download there and upload here',
    })
}
