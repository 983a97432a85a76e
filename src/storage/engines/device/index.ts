/**
 * Conversion on a device, from any format to any format or composition, by kernels generated from the descriptions:
 * nothing here knows a format, and no kernel is written down.
 *
 *     resident tensor ──source──▶ frame of entries ──split──▶ frames of parts ──place──▶ arrays of each part
 *
 * - `queue.ts`: columns (typed device memory, taken from a pool) and launches. A kernel is built from expressions
 *   once for each structure, through the same lowering and backends as all others; sizes are parameters, so it
 *   serves every tensor. Numbers that decide allocations are read back together.
 * - `command-order.ts`, `batch-launches.ts`, `kernels.ts`: launches of one kernel that do not depend on each other become one, so that
 *   many small parts take as many launches as one. Keys of kernels name no axis: parts share them.
 * - `scan.ts` (`block-scan.ts`), `sort.ts`: exclusive scans (started over at segments), reductions, stable radix sort of entry
 *   numbers, in segments if wanted, by threads or by blocks in their memory (`tuning.ts`). With `map`, `gather` and
 *   `scatter`, which are launches whose bodies are expressions, this is the whole algebra: O(n) work and memory each.
 * - `frame.ts`: entries as columns by name; an expression over names becomes one over an entry's index, so that each
 *   kernel fuses the maps it needs and no mapped coordinate is stored.
 * - `order.ts`: lexicographic order, from what order there is (`known-orders.ts`: what follows without a look): leading keys in order cut runs that are sorted within
 *   themselves, trailing ones in order are left out, all in order is one reading pass.
 * - `walk-up.ts`: levels → coordinates, of the tensor's own axes (`inverse.ts`). `queries.ts`, `sorts.ts`:
 *   what maps and selections ask of the entries, as flags and scans over runs. `split.ts`: parts, by counting.
 *   `levels.ts`: coordinates → levels: flags, their scan, and segment ends; dense levels are arithmetic; `repeats.ts`:
 *   where nonunique axes begin new positions. `place.ts`: one part, with the checks that are not proved; `claims.ts`:
 *   what axes claim.
 *
 * The arrays are those of `storage/parts/convert.ts`, element for element; sums of equal coordinates are taken in the
 * values' own type there, so they can differ by rounding. What is larger than a buffer of the device may be is refused
 * (`device/buffer-too-large`), and so are positions that 32 bits do not count (`convert/too-large`).
 */

import type { Part } from '../../place.ts'
import type { Column } from './column-types.ts'

/** A part as it lies on a device. */
export type DevicePart = Part<Column>
export type { Column } from './column-types.ts'
export { type ConvertPlan, convertPlan } from './convert.ts'
export {
  checkNotFreed,
  type Resident,
  type ResidentCoords,
  ResidentParts,
  type ResidentStored,
  releaseConversions,
  resident,
} from './resident.ts'
