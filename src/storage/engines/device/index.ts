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
import { fail, type Span } from '../../../ast/diagnostics/diagnostic.ts'
import { countText } from '../../../ast/print/message-text.ts'
import { FEWER_POSITIONS } from '../../../columns/allocate.ts'
import type { Engine } from '../../../columns/column-engine.ts'
import { waitFor } from '../../../columns/coroutines.ts'
import { provenance } from '../../../formats/proof/provenance.ts'
import { add, load, variable } from '../../../ir/expressions/expr.ts'
import type { Instance } from '../../../ir/formats/format.ts'
import type { Dtype } from '../../../ir/values/dtype.ts'
import type { Device } from '../../../runtime/device.ts'
import { setTrees } from '../../build-storage.ts'
import { measureKeys } from '../../columns/sort-permutations.ts'
import { convert } from '../../convert.ts'
import type { FormatOperands } from '../../format-operands.ts'
import type { Part } from '../../remapping/part-assembly.ts'
import { type Column, get, natural, read, store, update } from './kernels/kernel-builder.ts'
import * as reading from './kernels/level-iteration.ts'
import { padWithLast } from './kernels/level-iteration.ts'
import * as levels from './kernels/level-scans.ts'
import * as maps from './kernels/map-reduce.ts'
import * as values from './kernels/values.ts'
import type { Queue } from './queue/command-queue.ts'
import { queueOf, ResidentParts, type ResidentTensor } from './resident-tensors.ts'
import * as queries from './sorting/group-reductions.ts'
import { orderBy } from './sorting/lexicographic-order.ts'
import { filledColumn, partition } from './sorting/partition.ts'

export type DevicePart = Part<Column>
export type { Column } from './kernels/kernel-builder.ts'

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

// The operations of conversion as generated kernels on columns in device memory.

function deviceEngine(q: Queue): Engine<Column> {
  return {
    upload: (array, label) => waitFor(q.upload(array, 'i32', label)),
    unload: (...columns) => q.release(...columns),
    release: (...columns) => q.release(...columns),
    empty: (length, label) => q.column(length, 'i32', label),
    filled: (length, value, label) => filledColumn(q, length, value, label),
    concatenate: (parts, dtype) => concatenate(q, parts, dtype),
    rejectCount,
    runConcurrently: (work) => q.together(work),
    flush: () => waitFor(q.flush()),
    compute: (frame, name, e) => maps.compute(q, frame, name, e),
    *computeChecked(frame, name, e, conditions) {
      const violations = conditions.length > 0 ? yield* maps.findFirst(q, frame, conditions) : []
      if (violations.every((x) => x < 0)) maps.compute(q, frame, name, e)
      return violations
    },
    // Kernels fuse the expressions that they use.
    materialize: (_frame, _name, e) => e,
    valuesAt: (frame, exprs, entry) => maps.valuesAt(q, frame, exprs, entry),
    // Overflows are rejected while kernels are built.
    fits: () => true,
    fillsTables: false,
    bindNumbers(frame, name, column, dtype) {
      frame.tables.set(name, column)
      frame.signed.add(name)
      return dtype
    },
    findFirst: (frame, conditions) => maps.findFirst(q, frame, conditions),
    largest: (frame, e) => maps.largest(q, frame, e),
    bounds: (frame, e) => maps.bounds(q, frame, e),
    isAscending: () => false,
    *order(frame, keys) {
      yield* orderBy(q, frame, yield* measureKeys(frame, keys))
      return frame
    },
    restore: (_frame, _ordered, _name, e) => e,
    partition: (frame, name, count) => partition(q, frame, name, count),
    compact: (frame, condition, columns, sizes) => reading.compact(q, frame, condition, columns, sizes),
    scatter: (frame, to, at, value) => levels.scatter(q, frame, to, at, value),
    scatterFirsts: (frame, to, at, value) => levels.scatter(q, frame, to, at, value, true),
    padWithLast(indices, width, none, label) {
      return padWithLast(this, indices, width, none, label)
    },
    runs: (frame, name, starts) => levels.runs(q, frame, name, starts),
    ranks: (frame, name, starts, within) => levels.ranks(q, frame, name, starts, within),
    cuts: (frame, name, rank, options) => levels.cuts(q, frame, name, rank, options),
    segmentEnds: (frame, at, parent, parents, label) =>
      levels.segmentEnds(q, frame, at, parent, parents, label),
    segment: (positions, label) => levels.segment(q, positions, label),
    lengths: (frame, parent, coordinate, parents, label) =>
      levels.lengths(q, frame, parent, coordinate, parents, label),
    offsets: (lengths, most, label) => levels.offsets(q, lengths, most, label),
    bitmap: (frame, name, starts, options) => levels.bitmap(q, frame, name, starts, options),
    rankInSegments: null,
    count: (frame, query, apart) => queries.count(q, frame, query, apart),
    rank: (frame, query) => queries.rank(q, frame, query),
    minimum: (frame, query) => queries.minimum(q, frame, query),
    rankByMagnitude: (frame, query, scope) => values.rankByMagnitude(q, frame, query, scope),
    takeValues: (frame, name, column) => values.takeValues(q, frame, name, column),
    *sumsOfEqual(frame, column, _dtype, dims, distinct) {
      return distinct ? { sums: column, distinct } : yield* values.sumsOfEqual(q, frame, column, dims)
    },
    storeValues: (frame, at, size, source) => ({
      values: values.storeValues(q, frame, at, size, source),
      entries: null,
    }),
    locate: null,
    parentsOf: (indptr, parents, positions) => reading.parentsOf(q, indptr, parents, positions),
    bitsOf: (level, parents) => reading.bitsOf(q, level, parents),
  }
}

/** Rejects a count of positions. @throws SptError `convert/too-large` */
function rejectCount(count: number, what: string, span?: Span): never {
  return fail({
    code: 'convert/too-large',
    message: `${Number.isFinite(count) ? countText(count) : 'too many'} ${what}: more than a 32-bit position can count`,
    ...(span ? { span } : {}),
    expected: 'at most 2147483647: positions are 32-bit',
    hint: FEWER_POSITIONS,
  })
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
    append(q, p.column, p.entry, out, offset, p.n)
    offset += p.n
  }
  return out
}

/** `to[at + e] = from[entry[e]]`. */
function append(q: Queue, from: Column, entry: Column | null, to: Column, offset: number, n: number): void {
  q.launch({
    key: `append ${entry ? 'entry' : ''}`,
    threads: n,
    columns: { x_from: read(from), ...(entry ? { x_entry: natural(entry) } : {}), x_to: update(to) },
    sizes: { x_at: offset },
    body: (e) => [
      store('x_to', add(e, variable('x_at')), load('x_from', [entry ? get('x_entry', e) : e], from.dtype)),
    ],
  })
}
