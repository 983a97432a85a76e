/**
 * Conversion on a device, from any format to any format or composition, by kernels generated from the descriptions:
 * nothing here knows a format, and no kernel is written down.
 *
 * - `queue/`: columns (typed device memory, taken from a pool) and launches. A kernel is built from expressions once for
 *   each structure, through the same lowering and backends as all others; sizes are parameters, so that it serves every
 *   tensor. Independent launches of one kernel become one, so that many small parts take as many launches as one.
 * - `kernels/`: maps, which each kernel fuses into its inputs, exclusive segmented scans, reductions.
 * - `sorting/`: stable radix sorts of entry numbers, gathers. Each operation takes O(n) work and memory.
 *
 * The arrays are those of the host's engine, element for element; sums of equal coordinates are taken in the values' own
 * type, so that they can differ by rounding. Columns larger than a buffer of the device are rejected
 * (`device/buffer-too-large`), and so are positions that 32 bits cannot count (`convert/too-large`).
 */
import { failWith, type Span } from '../../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../../ast/print/message-text.ts'
import { type Work, waitFor } from '../../../ast/work.ts'
import { FEWER_POSITIONS } from '../../../columns/allocate.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { Device } from '../../../runtime/device.ts'
import { setTrees } from '../../build-storage.ts'
import { measureKeys } from '../../columns/expression-bounds.ts'
import { convert } from '../../convert.ts'
import type { FormatOperands } from '../../format-operands.ts'
import type { Part } from '../../remapping/part-assembly.ts'
import type { Column } from './kernels/kernel-builder.ts'
import * as reading from './kernels/level-iteration.ts'
import * as scans from './kernels/level-scans.ts'
import * as maps from './kernels/map-reduce.ts'
import * as stored from './kernels/values.ts'
import type { DeviceEngine, Queue } from './queue/command-queue.ts'
import { queueOf, ResidentParts, type ResidentTensor } from './resident-tensors.ts'
import { orderBy } from './sorting/lexicographic-order.ts'
import { filledColumn, partition } from './sorting/partition.ts'

export type DevicePart = Part<Column>
export type { Column } from './kernels/kernel-builder.ts'
export {
  checkNotFreed,
  ResidentParts,
  type ResidentTensor,
  releaseConversions,
  releaseSpare,
  residentStorage,
  uploadResident,
} from './resident-tensors.ts'

// Conversion of a resident tensor to a resident tensor in another format.

/** A conversion for repeated use: its kernels are compiled in the first run. */
export interface ConversionPlan {
  /** Converts a tensor, with checkpoints of `call`. @throws SptError as `convert` */
  run(tensor: ResidentTensor, given: FormatOperands, call?: Work): Promise<ResidentParts>
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
    async run(tensor, given, call) {
      checkQueue(tensor, queue)
      const { shape, dtype } = tensor
      const options = { given, fill, proved, sets: setTrees(given, to, shape) }
      const parts = await queue.transaction(convert(engine, tensor, to, options), call)
      return new ResidentParts({ queue, instance: to, shape, dtype, fill, parts, given })
    },
  }
}

function checkQueue(tensor: ResidentTensor, queue: Queue): void {
  if (tensor.queue !== queue)
    failWith('device/foreign-buffer', 'the tensor lives on another device', {
      expected: `a tensor on ${queue.device.name}`,
      hint: 'download there and upload here',
    })
}

// The operations of conversion as generated kernels on columns in device memory.

const deviceEngine = (queue: Queue): DeviceEngine => ({
  queue,
  ...maps,
  ...scans,
  ...stored,
  partition,
  compact: reading.compact,
  upload: (array, label) => waitFor(queue.upload(array, 'i32', label)),
  unload: (...columns) => queue.release(...columns),
  release: (...columns) => queue.release(...columns),
  empty: (length, label) => queue.column(length, 'i32', label),
  filled: (length, value, label) => filledColumn(queue, length, value, label),
  concatenate: (parts, dtype) => concatenate(queue, parts, dtype),
  rejectCount,
  runConcurrently: (work) => queue.together(work),
  flush: () => waitFor(queue.flush()),
  // Kernels fuse the expressions that they use.
  materialize: (_frame, _name, e) => e,
  // Overflows are rejected while kernels are built.
  fits: () => true,
  fillsTables: false,
  bindNumbers(frame, name, column, dtype) {
    frame.tables.set(name, column)
    frame.signed.add(name)
    return dtype
  },
  isAscending: () => false,
  *order(frame, keys) {
    yield* orderBy(frame, yield* measureKeys(frame, keys))
    return frame
  },
  restore: (_frame, _ordered, _name, e) => e,
  padWithLast(indices, width, none, label) {
    return reading.padWithLast(this, indices, width, none, label)
  },
  offsets: (lengths, most, label) => scans.offsetsOf(queue, lengths, most, label),
  rankInSegments: null,
  parentsOf: (indptr, parents, positions) => reading.parentsOf(queue, indptr, parents, positions),
  bitsOf: (level, parents) => reading.bitsOf(queue, level, parents),
})

/** Rejects a count of positions. @throws SptError `convert/too-large` */
function rejectCount(count: number, what: string, span?: Span): never {
  return failWith(
    'convert/too-large',
    `${Number.isFinite(count) ? countText(count) : 'too many'} ${what}: more than a 32-bit position can count`,
    {
      ...(span && { span }),
      expected: 'at most 2147483647: positions are 32-bit',
      hint: FEWER_POSITIONS,
    },
  )
}

function concatenate(
  q: Queue,
  parts: readonly { readonly column: Column; readonly entry: Column | null; readonly n: number }[],
  dtype: Dtype,
): Column {
  const out = q.column(
    parts.reduce((n, p) => n + p.n, 0),
    dtype,
    'entries',
  )
  let offset = 0
  for (const p of parts) {
    stored.append(q, p.column, p.entry, out, offset, p.n)
    offset += p.n
  }
  return out
}
