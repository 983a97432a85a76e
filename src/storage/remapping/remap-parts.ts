/**
 * Coordinate remapping alone, on the host: the coordinates of entries in a format or composition, without building
 * arrays.
 */

import { runSync } from '../../columns/coroutines.ts'
import { withScratchPool } from '../../columns/scratch-buffers.ts'
import { provedOf } from '../../formats/proof/prove.ts'
import type { Instance } from '../../ir/formats/format.ts'
import type { TypedArray } from '../../ir/values/arrays.ts'
import { forEachPart } from '../convert.ts'
import { HOST } from '../engines/host/engine.ts'
import { valuesOf } from '../engines/host/map-reduce.ts'
import { setTrees } from '../engines/host/set-trees.ts'
import type { EntryValues, FormatOperands } from '../format-operands.ts'
import { remapCoordinates } from './part-assembly.ts'

/** The entries of a part, and their coordinates in its format. */
export interface RemappedPart {
  /** In input order; `null`: all entries. */
  readonly entries: Int32Array | null
  /** One array for each axis of the part's `order`; may share memory with the input. */
  readonly columns: readonly Int32Array[]
  /** Arrays that the inverse map loads, by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Assigns every entry to exactly one part, and computes its coordinates there. O(entries × (operations +
 * digits of sorted queries)); arrays are read only.
 *
 * @param coords within `given.extents`: one array for each axis of `to.over`
 * @param entryValues `null`: a pattern, whose values are all 1
 * @param ascending true if entries are known to ascend, so that no two are equal
 * @throws SptError `format/overlap`, `format/leak`, `format/map-range`, `format/not-inverse`,
 * `format/map-overflow` with the coordinate, and as `evaluateQueries` and `evaluateSort`
 */
export function remapParts(
  to: Instance,
  coords: readonly Int32Array[],
  entryValues: EntryValues | null,
  given: FormatOperands,
  ascending = false,
): readonly RemappedPart[] {
  const shape = to.over.map((a) => given.extents.get(a.name) ?? 0)
  const { values = null, dtype = 'f32' } = entryValues ?? {}
  const tensor = { kind: 'coords', shape, coords, values, dtype, ascending } as const
  return withScratchPool(() => {
    const options = { given, fill: 0, sets: setTrees(given, to, shape) }
    return runSync(
      forEachPart<TypedArray, RemappedPart>(HOST, tensor, to, options, function* (part, _k, frame, context) {
        const { instance } = part
        const proved = provedOf(instance, to.over)
        const { coordinates, tables } = yield* remapCoordinates(frame, part, context, proved)
        const columns = instance.order.map((name) => valuesOf(frame, coordinates.get(name)!))
        for (const c of columns) frame.keep(c)
        const entries = frame.entry as Int32Array | null
        frame.release()
        return { entries, columns, tables: tables as RemappedPart['tables'] }
      }),
    )
  })
}
