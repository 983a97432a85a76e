/** Where the entries of one part stand in its format. */
import { fail } from '../../ast/diagnostic.ts'
import { MAX_POSITIONS } from '../../columns/allocate.ts'
import { applyMap, firstDifference, neverOverflows, point } from '../../columns/coordmap.ts'
import { firstBeyond } from '../../columns/digits.ts'
import { ascends } from '../../columns/keys.ts'
import { reusing } from '../../columns/scratch.ts'
import { provedOf } from '../../formats/proof/proved.ts'
import type { StoredAxis } from '../../ir/axis.ts'
import { evaluate } from '../../ir/evaluate.ts'
import { freeVars } from '../../ir/expr-tree.ts'
import type { FormatInstance, PartInstance } from '../../ir/format.ts'
import type { EntryValues, Given } from '../given.ts'
import { evaluateQueries, giveBackOf } from '../queries/queries.ts'
import { evaluateSort } from '../queries/sorts.ts'
import { tablesOf, withSegments } from '../tables.ts'

export interface Placed {
  /** One coordinate array for each axis of the part's `order`; may be arrays of the input. */
  readonly columns: Int32Array[]
  /** The part's tables by name. */
  readonly tables: ReadonlyMap<string, Int32Array>
  /** Whether the entries ascend, so that no two of them are equal: `buildStorage` and `scatterValues` then look less. */
  readonly distinct: boolean
}

export interface EntryFacts {
  /** Whether entries ascend, so that no two are equal. */
  readonly ascending?: boolean | undefined
  /** Whether they are known to lie within the extents. */
  readonly inRange?: boolean | undefined
}

/**
 * The coordinates of a part's entries in its format, after a check on all of them that the inverse undoes
 * the map, unless that is proved.
 * O(entries × (operations + digits of sorted queries)); arrays are read only.
 *
 * @param over the axes that the format replaces
 * @param coords one array for each of `over`: the entries that the part holds
 * @param facts what is known of them; what is left out is looked at
 * @throws SptError `format/map-range`, `format/not-inverse`, `format/map-overflow` with the coordinate, and as
 * `evaluateQueries` and `evaluateSort`
 */
export function placeEntries(
  part: PartInstance,
  over: readonly StoredAxis[],
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
  facts: EntryFacts = {},
): Placed {
  return reusing(() => place(part, over, coords, values, given, facts))
}

function place(
  part: PartInstance,
  over: readonly StoredAxis[],
  coords: readonly Int32Array[],
  values: EntryValues | null,
  given: Given,
  facts: EntryFacts,
): Placed {
  const { instance } = part
  const ascending = facts.ascending ?? ascends(coords)
  const proved = facts.inRange || within(coords, over, given) ? provedOf(instance, over) : null
  const known = withSegments(given)
  const names = over.map((a) => a.name)
  const dims = new Map(names.map((name, k) => [name, coords[k]!]))
  const places = new Map<string, Int32Array>()
  const permutations = new Map<string, Int32Array>()
  for (const sort of instance.sorts) {
    const { place, at } = evaluateSort(sort, dims, values, known, places, ascending)
    places.set(sort.place, place)
    permutations.set(sort.at, at)
  }
  const tables = tablesOf(instance, known, permutations)
  const asked = evaluateQueries(instance.queries, dims, values, known, { places, tables }, ascending)
  const to = instance.order.map((name) => ({ name, extent: extentIn(instance, name, known) }))
  const columns = applyMap(
    {
      map: instance.map,
      inputs: [...dims.keys(), ...asked.keys()],
      sizes: known.sizes,
      tables,
      outputs: to,
      inRange: proved?.range,
    },
    [...dims.values(), ...asked.values()],
  )
  giveBackOf([...asked.values()], columns)
  const back = {
    map: instance.inverse,
    inputs: instance.order,
    sizes: known.sizes,
    tables,
    extents: to.map((t) => t.extent),
  }
  const wrong =
    proved?.inverse && neverOverflows(back, columns) ? null : firstDifference(back, columns, coords)
  if (wrong)
    fail({
      code: 'format/not-inverse',
      message: `the inverse of ${instance.text} does not undo its map${part.label === '' ? '' : ` in part ${part.label}`}: ${point(names, coords, wrong.entry)} goes to ${point(instance.order, columns, wrong.entry)}, and that back to (${wrong.found.join(', ')})`,
      expected: 'the coordinate it came from',
      hint: 'the map must keep different coordinates apart, and the inverse must name the old ones in order',
    })
  return {
    columns,
    distinct: ascending,
    tables: new Map(instance.tables.map(({ name }) => [name, tables.get(name)!.values])),
  }
}

function within(coords: readonly Int32Array[], over: readonly StoredAxis[], given: Given): boolean {
  return over.every((a, k) => firstBeyond(coords[k]!, (given.extents.get(a.name) ?? 0) - 1) < 0)
}

/** The extent of an axis; one that is still to be measured bounds nothing. */
function extentIn(instance: FormatInstance, name: string, given: Given): number {
  const axis = instance.axes.find((a) => a.name === name)!
  if (![...freeVars(axis.extent)].every((v) => given.sizes.has(v))) return MAX_POSITIONS
  return evaluate(axis.extent, given.sizes)
}
