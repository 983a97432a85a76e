/** Where the entries of one part stand in its format. */
import { fail } from '../ast/diagnostic.ts'
import type { StoredAxis } from '../ir/axis.ts'
import { evaluate } from '../ir/evaluate.ts'
import { freeVars } from '../ir/expr.ts'
import type { FormatInstance, PartInstance } from '../ir/format.ts'
import { applyMap, firstDifference, point } from './coordmap.ts'
import type { EntryValues, Given } from './given.ts'
import { ascends } from './keys.ts'
import { evaluateQueries } from './queries.ts'
import { evaluateSort } from './sorts.ts'
import { MAX_POSITIONS } from './storage.ts'
import { tablesOf, withSegments } from './tables.ts'

export interface Placed {
  /** One coordinate array for each axis of the part's `order`; may be arrays of the input. */
  readonly columns: Int32Array[]
  /** The part's tables by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
  /** Whether the entries ascend, so that no two of them are equal: `buildStorage` and `scatterValues` then look less. */
  readonly distinct: boolean
}

/**
 * The coordinates of a part's entries in its format, after a check on all of them that the inverse undoes the map.
 * O(entries × (operations + digits of sorted queries)); arrays are read only.
 *
 * @param over the axes that the format replaces
 * @param coords one array for each of `over`: the entries that the part holds
 * @throws SptError `format/map-range`, `format/not-inverse`, `format/map-overflow` with the coordinate, and as
 * `evaluateQueries` and `evaluateSort`
 */
export function placeEntries(
  part: PartInstance,
  over: readonly StoredAxis[],
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
): Placed {
  const { instance } = part
  const known = withSegments(given)
  const names = over.map((a) => a.name)
  const dims = new Map(names.map((name, k) => [name, coords[k]!]))
  const places = new Map<string, Int32Array>()
  const permutations = new Map<string, Int32Array>()
  for (const sort of instance.sorts) {
    const { place, at } = evaluateSort(sort, dims, values, known, places)
    places.set(sort.place, place)
    permutations.set(sort.at, at)
  }
  const tables = tablesOf(instance, known, permutations)
  const asked = evaluateQueries(instance.queries, dims, values, known, { places, tables })
  const to = instance.order.map((name) => ({ name, extent: extentIn(instance, name, known) }))
  const columns = applyMap(
    {
      map: instance.map,
      inputs: [...dims.keys(), ...asked.keys()],
      sizes: known.sizes,
      tables,
      outputs: to,
    },
    [...dims.values(), ...asked.values()],
  )
  const wrong = firstDifference(
    {
      map: instance.inverse,
      inputs: instance.order,
      sizes: known.sizes,
      tables,
      extents: to.map((t) => t.extent),
    },
    columns,
    coords,
  )
  if (wrong)
    fail({
      code: 'format/not-inverse',
      message: `the inverse of ${instance.text} does not undo its map${part.label === '' ? '' : ` in part ${part.label}`}: ${point(names, coords, wrong.entry)} goes to ${point(instance.order, columns, wrong.entry)}, and that back to (${wrong.found.join(', ')})`,
      expected: 'the coordinate it came from',
      hint: 'the map must keep different coordinates apart, and the inverse must name the old ones in order',
    })
  return {
    columns,
    distinct: ascends(coords),
    tables: new Map(instance.tables.map(({ name }) => [name, tables.get(name)!.values])),
  }
}

/** The extent of an axis; one that is still to be measured bounds nothing. */
function extentIn(instance: FormatInstance, name: string, given: Given): number {
  const axis = instance.axes.find((a) => a.name === name)!
  if (![...freeVars(axis.extent)].every((v) => given.sizes.has(v))) return MAX_POSITIONS
  return evaluate(axis.extent, given.sizes)
}
