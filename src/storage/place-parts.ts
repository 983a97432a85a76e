/** Where coordinates go in a format or composition, on the host: before anything is built. */
import { reusing } from '../columns/scratch-buffers.ts'
import { provedOf } from '../formats/proof/proved.ts'
import type { TypedArray } from '../ir/arrays.ts'
import { variable } from '../ir/expr.ts'
import type { Instance } from '../ir/format.ts'
import { Frame } from './column-engine.ts'
import { asksForValues, bindLists, listColumns, setColumns } from './convert.ts'
import { type Coroutine, runSync } from './coroutines.ts'
import { HOST } from './engines/host/engine.ts'
import { valuesOf } from './engines/host/map-reduce.ts'
import { setTrees } from './engines/host/set-trees.ts'
import type { EntryValues, FormatOperands } from './format-operands.ts'
import { withSegments } from './format-operands.ts'
import { type Context, remapCoordinates } from './part-assembly.ts'
import { partitionByPart } from './partition-by-part.ts'

/** The entries of a part, and where they stand in its format. */
export interface PlacedPart {
  /** In input order; `null`: all of them. */
  readonly entries: Int32Array | null
  /** One array for each axis of the part's `order`; may be arrays of the input. */
  readonly columns: readonly Int32Array[]
  /** Arrays that the inverse map loads, by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
}

/**
 * Every entry goes to exactly one part. O(entries × (operations + digits of sorted queries)); arrays are read only.
 *
 * @param coords within `given.extents`: one array for each axis of `to.over`
 * @param values `null`: a pattern, whose values are all 1
 * @param ascending whether it is known that entries ascend, so that no two are equal
 * @throws SptError `format/overlap`, `format/leak`, `format/map-range`, `format/not-inverse`, `format/map-overflow` with
 * the coordinate, and as `evaluateQueries` and `evaluateSort`
 */
export function placeParts(
  to: Instance,
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: FormatOperands,
  ascending = false,
): readonly PlacedPart[] {
  return reusing(() => runSync(place(to, coords, values, given, ascending)))
}

function* place(
  to: Instance,
  coords: readonly Int32Array[],
  held: EntryValues | null,
  given: FormatOperands,
  ascending: boolean,
): Coroutine<readonly PlacedPart[]> {
  const dims = to.over.map((a) => ({ name: a.name, extent: given.extents.get(a.name) ?? 0 }))
  const known = withSegments(given)
  const frame = new Frame<TypedArray>(HOST, coords[0]?.length ?? 0, known.sizes)
  for (const [k, d] of dims.entries()) {
    frame.set(d.name, coords[k]!, false)
    frame.bounds.set(d.name, [0, Math.max(0, d.extent - 1)])
  }
  const lists = yield* listColumns(HOST, given)
  bindLists(frame, lists, given)
  if (ascending) frame.sortedBy = dims.map((d) => variable(d.name))
  const distinct = ascending || HOST.ascends(frame, dims)
  const dtype = held?.dtype ?? 'f32'
  const stored = held?.values ?? null
  const values =
    stored && asksForValues(to) ? (yield* HOST.sumsOfEqual(frame, stored, dtype, dims, distinct)).sums : null
  const sets = yield* setColumns(
    HOST,
    setTrees(
      given,
      to.over,
      dims.map((d) => d.extent),
    ),
  )
  const context: Context<TypedArray> = {
    given: known,
    dims,
    stored,
    values,
    distinct,
    lists,
    sets,
    dtype,
    fill: 0,
  }
  const out: PlacedPart[] = []
  yield* partitionByPart(frame, to, context, function* (k, f) {
    const part = to.parts[k]!
    const { coordinates, tables } = yield* remapCoordinates(
      f,
      part,
      context,
      provedOf(part.instance, to.over),
    )
    const columns = part.instance.order.map((name) => valuesOf(f, coordinates.get(name)!))
    for (const c of columns) f.keep(c)
    out[k] = {
      entries: f.entry as Int32Array | null,
      columns,
      tables: tables as ReadonlyMap<string, Int32Array>,
    }
    f.release()
  })
  return out
}
