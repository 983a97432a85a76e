/**
 * Sampling for formats that sort rows. Sorting brings distant rows together, so samples are windows of rows that are adjacent
 * after the sort.
 */

import { withScratchPool } from '../../columns/allocate.ts'
import { runSync } from '../../columns/coroutines.ts'
import type { Kernel1, Reformat } from '../../ir/coordinates/stage1.ts'
import type { Sort } from '../../ir/formats/format.ts'
import { axesOfBinding } from '../../run/bind/binding-names.ts'
import { evaluateSort } from '../../storage/columns/sort-permutations.ts'
import { dependsOnValues, loadEntries } from '../../storage/convert.ts'
import { HOST } from '../../storage/engines/host/engine.ts'
import type { Dimension } from './outer-dimension.ts'
import type { Rows } from './statistics.ts'

/** An order of rows, computed on demand. */
export interface RowOrder {
  /** Equal for the same order of the same rows. */
  readonly key: string
  readonly permute: (rows: Rows) => Int32Array
}

/**
 * Maximum number of elements for which a sort is evaluated to draw a sample, at some 10 ns each. Above it, samples use
 * the stored order.
 */
const MAX_SORTED = 1 << 22

/**
 * Row order produced by a tensor's format, if it sorts all coordinates of a dimension by criteria independent of the values;
 * otherwise `null`. If parts sort their own rows, the criterion of the first is applied to all: a row is mostly in one part,
 * and parts sort by similar criteria.
 */
export function rowOrderOf(
  kernel: Kernel1,
  tensor: string,
  along: Dimension,
  sizes: ReadonlyMap<string, number>,
): RowOrder | null {
  const axes = axesOfBinding(kernel, tensor)
  const reformat = kernel.reformats.find((r) => r.from.map((a) => a.name).join() === axes.join())
  const sort = reformat && sortAlong(reformat, along)
  if (!reformat || !sort) return null
  return {
    key: JSON.stringify([sort.key, sort.queries], (name, value) => (name === 'span' ? undefined : value)),
    permute: (rows) => evaluateOrder(reformat, sort, along, rows, sizes),
  }
}

function sortAlong({ instance }: Reformat, along: Dimension): Sort | null {
  if (instance.given.length > 0 || dependsOnValues(instance)) return null
  const name = instance.over[along]?.name
  const sortsAll = ({ dim, of, within }: Sort): boolean =>
    dim === name && of.kind === 'var' && of.name === name && within === null
  return instance.parts.flatMap((p) => p.instance.sorts).find(sortsAll) ?? null
}

function evaluateOrder(
  { instance, from }: Reformat,
  sort: Sort,
  along: Dimension,
  rows: Rows,
  sizes: ReadonlyMap<string, number>,
): Int32Array {
  const rowIndices = new Int32Array(rows.indptr[rows.rows] ?? 0)
  for (let r = 0; r < rows.rows; r++) rowIndices.fill(r, rows.indptr[r], rows.indptr[r + 1])
  const { indices } = rows
  const columnIndices =
    indices instanceof Int32Array ? indices.subarray(0, rowIndices.length) : Int32Array.from(indices)
  const coords = along === 0 ? [rowIndices, columnIndices] : [columnIndices, rowIndices]
  const shape = along === 0 ? [rows.rows, rows.columns] : [rows.columns, rows.rows]
  const dims = instance.over.map((a, k) => ({ name: a.name, extent: shape[k]! }))
  const inputs = {
    sizes,
    extents: new Map(from.map((a, k) => [a.name, shape[k]!])),
    lists: new Map(),
    sets: new Map(),
  }
  const tensor = { kind: 'coords', shape, coords: coords, values: null, dtype: 'f32' } as const
  return withScratchPool(() =>
    runSync(
      (function* () {
        const { frame, context } = yield* loadEntries(HOST, tensor, dims, false, {
          given: inputs,
          fill: 0,
          sets: new Map(),
        })
        const { at: permutation } = yield* evaluateSort(frame, sort, { ...context, places: new Map() })
        frame.release()
        return permutation as Int32Array
      })(),
    ),
  )
}

/** True if sorting this many elements is affordable. */
export const isSortable = (rows: Rows): boolean => (rows.indptr[rows.rows] ?? 0) <= MAX_SORTED
